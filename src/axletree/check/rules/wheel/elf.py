"""Rules about ELF files that loaders refuse, and what they never look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Case, Found, Rule, listing, subject
from axletree.check.rules.wheel.sample import CORE, library, plain_library, sample
from axletree.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts

_UNLOADED = 1 << 20
_LIB = "demo/libdemo.so"
_EXECUTABLE_BY_DEFAULT = frozenset({"i686", "x86_64"})
"""Machines for which the kernel and glibc take a missing mark for a demand."""


def _damaged(facts: DistFacts) -> Iterator[Found]:
    for path, message in facts.scan.damaged_elfs:
        yield Found(where=path, message=message)


def _executable_stack(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        if not elf.dynamic or elf.interpreter is not None or elf.architecture is None:
            continue  # a program gets the stack that it asks for when it starts
        if elf.stack == "executable":
            yield Found(where=path, message="it requests an executable stack")
        elif elf.stack == "unmarked" and elf.architecture in _EXECUTABLE_BY_DEFAULT:
            yield Found(
                where=path,
                message=("it does not declare which stack it needs, so it counts as requesting an executable stack"),
            )


def _writable_start(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        if elf.first_load_writable and elf.interpreter is not None:
            yield Found(where=path, message="its first loaded segment is writable")


def _misaligned(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        if elf.misaligned and elf.architecture is not None:
            message = f"{len(elf.misaligned)} of its segments cannot be mapped: {elf.misaligned[0]}"
            yield Found(where=path, message=message, evidence=elf.misaligned)


def _text_relocations(facts: DistFacts) -> Iterator[Found]:
    files = [path for path, elf in facts.elfs.items() if elf.text_relocations and elf.architecture is not None]
    if files:
        message = f"{subject(files, 'contains', 'contain')} code that the loader must rewrite (text relocations)"
        yield Found(where=files[0], message=message, evidence=listing(files))


def _never_loaded(facts: DistFacts) -> Iterator[Found]:
    sizes = {path: elf.symbol_table + elf.debug for path, elf in facts.elfs.items()}
    total = sum(sizes.values())
    if total < _UNLOADED:
        return
    largest = sorted(sizes, key=lambda path: -sizes[path])[:10]
    evidence = tuple(f"{path}: {format_bytes(sizes[path])}" for path in largest if sizes[path])
    message = f"{format_bytes(total)} of its content is symbol tables and debug sections, which are never loaded"
    yield Found(where=facts.wheel.filename, message=message, evidence=evidence)


ELF_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/elf-damaged",
        severity="error",
        title="A file starts with the ELF signature but is not a valid ELF file",
        why="The loader rejects the file, which was truncated or changed by a tool that does not support the format.",
        fix="rebuild the file; if a tool changed it, compare the output of `readelf -a` before and after the change",
        check=_damaged,
        cases=lambda: (
            Case(title="a truncated file", facts=sample(damaged=((_LIB, "the file is truncated"),)), fires=True),
            Case(title="readable files", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/stack-executable",
        severity="error",
        title="A library makes the stack executable",
        why="glibc 2.41 and later refuse to load the library into a running process (`cannot enable executable "
        "stack`); earlier versions remove a protection from the whole process. A file without a stack marking "
        "counts as requesting an executable stack.",
        fix="add a `.note.GNU-stack` section to assembly sources, or link with `-z noexecstack`",
        check=_executable_stack,
        cases=lambda: (
            Case(title="marked as executable", facts=sample(elfs={CORE: library(stack="executable")}), fires=True),
            Case(title="without a stack marking", facts=sample(elfs={CORE: library(stack="unmarked")}), fires=True),
            Case(
                title="a program, which starts with its own stack",
                facts=sample(elfs={"demo/tool": plain_library(stack="executable", interpreter="/lib64/ld.so")}),
                fires=False,
            ),
            Case(title="marked as not executable", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/segment-misaligned",
        severity="error",
        title="A file has segments that cannot be mapped",
        why="The loader stops with `ELF load command address/offset not properly aligned` or maps the wrong bytes. "
        "Some tools that edit search paths in place produce files like this.",
        fix="link the file again with room for a longer search path, and edit it with a tool that verifies its output",
        check=_misaligned,
        cases=lambda: (
            Case(
                title="an offset and an address that are not congruent",
                facts=sample(elfs={CORE: library(misaligned=("segment 3: offset 0x10, address 0x2000",))}),
                fires=True,
            ),
            Case(title="segments as linkers write them", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/segment-writable",
        severity="warning",
        title="A program's first segment is writable",
        why="Kernels before 5.10 kill the program when it starts. Some tools that edit search paths produce files "
        "like this.",
        fix="link the program again, or edit it with a tool that preserves its first segment",
        check=_writable_start,
        cases=lambda: (
            Case(
                title="an edited program",
                facts=sample(elfs={"demo/tool": plain_library(first_load_writable=True, interpreter="/lib64/ld.so")}),
                fires=True,
            ),
            Case(
                title="a library, which any kernel loads",
                facts=sample(elfs={CORE: library(first_load_writable=True)}),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/text-relocations",
        severity="warning",
        title="The loader must rewrite a file's code",
        why="Systems that do not allow code to be modified (SELinux, hardened kernels) reject the file; on other "
        "systems, processes do not share its pages.",
        fix="compile everything with `-fPIC`, including assembly and static libraries; with `-z text`, the linker "
        "reports code that is not position-independent",
        check=_text_relocations,
        cases=lambda: (
            Case(
                title=("a file marked as having text relocations"),
                facts=sample(elfs={CORE: library(text_relocations=True)}),
                fires=True,
            ),
            Case(title="position-independent code", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/never-loaded",
        severity="info",
        title="Symbol tables and debug sections make the wheel larger",
        why="Only debuggers read these parts; the loader does not.",
        fix="link with `-s`, or run `strip --strip-unneeded` before packing; keep the unstripped files elsewhere",
        check=_never_loaded,
        cases=lambda: (
            Case(title="90 MB of .symtab", facts=sample(elfs={CORE: library(symbol_table=90_000_000)}), fires=True),
            Case(title="a few KB of .symtab", facts=sample(elfs={CORE: library(symbol_table=28_000)}), fires=False),
        ),
    ),
)
