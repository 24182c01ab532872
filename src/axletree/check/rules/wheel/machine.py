"""Rules about files for other machines and systems than a wheel's tags name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Case, Found, Rule, listing, subject
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
        message = f"{what} for {machine}, which the tag {facts.wheel.name.platform} does not name"
        yield Found(where=files[0], message=message, evidence=listing(files))


def _carried(facts: DistFacts) -> Iterator[Found]:
    machines = _foreign(facts, meant=True)
    files = [path for paths in machines.values() for path in paths]
    if files:
        message = f"{subject(files, 'is', 'are')} for {', '.join(machines)}, not named by the tag"
        yield Found(where=files[0], message=message, evidence=listing(files))


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
        yield Found(where=facts.wheel.filename, message=judge_platform(facts))


def _needless(facts: DistFacts) -> Iterator[Found]:
    members = facts.wheel.members
    bound = any(member.format or member.path.endswith(_LINK_TIME) for member in members) or facts.elfs
    if not bound and all(platform.system != "any" for platform in facts.platforms):
        message = f"nothing in it is machine code, yet the tag {facts.wheel.name.platform} keeps other systems from it"
        yield Found(where=facts.wheel.filename, message=message)


MACHINE_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/machine-wrong",
        severity="error",
        title="All machine code is for other machines than the platform tag",
        why="Installers take the wheel on machines that can load nothing of it, and not on those that could.",
        fix="tag the wheel for the machine that it was built for",
        check=_wrong_machine,
        cases=lambda: (
            Case(title="an aarch64 module under x86_64", facts=sample(elfs={CORE: library(machine=183)}), fires=True),
            Case(
                title="a 32-bit ARM module under armv6l, which ELF headers do not tell from ARMv7",
                facts=sample(
                    filename="demo-1.0-cp311-cp311-linux_armv6l.whl", elfs={CORE: library(machine=40, bits=32)}
                ),
                fires=False,
            ),
            Case(
                title="a firmware image, which no loader takes",
                facts=sample(elfs={"demo/boot.elf": plain_library(machine=183, dynamic=False)}),
                fires=False,
            ),
            Case(title="x86_64 under x86_64", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/machine-mismatch",
        severity="warning",
        title="A file is for a different machine than the platform tag",
        why="It can't be loaded where the wheel is installed; at best it is dead weight.",
        fix="leave the file out, or tag the wheel for its machine",
        check=_other_machine,
        cases=lambda: (
            Case(
                title="an aarch64 module beside one for x86_64",
                facts=sample(elfs={CORE: library(), "demo/_b.so": library(machine=183, python_modules=("_b",))}),
                fires=True,
            ),
            Case(title="a library under `any`", facts=sample(filename="demo-1.0-py3-none-any.whl"), fires=True),
            Case(title="GPU code", facts=sample(elfs={"demo/kernel.cubin": library(machine=190)}), fires=False),
        ),
    ),
    Rule(
        id="dist/foreign-code",
        severity="info",
        title="Files for other machines than the platform tag names",
        why="They are dead weight for users without such a machine.",
        fix="if nobody needs them, leave them out",
        check=_carried,
        cases=lambda: (
            Case(
                title="programs for two machines under `any`",
                facts=sample(
                    filename="demo-1.0-py3-none-any.whl",
                    elfs={"demo/x64/tool": plain_library(), "demo/arm64/tool": plain_library(machine=183)},
                ),
                fires=True,
            ),
            Case(title="files for the machine of the tag", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/platform-unchecked",
        severity="info",
        title="The wheel is for a system whose machine code is not looked into",
        why="Mach-O and PE files are recognised but not read: libraries that they need are not checked.",
        fix="check it with that system's tools (delocate, delvewheel)",
        check=_unchecked,
        cases=lambda: (
            Case(
                title="a wheel for macOS",
                facts=sample(
                    filename="demo-1.0-cp311-cp311-macosx_11_0_arm64.whl",
                    elfs={},
                    wheel={"members": (_member("demo/_core.so", "mach-o"),)},
                ),
                fires=True,
            ),
            Case(title="a wheel for Linux", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/platform-needless",
        severity="info",
        title="The wheel is for one system though nothing in it is",
        why="Each further platform costs a download, and a build, of the same bytes.",
        fix="tag the wheel `any`, if its Python files fit all systems",
        check=_needless,
        cases=lambda: (
            Case(title="no machine code under manylinux", facts=sample(elfs={}), fires=True),
            Case(title="an extension module under manylinux", facts=sample(), fires=False),
            Case(
                title="no machine code under `any`",
                facts=sample(filename="demo-1.0-py3-none-any.whl", elfs={}),
                fires=False,
            ),
        ),
    ),
)
