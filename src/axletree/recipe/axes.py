"""Axes -> variants: product, zips and excludes, ids, and the selection of variants by pattern."""

from __future__ import annotations

import fnmatch
import itertools
import math
from typing import TYPE_CHECKING, Protocol

import msgspec

from axletree.core.errors import Problem, UsageError
from axletree.core.near import similar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from axletree.recipe.base import Condition, Matrix
    from axletree.recipe.model import Package, Recipe, Test

ANY = "any"
"""Id of the only variant of a recipe without axes."""

_SELF_EXPLAINING = ("gpu", "blas", "platform")
"""Axes whose values need no name beside them in an id."""
_SWITCH = {"on", "off"}
_ALL = 6
"""So many variants are all named where a pattern matches none."""
NOTHING = "none"
"""Value that says "no such thing here": the MAGMA of a build for CPUs."""


class Grid(Protocol):
    """Axes and how they combine: a recipe, or a preset of one."""

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """Axis -> its values."""

    @property
    def matrix(self) -> Matrix:
        """What is zipped and excluded."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """One value for each axis of a recipe, in the order of the recipe."""

    id: str
    """``py311-cu130-mkl``; unique in the recipe."""
    values: dict[str, str]


def variant_id(values: Mapping[str, str], recipe_axes: Mapping[str, Sequence[str]]) -> str:
    """The id of some axes' values: a token each, joined with dashes, empty where there is nothing to tell.

    ``py311`` and ``py313t`` for a Python, ``cu130`` for a GPU, ``magma`` or ``nomagma`` for a switch, nothing for a
    platform that is the only one and for the value ``none``, axis and value for the rest (``torch2.13.0``).
    """
    tokens = (_token(axis, value, recipe_axes.get(axis, (value,))) for axis, value in values.items())
    return "-".join(token for token in tokens if token)


def _token(axis: str, value: str, listed: Sequence[str]) -> str:
    if value == NOTHING:
        return ""
    if axis == "python":
        return "py" + value.replace(".", "")
    if axis == "platform" and len(listed) == 1:
        return ""
    if axis in _SELF_EXPLAINING:
        return value
    if _SWITCH.issuperset(set(listed) - {NOTHING}):
        return axis if value == "on" else f"no{axis}"
    return f"{axis}{value}"


def project(values: Mapping[str, str], axes: Collection[str]) -> dict[str, str]:
    """The values of some axes only, in the order of ``values``."""
    return {axis: value for axis, value in values.items() if axis in axes}


def matches(condition: Condition, values: Mapping[str, str]) -> bool:
    """Whether all axes of a condition have one of the values that it lists."""
    return all(
        values.get(axis) in ((wanted,) if isinstance(wanted, str) else wanted) for axis, wanted in condition.items()
    )


def count_combinations(grid: Grid) -> int:
    """How many combinations the axes have before excludes, zipped ones counted together."""
    return math.prod(len(values) for _, values in _dimensions(grid))


def combinations(grid: Grid) -> Iterator[dict[str, str]]:
    """All combinations before excludes; the axis declared last changes fastest."""
    names, choices = zip(*_dimensions(grid), strict=True) if grid.axes else ((), ())
    for chosen in itertools.product(*choices):
        picked = {
            axis: value
            for group, values in zip(names, chosen, strict=True)
            for axis, value in zip(group, values, strict=True)
        }
        yield {axis: picked[axis] for axis in grid.axes}


def expand(grid: Grid) -> tuple[Variant, ...]:
    """All variants of a recipe or preset that is valid, in the order that its axes declare."""
    return tuple(
        Variant(id=variant_id(values, grid.axes) or ANY, values=values)
        for values in combinations(grid)
        if not any(matches(condition, values) for condition in grid.matrix.exclude)
    )


def _dimensions(grid: Grid) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """What is multiplied: an axis, or a group of zipped ones at the place of the first of them."""
    group_of = {axis: group for group in grid.matrix.zip for axis in group}
    groups = dict.fromkeys(group_of.get(axis, (axis,)) for axis in grid.axes)
    return [(group, list(zip(*(grid.axes[axis] for axis in group), strict=True))) for group in groups]


def axes_of_package(recipe: Recipe, package: Package) -> tuple[str, ...]:
    """Axes of a package: as declared, else those of the stage that it is packed from."""
    if package.axes is not None:
        return in_order(recipe, package.axes)
    stage = recipe.stages.get(package.from_ or "")
    return in_order(recipe, stage.axes if stage else ())


def conditions_of(recipe: Recipe, package: Package) -> tuple[str, ...]:
    """Axes that decide whether a package is there: those of its condition, and of its stage's."""
    stage = recipe.stages.get(package.from_ or "")
    return in_order(recipe, (*package.when, *(stage.when if stage else ())))


def has_package(recipe: Recipe, package: Package, values: Mapping[str, str]) -> bool:
    """Whether a variant has a package: it matches, and so does the stage that it is packed from."""
    stage = recipe.stages.get(package.from_ or "")
    return matches(package.when, values) and (stage is None or matches(stage.when, values))


def axes_of_test(recipe: Recipe, test: Test) -> tuple[str, ...]:
    """Axes of a test: as declared, else those of its packages and its environment together."""
    if test.axes is not None:
        return in_order(recipe, test.axes)
    environment = recipe.environments.get(test.environment)
    packages = [recipe.packages[name] for name in test.packages if name in recipe.packages]
    seen = [axis for each in packages for axis in (*axes_of_package(recipe, each), *conditions_of(recipe, each))]
    return in_order(recipe, [*seen, *(environment.axes if environment else ())])


def in_order(recipe: Recipe, axes: Iterable[str]) -> tuple[str, ...]:
    """Axes in the order of the recipe, each once; names that the recipe does not have are left out."""
    wanted = set(axes)
    return tuple(axis for axis in recipe.axes if axis in wanted)


def select(variants: Sequence[Variant], patterns: Sequence[str], skip: Sequence[str] = ()) -> tuple[Variant, ...]:
    """Variants whose id matches one of ``patterns`` (all, if there are none) and none of ``skip``.

    Patterns are those of a shell: ``*``, ``?`` and ``[abc]``; case counts.

    Raises:
        UsageError: a pattern matches no variant, or nothing is left.
    """
    problems = [
        _unmatched(variants, pattern)
        for pattern in dict.fromkeys([*patterns, *skip])
        if not any(fnmatch.fnmatchcase(variant.id, pattern) for variant in variants)
    ]
    if problems:
        raise UsageError(*problems)
    selected = tuple(
        variant
        for variant in variants
        if (not patterns or any(fnmatch.fnmatchcase(variant.id, pattern) for pattern in patterns))
        and not any(fnmatch.fnmatchcase(variant.id, pattern) for pattern in skip)
    )
    if not selected:
        what = f"--skip {' --skip '.join(skip)} removes every selected variant"
        raise UsageError(what, hint="use a narrower pattern; `axletree matrix RECIPE` lists the variants")
    return selected


def exactly(variant: str) -> str:
    """The pattern that matches the id of one variant and nothing else."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in variant)


def _unmatched(variants: Sequence[Variant], pattern: str) -> Problem:
    ids = [variant.id for variant in variants]
    if len(ids) <= _ALL:
        return Problem(message=f"no variant matches {pattern!r}", hint=f"variants: {', '.join(ids)}")
    near = similar(pattern, ids, cutoff=0.3) or ids[:3]
    more = f" (of {len(ids)}; to list all, run `axletree matrix RECIPE`)"
    return Problem(message=f"no variant matches {pattern!r}", hint=f"closest matches: {', '.join(near)}{more}")
