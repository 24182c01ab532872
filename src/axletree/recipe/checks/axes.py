"""Axes: their values, who declares them, conditions on them, zipped groups."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from axletree.core.near import nearest
from axletree.recipe.axes import count_combinations, expand
from axletree.recipe.faults import Fault, dotted, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.recipe.axes import Grid, Variant
    from axletree.recipe.base import Condition
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe

PYTHON = re.compile(r"3\.[0-9]{1,2}t?")
"""Version of an interpreter: ``3.11``; ``3.13t`` is the free-threaded build (PEP 703)."""

_RESERVED = {
    "name": "{name} is the recipe's name",
    "version": "{version} is the recipe's version",
    "variant": "{variant} is reserved for variant ids",
}
_NO_PYTHON = 'environments use axis "python" by default: add it to axes, or write axes = [] and python = "3.11"'
_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")

MAX_COMBINATIONS = 20_000
"""More than any real matrix; keeps a hostile recipe from filling the memory."""


def axis_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of axes: ``axes``, ``matrix``, lists of axes, conditions."""
    yield from grid_faults(recipe)
    yield from _declared_faults(recipe)
    for path, condition in _conditions(recipe):
        yield from condition_faults(recipe, path, condition)


def grid_faults(grid: Grid, path: Path = ()) -> Iterator[Fault]:
    """Faults of the values of axes, and of what is zipped and excluded. ``path`` is where the grid stands."""
    yield from _value_faults(grid, path)
    yield from _zip_faults(grid, path)
    for number, condition in enumerate(grid.matrix.exclude):
        yield from condition_faults(grid, (*path, "matrix", "exclude", number), condition, path)


def expansion(grid: Grid, path: Path = ()) -> tuple[tuple[Variant, ...], list[Fault]]:
    """The variants of a grid without faults so far, or what is wrong with them. ``path`` is where the grid stands."""
    count = count_combinations(grid)
    if count > MAX_COMBINATIONS:
        message = f"the axes have {count:,} combinations of values, more than the limit of {MAX_COMBINATIONS:,}"
        return (), [Fault(path=(*path, "axes"), message=message)]
    variants = expand(grid)
    if variants:
        return variants, list(_same_ids(variants, path))
    combinations = f"all {count} combinations are" if count > 1 else "the only combination is"
    message = f"no variant is left: {combinations} excluded"
    return (), [Fault(path=(*path, "matrix", "exclude"), message=message)]


def _same_ids(variants: Sequence[Variant], path: Path) -> Iterator[Fault]:
    seen: dict[str, Variant] = {}
    for variant in variants:
        other = seen.setdefault(variant.id, variant)
        if other is not variant:
            differs = next(axis for axis, value in variant.values.items() if other.values[axis] != value)
            yield Fault(path=(*path, "axes", differs), message=f"two variants have the same id {variant.id!r}")
            return


def unknown_axis(grid: Grid, axis: str, path: Path) -> Fault:
    """The fault of an axis that the recipe or preset does not have."""
    owner = "preset" if path[:1] == ("presets",) else "recipe"
    hint = suggestion(axis, grid.axes, f"axes of this {owner}") or f"add it to axes: {axis} = [...]"
    return Fault(path=path, message=f"unknown axis {axis!r}", hint=hint, needs=(("axes", axis),))


def missing_axes(needed: Iterable[str], seen: Iterable[str], recipe: Recipe) -> list[str]:
    """Axes of the recipe that are needed and not among the seen ones; unknown names are faults of their own."""
    visible = set(seen)
    return [axis for axis in dict.fromkeys(needed) if axis in recipe.axes and axis not in visible]


def add_hint(axes: Iterable[str], declared_at: Path) -> str:
    """What to add, and where."""
    quoted = ", ".join(f'"{axis}"' for axis in axes)
    return f"add {quoted} to {dotted(declared_at)}"


def unseen(
    recipe: Recipe, at: Path, what: str, needed: Iterable[str], owner: Path, seen: Iterable[str]
) -> Iterator[Fault]:
    """A fault if ``what`` has axes that its user does not see: the user could not tell its variants apart."""
    missing = missing_axes(needed, seen, recipe)
    if missing:
        axes = " and ".join(repr(axis) for axis in missing)
        declared_at = (*owner, "axes")
        message = f"{what} differs by axis {axes}, which {str(owner[0]).removesuffix('s')} {owner[1]!r} does not use"
        yield Fault(path=at, message=message, hint=add_hint(missing, declared_at), needs=(declared_at,))


def twice(items: Iterable[str], path: Path, what: str) -> Iterator[Fault]:
    """A fault for each item that was listed before."""
    seen: set[str] = set()
    for number, item in enumerate(items):
        if item in seen:
            yield Fault(path=(*path, number), message=f"{what} {item!r} is listed twice")
        seen.add(item)


