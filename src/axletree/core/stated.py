"""What a recipe says of its packages, and where: what a stage compares with what is built."""

from __future__ import annotations

import msgspec

from axletree.core.errors import Problem

TAKEN_ALONG = "taken-along"
"""Among the places of a package: the key by which it takes libraries of the build machine along."""


def waiver_key(rule: str, where: str) -> str:
    """Among the places of a package: a finding that its recipe accepts."""
    return f"waive {rule} {where}"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a recipe says of a package."""

    name: str
    version: str
    """With its local label."""
    source_version: str | None = None
    """The recipe's own, where packages are called otherwise by ``--release``; what is built may have either."""
    siblings: tuple[str, ...] | None = ()
    """Other packages of the same tree, of which one is what was built; ``None`` where names are not compared."""
    labels: bool = True
    """Whether versions have local labels in this format; conda's have none."""
    requires_python: str | None = None
    requires: tuple[str, ...] = ()
    relabel: bool = False
    """Whether the recipe's word counts, whatever was built."""


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """Where a recipe says something of a package."""

    stage: str | None = None
    """Stage whose tree is packed."""
    places: dict[str, Problem] = {}
    """Key of a disagreement -> a problem with the place only."""


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """A package of a build's tree."""

    wanted: Wanted
    stated: Stated
