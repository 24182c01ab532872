"""Rules about files for other machines and systems than a wheel's tags name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import CORE, library, plain_library, sample
from axletree.check.verdict import judge_platform
from axletree.package.libraries.demand import find_roots
from axletree.package.wheel.scan import WheelMember

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.formats import CodeFormat
    from axletree.check.dist import DistFacts

_LINK_TIME = (".a", ".lib", ".o", ".obj")


def _member(path: str, code: CodeFormat) -> WheelMember:
    return WheelMember(path=path, size=1, compressed=1, sha256="0" * 64, format=code)


def _other_machine(facts: DistFacts) -> Iterator[Found]:
    if not facts.misplaced:
        yield from _unnamed(facts)


def _wrong_machine(facts: DistFacts) -> Iterator[Found]:
    if facts.misplaced:
        yield from _unnamed(facts)


def _unnamed(facts: DistFacts) -> Iterator[Found]:
    for machine, files in _foreign(facts, meant=False).items():
        what = subject(files, "is", "are")
        message = f"{what} for {machine}, which the tag {facts.wheel.name.platform} does not cover"
        yield Found(files[0], message, evidence=listing(files))


def _carried(facts: DistFacts) -> Iterator[Found]:
    machines = _foreign(facts, meant=True)
    files = [path for paths in machines.values() for path in paths]
    if files:
        message = f"{subject(files, 'is', 'are')} for {', '.join(machines)}, which the tag does not cover"
        yield Found(files[0], message, evidence=listing(files))


def _foreign(facts: DistFacts, *, meant: bool) -> dict[str, list[str]]:
    """Machine -> files for machines that no tag names, either those that look like data on purpose, or the others.

    A wheel that carries code for several systems, or a tool for another one beside its own files, means it; what
    Python would import, or what other files link to, can't be meant.
    """
    elfs = {path: elf for path, elf in facts.elfs.items() if elf.architecture is not None}
    if any(platform.linux and platform.machine is None for platform in facts.platforms):
        return {}
    systems = {member.format for member in facts.wheel.members if member.format}
    several = len(systems) > 1 or len({elf.architecture for elf in elfs.values()}) > 1
    roots = set(find_roots(elfs))
    found: dict[str, list[str]] = {}
    for path, elf in elfs.items():
        data = several and path in roots and not elf.python_modules
        if elf.architecture not in facts.machines and data == meant:
            found.setdefault(elf.architecture or "", []).append(path)
    return found


def _unchecked(facts: DistFacts) -> Iterator[Found]:
    code = any(member.format for member in facts.wheel.members)
    if code and not facts.linux:
        yield Found(facts.wheel.filename, judge_platform(facts))


def _needless(facts: DistFacts) -> Iterator[Found]:
    members = facts.wheel.members
    bound = any(member.format or member.path.endswith(_LINK_TIME) for member in members) or facts.elfs
    if not bound and all(platform.system != "any" for platform in facts.platforms):
        tag = facts.wheel.name.platform
        message = f"the wheel contains no machine code, but the tag {tag} restricts it to some systems"
        yield Found(facts.wheel.filename, message)


MACHINE_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/machine-wrong",
        severity="error",
        title="None of the machine code is for the platform tag's machine",
        why="Installers select the wheel on machines that cannot load any of its code, but not on machines that could.",
        fix="change the platform tag to the machine that the code was built for: `axletree retag WHEEL`",
        check=_wrong_machine,
        cases=lambda: (
            fires("an aarch64 module with an x86_64 tag", sample(library(machine=183))),
            silent(
                "a 32-bit ARM module with an armv6l tag, as ELF headers do not distinguish it from ARMv7",
                sample(library(machine=40, bits=32), filename="demo-1.0-cp311-cp311-linux_armv6l.whl"),
            ),
            silent(
                "a firmware image, which the loader never loads",
                sample(elfs={"demo/boot.elf": plain_library(machine=183, dynamic=False)}),
            ),
            silent("an x86_64 module with an x86_64 tag", sample()),
        ),
    ),
    Rule(
        id="dist/machine-mismatch",
        severity="warning",
        title="A file is built for a different machine than the platform tag names",
        why="The file cannot be loaded on the machines that install the wheel; at best, it is dead weight.",
        fix="leave the file out, or change the platform tag to the file's machine",
        check=_other_machine,
        cases=lambda: (
            fires(
                "an aarch64 module and an x86_64 module",
                sample(elfs={CORE: library(), "demo/_b.so": library(machine=183, python_modules=("_b",))}),
            ),
            fires("a library with the tag `any`", sample(filename="demo-1.0-py3-none-any.whl")),
            silent("GPU code", sample(elfs={"demo/kernel.cubin": library(machine=190)})),
        ),
    ),
    Rule(
        id="dist/foreign-code",
        severity="info",
        title="Some files are for architectures that the platform tag does not cover",
        why="They are dead weight for users of the tagged platform.",
        fix="leave the files out if no user needs them",
        check=_carried,
        cases=lambda: (
            fires(
                "programs for two machines with the tag `any`",
                sample(
                    filename="demo-1.0-py3-none-any.whl",
                    elfs={"demo/x64/tool": plain_library(), "demo/arm64/tool": plain_library(machine=183)},
                ),
            ),
            silent("files for the tag's machine", sample()),
        ),
    ),
    Rule(
        id="dist/platform-unchecked",
        severity="info",
        title="The audit does not check machine code for the wheel's system",
        why="Mach-O and PE files are recognized but not read, so the libraries that they need are not checked.",
        fix="run delocate (macOS) or delvewheel (Windows) on that system to check the wheel",
        check=_unchecked,
        cases=lambda: (
            fires(
                "a wheel for macOS",
                sample(
                    filename="demo-1.0-cp311-cp311-macosx_11_0_arm64.whl",
                    elfs={},
                    wheel={"members": (_member("demo/_core.so", "mach-o"),)},
                ),
            ),
            silent("a wheel for Linux", sample()),
        ),
    ),
    Rule(
        id="dist/platform-needless",
        severity="info",
        title="The wheel is tied to one system although nothing in it requires that",
        why="Each additional platform needs another build and another download of the same bytes.",
        fix="tag the wheel `any` if its Python files work on all systems",
        check=_needless,
        cases=lambda: (
            fires("no machine code with a manylinux tag", sample(elfs={})),
            silent("an extension module with a manylinux tag", sample()),
            silent("no machine code with the tag `any`", sample(filename="demo-1.0-py3-none-any.whl", elfs={})),
        ),
    ),
)
