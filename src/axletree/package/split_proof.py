"""Proof that the parts of a wheel work together: read from what was written, before it is published.

Only what splitting can break is asked here: whether each file still finds the libraries that it found before, whether
each part requires who brings them, and whether a part fits every Python that its tag promises. What was wrong with the
original already is told, but stops nothing.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.linkage import installed_path, search_path
from axletree.package.policy import broken_needs, symbol_needs
from axletree.package.providers import find_providers, required_names
from axletree.package.split import Part
from axletree.package.tags import needs_cpython, single_machine
from axletree.package.wheel import WheelScan
from axletree.package.writer import WrittenWheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf import ElfFacts
    from axletree.package.policy import Policy
    from axletree.package.providers import Provider


class ReadPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part as it was written and read back."""

    part: Part
    written: WrittenWheel
    scan: WheelScan


class _Library(msgspec.Struct, frozen=True, kw_only=True):
    """Where a library of the parts lies."""

    package: str
    folder: str
    """Below site-packages."""
    before: str
    """The same in the original."""


def prove_split(
    parts: Sequence[ReadPart],
    *,
    origins: Mapping[str, str],
    before: Mapping[str, ElfFacts],
    requires: Iterable[str],
    providers: Iterable[Provider],
    policies: Sequence[Policy],
) -> tuple[str, ...]:
    """Check the parts of a split; returns notes on what the original got wrong already.

    Args:
        parts: all of them.
        origins: path in a part -> path in the original, where it is another.
        before: path in a part -> facts of a file whose search path was changed, as it was in the original.
        requires: requirements of the original.
        providers: who brings which libraries.
        policies: manylinux policies.

    Raises:
        IntegrityError: a part does not read back as it was written; a file does not find a library that it found in
            the original; a part does not require who brings one; a part for any Python needs a certain one. Names all.
    """
    proof = _Proof(parts, origins, before, tuple(requires), tuple(providers))
    problems: list[Problem] = []
    notes: list[str] = []
    for each in parts:
        problems += _unreadable(each)
        for path, facts in proof.elfs[each.part.name.project].items():
            if each.part.independent and needs_cpython(path, facts):
                message = f"needs CPython, but {each.part.name.project} is for any Python"
                problems.append(Problem(file=each.scan.wheel.filename, key=path, message=message))
            for problem, known in proof.check(each.part.name.project, path, facts):
                if known:
                    notes.append(f"{path}: {problem.message}, as in the original")
                else:
                    problems.append(problem)
        notes += _tag_notes(each, proof.elfs[each.part.name.project], policies)
    if problems:
        raise IntegrityError(*problems)
    return tuple(notes)


class _Proof:
    """The libraries of all parts, and who reaches whom."""

    def __init__(
        self,
        parts: Sequence[ReadPart],
        origins: Mapping[str, str],
        before: Mapping[str, ElfFacts],
        requires: tuple[str, ...],
        providers: tuple[Provider, ...],
    ) -> None:
        self.origins = origins
        self.before = before
        self.providers = providers
        self.original = required_names(requires)
        self.elfs = {each.part.name.project: {elf.path: elf.facts for elf in each.scan.elfs} for each in parts}
        self.siblings = {each.part.name.project: each.part.siblings for each in parts}
        self.requires = {each.part.name.project: required_names(each.part.metadata.requires) for each in parts}
        self.libraries = self.find_libraries()

    def find_libraries(self) -> dict[str, list[_Library]]:
        """SONAME or file name -> where such libraries lie."""
        found: dict[str, list[_Library]] = {}
        for package, elfs in self.elfs.items():
            for path, facts in elfs.items():
                place, origin = installed_path(path), installed_path(self.origins.get(path, path))
                if facts.kind != "shared" or place is None or origin is None:
                    continue
                library = _Library(package=package, folder=posixpath.dirname(place), before=posixpath.dirname(origin))
                for name in {facts.soname or "", posixpath.basename(path)} - {""}:
                    found.setdefault(name, []).append(library)
        return found

    def closure(self, package: str) -> set[str]:
        """A package and all parts that it requires, directly or not."""
        found: set[str] = set()
        waiting = [package]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.siblings.get(name, ())
        return found

    def check(self, package: str, path: str, facts: ElfFacts) -> Iterator[tuple[Problem, bool]]:
        """What a file lacks, and whether it lacked it in the original too."""
        reach = self.closure(package)
        for soname in facts.needed:
            libraries = self.libraries.get(soname)
            if libraries is None:
                yield from ((problem, False) for problem in self.external(package, path, soname, reach))
                continue
            own = [library for library in libraries if library.package in reach]
            if not own:
                message = f"needs {soname} of {libraries[0].package}, which {package} does not require"
                hint = f"name {libraries[0].package} under requires of {package}, or move one of the two files"
                yield Problem(key=path, message=message, hint=hint), False
            elif not self.finds(path, facts, (library.folder for library in own)):
                origin = self.origins.get(path, path)
                found = self.finds(origin, self.before.get(path, facts), (library.before for library in own))
                message = f"does not find {soname} any longer, which lies in {own[0].folder}"
                if not found:
                    message = f"does not find {soname} by its own search path"
                hint = "say relocate = true in the rule that takes it, or move one of the two files"
                yield Problem(key=path, message=message, hint=hint), not found

    @staticmethod
    def finds(path: str, facts: ElfFacts, folders: Iterable[str]) -> bool:
        """Whether the search path of a file leads to one of the folders."""
        searched = {entry.folder for entry in search_path(path, facts)}
        return any(folder in searched for folder in folders)

    def external(self, package: str, path: str, soname: str, reach: set[str]) -> Iterator[Problem]:
        """A library of another distribution: whoever needs it must still require it, if the original did."""
        owners = [each for each in find_providers(self.providers, soname) if each.declared_by(self.original)]
        required = {name for each in reach for name in self.requires[each]}
        if owners and not any(owner.declared_by(required) for owner in owners):
            message = f"needs {soname} of {owners[0].name}, which {package} does not require any longer"
            yield Problem(key=path, message=message, hint=f"name its requirement under takes of {package}")


def _unreadable(each: ReadPart) -> Iterator[Problem]:
    """Whether a wheel reads back as it was written."""
    wheel = each.scan.wheel
    trouble = [*wheel.unreadable, *(f"{issue.path} {issue.detail}" for issue in wheel.record_issues)]
    if wheel.record != each.written.record or wheel.size != each.written.size:
        trouble.append("its RECORD or size is not what was written")
    for line in trouble[:20]:
        yield Problem(file=wheel.filename, message=line)


def _tag_notes(each: ReadPart, elfs: Mapping[str, ElfFacts], policies: Sequence[Policy]) -> Iterator[str]:
    """Whether the files of a part need a later system than its platform tag, the original's, promises."""
    machine = single_machine(elfs)
    platforms = each.part.name.platform.split(".")
    promised = [
        policy
        for policy in policies
        if any(f"{name}_{machine}" in platforms for name in (policy.name, *policy.aliases))
    ]
    if machine is not None and promised:
        lowest = min(promised, key=lambda policy: policy.glibc)
        for need in broken_needs(symbol_needs(elfs), lowest, machine)[:1]:
            version = f"{need.family}_{need.version}"
            yield f"{need.path}: needs {version}, more than {lowest.name} has, as in the original"
