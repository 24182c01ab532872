"""Switch sharing off: a recipe in which every stage sees some axes, so that nothing is built once for their values.

``--no-share python`` is how feedstocks work that have a configuration for each Python, where one build for all of them
would take too much room on the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from axletree.core.errors import Problem, UsageError
from axletree.core.near import nearest
from axletree.recipe.axes import axes_of_package, axes_of_test, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.recipe.model import Recipe


def unshared(recipe: Recipe, axes: Sequence[str]) -> Recipe:
    """A valid recipe whose stages, packages and tests all see some axes too.

    Sources and environments stay as they are: what they hold follows from a digest or a lock, so there is nothing to be
    built twice.

    Raises:
        UsageError: the recipe has no such axis.
    """
    problems = [_unknown(recipe, axis) for axis in dict.fromkeys(axes) if axis not in recipe.axes]
    if problems:
        raise UsageError(*problems)
    return replace(
        recipe,
        stages={
            name: replace(stage, axes=in_order(recipe, (*stage.axes, *axes))) for name, stage in recipe.stages.items()
        },
        packages={
            name: replace(package, axes=in_order(recipe, (*axes_of_package(recipe, package), *axes)))
            for name, package in recipe.packages.items()
        },
        tests={
            name: replace(test, axes=in_order(recipe, (*axes_of_test(recipe, test), *axes)))
            for name, test in recipe.tests.items()
        },
    )


def _unknown(recipe: Recipe, axis: str) -> Problem:
    near = nearest(axis, recipe.axes)
    hint = f"did you mean {near!r}?" if near else f"axes of {recipe.name}: {', '.join(recipe.axes) or 'none'}"
    return Problem(message=f"the recipe has no axis {axis!r}", hint=hint)
