"""Who owns what: each file of an SDK's tree in exactly one package, or explicitly in none.

Three ranks decide, the first that takes a file is the last to be asked:

1. ``drop``: what goes nowhere, with why;
2. packages for run time: two of them that claim one file are a fault, never a race that the later wins;
3. the devel package: it mirrors all of the others anyway, so its claims are about what they left.

What nobody takes is a fault too: a part that is new in the SDK has to be given a place, or dropped with a reason.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.globs import glob_matcher
from axletree.core.grouping import grouped
from axletree.core.units import some_of
from axletree.package.sdk.entries import SdkEntry
from axletree.package.sdk.manifest import Claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from axletree.package.sdk.manifest import Manifest

_EVERYTHING = ("**",)


class ClaimRef(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of the manifest."""

    package: str | None
    """Whose it is; ``None`` for one of the manifest's drops."""
    number: int
    """Its position among those of the package, or among the drops, counted from 1."""
    text: str
    """What it takes, in few words."""

    @property
    def where(self) -> str:
        """How a message names it: ``core, claim 2``."""
        return f"drop {self.number}" if self.package is None else f"{self.package}, claim {self.number}"


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """What goes nowhere."""

    entry: SdkEntry
    claim: ClaimRef
    why: str


class Dispute(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that several packages claim."""

    entry: SdkEntry
    claims: tuple[ClaimRef, ...]
    """Of each package the first that takes it."""


class Clash(msgspec.Struct, frozen=True, kw_only=True):
    """A path that occurs twice in the input with different content."""

    path: str
    why: str


class Owned(msgspec.Struct, frozen=True, kw_only=True):
    """What has one owner."""

    entry: SdkEntry
    claim: ClaimRef


class Ownership(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Where each entry of an input goes. Everything is sorted by path, then by target."""

    owned: tuple[Owned, ...]
    dropped: tuple[Dropped, ...] = ()
    unmatched: tuple[SdkEntry, ...] = ()
    disputed: tuple[Dispute, ...] = ()
    clashes: tuple[Clash, ...] = ()
    unused: tuple[ClaimRef, ...] = ()
    """Claims and drops that took nothing of this input: no fault, one manifest serves many."""
    devel: str | None = None
    """The devel package, if the manifest has one."""
    order: tuple[str, ...] = ()
    """All packages, as the manifest has them."""

    @cached_property
    def packages(self) -> dict[str, tuple[SdkEntry, ...]]:
        """Package -> its entries, in the order of the manifest, also where it has none.

        The devel package's are those that it adds to the mirror of all others.
        """
        found: dict[str, list[SdkEntry]] = {name: [] for name in self.order}
        for each in self.owned:
            found[each.claim.package or ""].append(each.entry)
        return {name: tuple(entries) for name, entries in found.items()}

    @property
    def faulty(self) -> bool:
        """Whether something has no place, or more than one."""
        return bool(self.unmatched or self.disputed or self.clashes)


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    ref: ClaimRef
    claim: Claim
    why: str = ""

    def test(self, artifact: str, component: str) -> Callable[[str], bool] | None:
        """Whether it takes a path of an artifact's component; ``None`` where it takes none of them."""
        if component not in self.claim.components:
            return None
        if not any(fnmatchcase(artifact, pattern) for pattern in self.claim.artifacts):
            return None
        takes, leaves = glob_matcher(self.claim.files), glob_matcher(self.claim.exclude)
        return lambda path: takes(path) and not leaves(path)


def assign(entries: Iterable[SdkEntry], manifest: Manifest) -> Ownership:
    """Give each entry of an input its place.

    Entries of the same path for different GPU targets are different files; all other entries of one path are a clash,
    unless they are links that say the same, or folders.
    """
    ranked = _rules(manifest)
    tests: dict[tuple[str, str], tuple[list[tuple[_Rule, Callable[[str], bool]]], ...]] = {}
    used: set[int] = set()
    owned, dropped, unmatched, disputed = [], [], [], []
    there, clashes = _look(entries)
    for entry in there:
        key = (entry.artifact, entry.component)
        active = tests.get(key)
        if active is None:
            active = tests[key] = tuple(
                [(rule, test) for rule in rank if (test := rule.test(*key)) is not None] for rank in ranked
            )
        takers: list[_Rule] = []
        for rank in active:
            takers = _takers(rank, entry.path)
            if takers:
                break
        used.update(map(id, takers))
        if not takers:
            unmatched.append(entry)
        elif takers[0].ref.package is None:
            dropped.append(Dropped(entry=entry, claim=takers[0].ref, why=takers[0].why))
        elif len(takers) > 1:
            disputed.append(Dispute(entry=entry, claims=tuple(rule.ref for rule in takers)))
        else:
            owned.append(Owned(entry=entry, claim=takers[0].ref))
    return Ownership(
        owned=tuple(owned),
        dropped=tuple(dropped),
        unmatched=tuple(unmatched),
        disputed=tuple(disputed),
        clashes=tuple(clashes),
        unused=tuple(rule.ref for rank in ranked for rule in rank if id(rule) not in used),
        devel=next((package.name for package in manifest.package if package.kind == "devel"), None),
        order=tuple(package.name for package in manifest.package),
    )


def claimants(entry: SdkEntry, manifest: Manifest) -> tuple[ClaimRef, ...]:
    """Every drop and claim that would take an entry, in the order in which they are asked; the first decides."""
    found = []
    for rank in _rules(manifest):
        for rule in rank:
            test = rule.test(entry.artifact, entry.component)
            if test is not None and test(entry.path):
                found.append(rule.ref)
    return tuple(found)


def excluders(entry: SdkEntry, manifest: Manifest) -> tuple[tuple[ClaimRef, str], ...]:
    """Claims that would take an entry but for one of their excludes, with that pattern."""
    found = []
    for rank in _rules(manifest):
        for rule in rank:
            bare = _Rule(ref=rule.ref, claim=msgspec.structs.replace(rule.claim, exclude=()))
            test = bare.test(entry.artifact, entry.component)
            if test is None or not test(entry.path):
                continue
            pattern = next((each for each in rule.claim.exclude if glob_matcher((each,))(entry.path)), None)
            if pattern is not None:
                found.append((rule.ref, pattern))
    return tuple(found)


def require_owned(ownership: Ownership) -> Ownership:
    """The same ownership, if everything has one place.

    Raises:
        IntegrityError: what nobody takes, what several packages take, and paths that the input has twice; each kind
            with its first paths and what to do.
    """
    problems = list(_problems(ownership))
    if problems:
        raise IntegrityError(*problems)
    return ownership


def _rules(manifest: Manifest) -> tuple[list[_Rule], list[_Rule], list[_Rule]]:
    drops = [
        _Rule(ref=ClaimRef(package=None, number=number, text=_text_of(drop)), claim=drop, why=drop.why)
        for number, drop in enumerate(manifest.drop, 1)
    ]
    runtime: list[_Rule] = []
    devel: list[_Rule] = []
    for package in manifest.package:
        (devel if package.kind == "devel" else runtime).extend(
            _Rule(ref=ClaimRef(package=package.name, number=number, text=_text_of(claim)), claim=claim)
            for number, claim in enumerate(package.claim, 1)
        )
    return drops, runtime, devel


def _text_of(claim: Claim) -> str:
    """A claim in few words: ``lib and run of amd-llvm and 3 more, lib/** but not **/cmake/**``."""
    artifacts = "all artifacts" if claim.artifacts == ("*",) else _few(claim.artifacts)
    text = f"{_few(claim.components, 6)} of {artifacts}"
    if claim.files != _EVERYTHING:
        text += f", {_few(claim.files)}"
    if claim.exclude:
        text += f" but not {_few(claim.exclude)}"
    return text


def _few(names: Sequence[str], most: int = 3) -> str:
    if len(names) > most:
        return some_of(names, most - 1)
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def _takers(rank: Sequence[tuple[_Rule, Callable[[str], bool]]], path: str) -> list[_Rule]:
    """The first rule of each package (and the first drop) that takes a path."""
    found: dict[str | None, _Rule] = {}
    for rule, test in rank:
        if rule.ref.package not in found and test(path):
            found[rule.ref.package] = rule
    return list(found.values())


def _look(entries: Iterable[SdkEntry]) -> tuple[list[SdkEntry], list[Clash]]:
    """The entries in order, each once, and the paths that are there in more than one way."""
    there: list[SdkEntry] = []
    clashes: dict[str, Clash] = {}
    last: SdkEntry | None = None
    for entry in sorted(entries, key=lambda each: (each.path, each.target, each.artifact, each.component)):
        if last is None or last.path != entry.path:
            there.append(entry)
            last = entry
            continue
        same = last.kind == entry.kind and last.kind != "file" and last.link == entry.link
        if last.target == entry.target and not same:
            whose = f"{_part(last)} and {_part(entry)}"
            clashes.setdefault(entry.path, Clash(path=entry.path, why=f"the file is in {whose}"))
        elif last.target != entry.target:
            there.append(entry)
            last = entry
    solid = {entry.path: entry for entry in there if entry.kind != "folder"}
    known: set[str] = set()
    for entry in there:
        folder = entry.path.rpartition("/")[0]
        while folder and folder not in known:
            known.add(folder)
            if folder in solid:
                why = f"the path is a {solid[folder].kind} in {_part(solid[folder])} but a folder in {_part(entry)}"
                clashes.setdefault(folder, Clash(path=folder, why=why))
            folder = folder.rpartition("/")[0]
    return there, [clashes[path] for path in sorted(clashes)]


def _part(entry: SdkEntry) -> str:
    return f"{entry.artifact} ({entry.component}, {entry.target})"


def _problems(ownership: Ownership) -> Iterator[Problem]:
    yield from (Problem(key=clash.path, message=clash.why, hint=_CLASH) for clash in ownership.clashes)
    orphans = grouped(((entry.artifact, entry.component), entry.path) for entry in ownership.unmatched)
    for (artifact, component), paths in orphans.items():
        message = f"no package claims {_count(paths)} from {artifact} ({component}): {some_of(paths)}"
        hint = _TESTS if component == "test" else _ORPHAN
        yield Problem(message=message, hint=hint)
    disputes = grouped((dispute.claims, dispute.entry.path) for dispute in ownership.disputed)
    for claims, paths in disputes.items():
        claimants = " and ".join(f"{claim.where} ({claim.text})" for claim in claims)
        yield Problem(message=f"{claimants} claim the same files: {some_of(paths)}", hint=_DISPUTE)


def _count(paths: Sequence[str]) -> str:
    return f"{len(paths)} files" if len(paths) > 1 else "a file"


_ORPHAN = "add a claim to a package, or a [[drop]] with the reason"
_TESTS = 'add a package of kind "tests" that claims component "test", or a [[drop]] with the reason'
_DISPUTE = "set `files` or `exclude` in one of the claims, so that only one matches"
_CLASH = "correct the SDK's build so that only one of the two artifacts contains this path"
