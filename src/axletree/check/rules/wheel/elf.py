"""Rules about ELF files that loaders refuse, and what they never look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import library, plain_library, sample
from axletree.core.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts

_UNLOADED = 1 << 20
_LIB = "demo/libdemo.so"
_EXECUTABLE_BY_DEFAULT = frozenset({"i686", "x86_64"})
"""Machines for which the kernel and glibc take a missing mark for a demand."""


def _damaged(facts: DistFacts) -> Iterator[Found]:
    for path, message in facts.scan.damaged_elfs:
        yield Found(path, message)


def _executable_stack(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        if not elf.dynamic or elf.interpreter is not None or elf.architecture is None:
            continue  # a program gets the stack that it asks for when it starts
        if elf.stack == "executable":
            yield Found(path, "this file requests an executable stack")
        elif elf.stack == "unmarked" and elf.architecture in _EXECUTABLE_BY_DEFAULT:
            yield Found(
                path,
                "this file does not declare which stack it needs, so it is treated as requesting an executable stack",
            )


def _writable_start(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        if elf.first_load_writable and elf.interpreter is not None:
            yield Found(path, "the first loaded segment is writable")


def _misaligned(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        if elf.misaligned and elf.architecture is not None:
            message = f"{plural(len(elf.misaligned), 'segment')} cannot be mapped: {elf.misaligned[0]}"
            yield Found(path, message, evidence=elf.misaligned)


def _text_relocations(facts: DistFacts) -> Iterator[Found]:
    files = [path for path, elf in facts.elfs.items() if elf.text_relocations and elf.architecture is not None]
    if files:
        message = f"{subject(files, 'contains', 'contain')} code that the loader must rewrite (text relocations)"
        yield Found(files[0], message, evidence=listing(files))


def _never_loaded(facts: DistFacts) -> Iterator[Found]:
    sizes = {path: elf.symbol_table + elf.debug for path, elf in facts.elfs.items()}
    total = sum(sizes.values())
    if total < _UNLOADED:
        return
    largest = sorted(sizes, key=lambda path: -sizes[path])[:10]
    evidence = tuple(f"{path}: {format_bytes(sizes[path])}" for path in largest if sizes[path])
    message = f"the wheel contains {format_bytes(total)} of symbol tables and debug sections, which are never loaded"
    yield Found(facts.wheel.filename, message, evidence=evidence)


ELF_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/elf-damaged",
        severity="error",
        title="A file starts with the ELF signature but is not a valid ELF file",
        why="The loader rejects the file, which was truncated or changed by a tool that does not support the format.",
        fix="rebuild the file; if a tool changed it, compare the output of `readelf -a` before and after the change",
        check=_damaged,
        cases=lambda: (
            fires("a truncated file", sample(damaged=((_LIB, "the file is truncated"),))),
            silent("readable files", sample()),
        ),
    ),
    Rule(
        id="dist/stack-executable",
        severity="error",
        title="A library makes the stack executable",
        why="glibc 2.41 and later refuse to load the library into a running process (`cannot enable executable "
        "stack`); earlier versions remove a protection from the whole process. A file without a stack marking "
        "is treated as requesting an executable stack.",
        fix="add a `.note.GNU-stack` section to assembly sources, or link with `-z noexecstack`",
        check=_executable_stack,
        cases=lambda: (
            fires("marked as executable", sample(library(stack="executable"))),
            fires("without a stack marking", sample(library(stack="unmarked"))),
            silent(
                "a program, which starts with its own stack",
                sample(elfs={"demo/tool": plain_library(stack="executable", interpreter="/lib64/ld.so")}),
            ),
            silent("marked as not executable", sample()),
        ),
    ),
    Rule(
        id="dist/segment-misaligned",
        severity="error",
        title="A file has segments that cannot be mapped",
        why="The loader stops with `ELF load command address/offset not properly aligned` or maps the wrong bytes. "
        "Some tools that edit search paths in place produce files like this.",
        fix=(
            "link the file again with a longer placeholder RPATH, then edit it with `axletree edit-elf`, which "
            "verifies its output"
        ),
        check=_misaligned,
        cases=lambda: (
            fires(
                "an offset and an address that are not congruent",
                sample(library(misaligned=("segment 3: offset 0x10, address 0x2000",))),
            ),
            silent("segments written by a linker", sample()),
        ),
    ),
    Rule(
        id="dist/segment-writable",
        severity="warning",
        title="A program's first segment is writable",
        why="Kernels before 5.10 kill the program when it starts. Some tools that edit search paths produce files "
        "like this.",
        fix="link the program again, then edit it with `axletree edit-elf`, which preserves its first segment",
        check=_writable_start,
        cases=lambda: (
            fires(
                "an edited program",
                sample(elfs={"demo/tool": plain_library(first_load_writable=True, interpreter="/lib64/ld.so")}),
            ),
            silent("a library, which any kernel loads", sample(library(first_load_writable=True))),
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
            fires("a file marked as having text relocations", sample(library(text_relocations=True))),
            silent("position-independent code", sample()),
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
            fires("90 MB of .symtab", sample(library(symbol_table=90_000_000))),
            silent("a few KB of .symtab", sample(library(symbol_table=28_000))),
        ),
    ),
)
