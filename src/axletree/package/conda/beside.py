"""A conda package compared with those that lie in the same environment: the paths that are theirs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.conda.check import clobbers
from axletree.package.conda.neighbours import Neighbour

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.package.conda.neighbours import Neighbours
    from axletree.package.conda.reader import CondaFacts

_NEVER = re.compile(r"<\s*0(?:\.0)*(?:a0)?")
"""The bound by which a package says that another must not be installed."""


class ForeignPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of a package that are known to be a neighbour's."""

    neighbour: Neighbour
    paths: tuple[str, ...]


class SharedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that a package and another one have."""

    other: str
    """File name."""
    paths: tuple[str, ...]
    same: int
    """How many of them have the same content in both."""


def foreign_paths(facts: CondaFacts, known: Neighbours) -> tuple[ForeignPaths, ...]:
    """Paths that the table knows as a neighbour's, by neighbour.

    Packages that are the neighbour, or that cannot be installed beside it, have a right to them.
    """
    found: dict[str, tuple[Neighbour, list[str]]] = {}
    for path, owner in known.owners(member.path for member in facts.members if member.kind != "folder"):
        if not owner.called(facts.name) and not _excludes(facts, owner.package):
            found.setdefault(owner.package, (owner, []))[1].append(path)
    return tuple(ForeignPaths(neighbour=owner, paths=tuple(sorted(paths))) for owner, paths in found.values())


def shared_paths(facts: CondaFacts, others: Iterable[CondaFacts]) -> tuple[SharedPaths, ...]:
    """Paths that other packages have too, by package; those that are never installed beside this one are left out."""
    found: list[SharedPaths] = []
    for other in others:
        if not _meet(facts, other):
            continue
        issues = clobbers((facts, other))
        if issues:
            paths = tuple(issue.path for issue in issues)
            found.append(SharedPaths(other=other.filename, paths=paths, same=sum(issue.same for issue in issues)))
    return tuple(found)


def comparable(facts: CondaFacts, others: Iterable[CondaFacts]) -> int:
    """With how many of some packages a package is compared."""
    return sum(_meet(facts, other) for other in others)


def _meet(facts: CondaFacts, other: CondaFacts) -> bool:
    """Whether two packages may lie in one environment: not two builds of one package, nor of different platforms."""
    platforms = {each.index.subdir for each in (facts, other) if each.index and each.index.subdir} - {"noarch"}
    excluded = _excludes(facts, other.name) or _excludes(other, facts.name)
    return facts.name != other.name and len(platforms) < 2 and not excluded


def _excludes(facts: CondaFacts, name: str) -> bool:
    constrains = facts.index.constrains if facts.index else ()
    return any(
        spec.partition(" ")[0] == name and _NEVER.fullmatch(spec.partition(" ")[2].strip()) for spec in constrains
    )
