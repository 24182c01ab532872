"""Proof that the parts of a wheel work together: read from what was written, before it is published.

Only what splitting can break is asked here: whether each file still finds the libraries that it found before, and those
that it is declared to open at run time, whether each part requires who brings them, and whether a part fits every
Python that its tag promises. What was wrong with the original already is told, but stops nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.libraries.linkage import installed_path, search_path
from axletree.package.libraries.loading import find_library, follow_loading
from axletree.package.libraries.policy import broken_needs, symbol_needs
from axletree.package.libraries.providers import find_providers, required_names
from axletree.package.libraries.relocate import opened_names
from axletree.package.split.plan import SplitPart
from axletree.package.wheel.scan import WheelScan
from axletree.package.wheel.tags import needs_cpython, single_machine
from axletree.package.wheel.writer import WrittenWheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.libraries.policy import Policy
    from axletree.package.libraries.providers import Provider
    from axletree.package.split.rules import Opens

_RELOCATE = "set relocate = true in the rule that matches the file, or move one of the two files"


class ReadPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part as it was written and read back."""

    part: SplitPart
    written: WrittenWheel
    scan: WheelScan


def prove_split(
    parts: Sequence[ReadPart],
    *,
    origins: Mapping[str, str],
    before: Mapping[str, ElfFacts],
    opens: Opens,
    requires: Iterable[str],
    providers: Iterable[Provider],
    policies: Sequence[Policy],
) -> tuple[str, ...]:
    """Check the parts of a split; returns notes on what the original got wrong already.

    Args:
        parts: all of them.
        origins: path in a part -> path in the original, where it is another.
        before: path in a part -> facts of a file whose search path was changed, as it was in the original.
        opens: what files open at run time, as the rules say it.
        requires: requirements of the original.
        providers: who brings which libraries.
        policies: manylinux policies.

    Raises:
        IntegrityError: a part does not read back as it was written; a file does not find a library that it found in
            the original, or one that it opens by name; a part does not require who brings one; a part for any Python
            needs a certain one. Names all.
    """
    proof = _Proof(parts, origins, before, required_names(requires), tuple(providers))
    problems = [problem for each in parts for problem in _unreadable(each)]
    notes: list[str] = []
    for each in parts:
        package = each.part.name.project
        for path, facts in proof.elfs[package].items():
            if each.part.independent and needs_cpython(path, facts):
                problems.append(
                    Problem(key=path, message=f"the file needs CPython, but {package} is for any Python implementation")
                )
            problems += proof.owners(package, path, facts)
        notes += _tag_notes(each, proof.elfs[package], policies)
    known, lost = proof.loading()
    problems += [*lost, *proof.opening(opens)]
    if problems:
        raise IntegrityError(*dict.fromkeys(problems))
    return (*notes, *known)


class _Proof:
    """The libraries of all parts, and who requires and reaches whom."""

    def __init__(
        self,
        parts: Sequence[ReadPart],
        origins: Mapping[str, str],
        before: Mapping[str, ElfFacts],
        original: frozenset[str],
        providers: tuple[Provider, ...],
    ) -> None:
        self.origins = origins
        self.before = before
        self.original = original
        self.providers = providers
        self.elfs = {each.part.name.project: {elf.path: elf.facts for elf in each.scan.elfs} for each in parts}
        self.siblings = {each.part.name.project: each.part.siblings for each in parts}
        self.requires = {each.part.name.project: required_names(each.part.metadata.requires) for each in parts}
        self.installed: dict[str, ElfFacts] = {}
        self.sources: dict[str, str] = {}  # where it is installed -> path in a part
        self.brings: dict[str, list[str]] = {}
        for package, elfs in self.elfs.items():
            for path, facts in elfs.items():
                place = installed_path(path)
                if place is not None:
                    self.installed[place] = facts
                    self.sources[place] = path
                for name in {facts.soname, path.rpartition("/")[2]} - {None} if facts.kind == "shared" else ():
                    self.brings.setdefault(name or "", []).append(package)

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

    def owners(self, package: str, path: str, facts: ElfFacts) -> Iterator[Problem]:
        """Whether a package requires all who bring what a file of it needs."""
        reach = self.closure(package)
        required = {name for each in reach for name in self.requires[each]}
        for soname in facts.needed:
            parts = self.brings.get(soname)
            if parts is not None:
                if reach.isdisjoint(parts):
                    message = f"the file needs {soname} from {parts[0]}, but {package} does not require {parts[0]}"
                    hint = f"add {parts[0]} to `requires` of {package}, or move one of the two files"
                    yield Problem(key=path, message=message, hint=hint)
                continue
            owners = [each for each in find_providers(self.providers, soname) if each.declared_by(self.original)]
            if owners and not any(owner.declared_by(required) for owner in owners):
                message = (
                    f"the file needs {soname} from {owners[0].name}, but {package} no longer requires {owners[0].name}"
                )
                yield Problem(key=path, message=message, hint=f"add its requirement to `takes` of {package}")

    def loading(self) -> tuple[list[str], list[Problem]]:
        """(what files did not find in the original either, what they do not find any longer)."""
        before: dict[str, ElfFacts] = {}
        names: dict[str, str] = {}
        for place, path in self.sources.items():
            origin = installed_path(self.origins.get(path, path))
            if origin is not None:
                before[origin] = self.before.get(path, self.installed[place])
                names[origin] = place
        old = {
            (names[root], soname, names[user])
            for root in before
            for soname, user in follow_loading(before, root).missing
        }
        known: dict[str, None] = {}
        lost: dict[str, Problem] = {}
        for root in self.installed:
            for soname, user in follow_loading(self.installed, root).missing:
                if soname not in self.brings:
                    continue
                if (root, soname, user) in old:
                    known[f"{user}: does not find {soname} through its own search path, just as in the original"] = None
                else:
                    message = f"the file no longer finds {soname}"
                    lost.setdefault(f"{user} {soname}", Problem(key=user, message=message, hint=_RELOCATE))
        return list(known), list(lost.values())

    def opening(self, opens: Opens) -> Iterator[Problem]:
        """Libraries of the parts that a file opens by name and does not reach.

        It may be loaded first, so what counts is its own search path and what it brings along: nothing that it would
        inherit from whoever loads it.
        """
        for place, facts in self.installed.items():
            path = self.sources[place]
            wanted = opened_names(self.origins.get(path, path), facts, opens)
            names = [name for name in dict.fromkeys(wanted) if name in self.brings]
            loaded = {each.soname: each.path for each in follow_loading(self.installed, place).found} if names else {}
            for name in names:
                if find_library(self.installed, place, name, loaded=loaded) is None:
                    lies = [each for each, of in self.installed.items() if name in {each.rpartition("/")[2], of.soname}]
                    folders = [each.folder or each.text for each in search_path(place, facts)]
                    looked = f"the loader searches only {', '.join(folders)}" if folders else "it has no search path"
                    message = f"the file opens {name} at run time, but cannot find it in {', '.join(lies)}: {looked}"
                    yield Problem(key=place, message=message, hint=_RELOCATE)


def _unreadable(each: ReadPart) -> Iterator[Problem]:
    """Whether a wheel reads back as it was written."""
    wheel = each.scan.wheel
    trouble = [*wheel.unreadable, *(f"{issue.path}: {issue.detail}" for issue in wheel.record_issues)]
    if wheel.record != each.written.record or wheel.size != each.written.size:
        trouble.append("the RECORD or the size of the wheel differs from what was written")
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
            yield f"{need.path}: needs {version}, which is newer than {lowest.name} allows, just as in the original"