def _value_faults(grid: Grid, place: Path) -> Iterator[Fault]:
    zipped = {axis for group in grid.matrix.zip for axis in group}
    for axis, values in grid.axes.items():
        path: Path = (*place, "axes", axis)
        if axis in _RESERVED:
            yield Fault(path=path, message=f"an axis cannot be called {axis!r}: {_RESERVED[axis]}")
        if axis not in zipped:  # rows of a zipped group must differ, not their parts
            yield from twice(values, path, "value")
        for number, value in enumerate(values):
            if axis == "python" and not PYTHON.fullmatch(value):
                message = f"{value!r} is not a Python version"
                yield Fault(
                    path=(*path, number), message=message, hint="use a version such as 3.11, or 3.13t for free-threaded"
                )
            elif not _VALUE.fullmatch(value):
                message = f"{value!r} cannot be part of a variant id"
                yield Fault(path=(*path, number), message=message, hint="use letters, digits, '.', '_', '+' and '-'")


def _declared_faults(recipe: Recipe) -> Iterator[Fault]:
    declared: list[tuple[Path, tuple[str, ...]]] = [
        *((("stages", name, "axes"), stage.axes) for name, stage in recipe.stages.items()),
        *((("environments", name, "axes"), item.axes) for name, item in recipe.environments.items()),
        *((("packages", name, "axes"), package.axes or ()) for name, package in recipe.packages.items()),
        *((("tests", name, "axes"), test.axes or ()) for name, test in recipe.tests.items()),
    ]
    for path, axes in declared:
        yield from twice(axes, path, "axis")
        by_default = path[0] == "environments" and axes == ("python",) and "python" not in recipe.axes
        for number, axis in enumerate(axes):
            if axis not in recipe.axes:
                fault = unknown_axis(recipe, axis, (*path, number))
                meant = nearest("python", recipe.axes)
                hint = f"did you mean to name axis {meant!r} 'python'?" if meant is not None else _NO_PYTHON
                yield replace(fault, hint=hint) if by_default else fault


def _zip_faults(grid: Grid, start: Path) -> Iterator[Fault]:
    used: dict[str, int] = {}
    for number, group in enumerate(grid.matrix.zip):
        path: Path = (*start, "matrix", "zip", number)
        if len(group) < 2:
            yield Fault(path=path, message="a zipped group needs at least two axes")
        for place, axis in enumerate(group):
            if axis not in grid.axes:
                yield unknown_axis(grid, axis, (*path, place))
            elif axis in used:
                where = (
                    "twice in this group" if used[axis] == number else f"in both this group and group {used[axis] + 1}"
                )
                yield Fault(path=(*path, place), message=f"axis {axis!r} is {where}, but zipped groups cannot overlap")
            used.setdefault(axis, number)
        values = {axis: grid.axes[axis] for axis in group if axis in grid.axes}
        needs: tuple[Path, ...] = tuple((*start, "axes", axis) for axis in values)
        if len({len(each) for each in values.values()}) > 1:
            counts = ", ".join(f"{axis} has {len(each)}" for axis, each in values.items())
            yield Fault(path=path, message=f"zipped axes need the same number of values: {counts}", needs=needs)
            continue
        rows = list(zip(*values.values(), strict=True))
        again = next((row for place, row in enumerate(rows) if row in rows[:place]), None)
        if again is not None:
            told = ", ".join(f"{axis} {value!r}" for axis, value in zip(values, again, strict=True))
            yield Fault(path=path, message=f"the combination of zipped values {told} is listed twice", needs=needs)


def _conditions(recipe: Recipe) -> Iterator[tuple[Path, Condition]]:
    for number, patch in enumerate(recipe.patches):
        yield ("patches", number, "when"), patch.when
    for name, source in recipe.sources.items():
        yield ("sources", name, "when"), source.when
    for name, table in recipe.recipes.items():
        yield ("recipes", name, "when"), table.when
    for name, stage in recipe.stages.items():
        yield ("stages", name, "when"), stage.when
    for name, package in recipe.packages.items():
        yield ("packages", name, "when"), package.when
        for number, waiver in enumerate(package.waive):
            yield ("packages", name, "waive", number, "when"), waiver.when
    for number, override in enumerate(recipe.override):
        yield ("override", number, "when"), override.when


def condition_faults(grid: Grid, path: Path, condition: Condition, start: Path = ()) -> Iterator[Fault]:
    """Faults of a condition on the axes of a grid that stands at ``start``."""
    for axis, wanted in condition.items():
        if axis not in grid.axes:
            yield unknown_axis(grid, axis, (*path, axis))
            continue
        for value in (wanted,) if isinstance(wanted, str) else wanted:
            if value not in grid.axes[axis]:
                yield Fault(
                    path=(*path, axis),
                    message=f"axis {axis!r} has no value {value!r}",
                    hint=suggestion(value, grid.axes[axis], "its values"),
                    needs=((*start, "axes", axis),),
                    absent=() if start else ((axis, value),),
                )
