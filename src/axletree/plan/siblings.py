"""Conda packages of one recipe among each other: exact pins, what holds a dependent, whose run exports are passed on.

A package pins a sibling exactly (version and build string) where it sees all axes of that sibling: then there is one
that it was built with. A metapackage for every Python can't; it says itself what it takes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.recipe.target import Target, TargetPackage


def conda_called(package: TargetPackage, names: Mapping[str, str]) -> str:
    """What a package is called as a conda package.

    Args:
        package: of the recipe.
        names: package -> what conda calls the distribution.
    """
    given = package.conda.name if package.conda is not None else None
    return given or names.get(package.name, package.name)


def conda_pins(package: TargetPackage, target: Target, names: Mapping[str, str]) -> dict[str, str]:
    """Distribution (normalised) of a sibling -> the dependency that a requirement on it becomes."""
    return {
        canonicalize_name(other.name): f"{conda_called(other, names)} {_pin(package, other)}"
        for other in _siblings(package, target)
        if other.stage is not None or _needs(package, other, names)
    }


def dependents(package: TargetPackage, target: Target, names: Mapping[str, str]) -> list[str]:
    """Constraints that hold what depends on a package to its version: a solver must not mix two builds.

    Dependents pin back by version alone: their build strings differ between Pythons, and one library serves several.
    """
    return [
        f"{conda_called(other, names)} =={other.conda.version}"
        for other in _siblings(package, target)
        if other.conda is not None and other.stage is not None and _needs(other, package, names)
    ]


def run_exports(package: TargetPackage, target: Target) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(weak, strong) run exports: a package's own, and those of the siblings that it requires.

    What is built against a dependent links to the library behind it too.
    """
    weak: dict[str, None] = {}
    strong: dict[str, None] = {}
    waiting, seen = [package], {package.name}
    while waiting:
        one = waiting.pop(0)
        if one.conda is None:
            continue
        weak |= dict.fromkeys(one.conda.weak)
        strong |= dict.fromkeys(one.conda.strong)
        for other in _siblings(one, target):
            if other.name not in seen and one.stage is not None and _needs(one, other, {}):
                seen.add(other.name)
                waiting.append(other)
    return tuple(weak), tuple(strong)


def _siblings(package: TargetPackage, target: Target) -> Iterator[TargetPackage]:
    """The other conda packages whose presence does not depend on what a package can't see."""
    for other in target.packages:
        if other is not package and other.conda is not None and other.chosen_by.keys() <= package.axes.keys():
            yield other


def _pin(package: TargetPackage, other: TargetPackage) -> str:
    assert other.conda is not None  # noqa: S101 (siblings are conda packages)
    if other.axes.keys() <= package.axes.keys():
        return f"{other.conda.version} {other.conda.build}"
    return f"=={other.conda.version}"


def _needs(package: TargetPackage, other: TargetPackage, names: Mapping[str, str]) -> bool:
    """Whether the recipe says that a package requires another."""
    wanted = {canonicalize_name(Requirement(text).name) for text in package.requires}
    depends = {re.split(r"[ =<>!~]", spec, maxsplit=1)[0] for spec in package.conda.depends} if package.conda else set()
    return canonicalize_name(other.name) in wanted or conda_called(other, names) in depends
