"""Recipes that a recipe takes trees and packages from, as they are written: the table ``recipes``, and references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from axletree.recipe.axes import matches
from axletree.recipe.base import AxisName, Condition, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.recipe.model import Recipe


class Import(Table, frozen=True, kw_only=True):
    """Another recipe whose trees and packages this one uses. It keeps its own source, patches and locks."""

    recipe: Annotated[
        str,
        Meta(description="Name of a shipped recipe, or path of a recipe file, relative to this recipe."),
    ]
    axes: Annotated[
        dict[AxisName, str],
        Meta(
            description="Axis of the imported recipe -> value, with placeholders of this recipe. An axis of this recipe is passed to the axis of the same name by default."
        ),
    ] = {}
    when: Annotated[
        Condition,
        Meta(
            description="Only for variants that match: axis -> value or list of values. Stages and environments of other variants run without what they use of this recipe."
        ),
    ] = {}


def split_reference(name: str) -> tuple[str, str] | None:
    """``magma/compile`` -> ``magma`` in the table ``recipes``, and its stage or package; ``None`` for a name without."""
    alias, slash, inner = name.partition("/")
    return (alias, inner) if slash else None


def presence(recipe: Recipe, name: str) -> Condition:
    """The condition on which a variant has an input: that of the stage, or of the recipe that it is imported from."""
    reference = split_reference(name)
    if reference is not None:
        table = recipe.recipes.get(reference[0])
        return table.when if table is not None else {}
    stage = recipe.stages.get(name)
    return stage.when if stage is not None else {}


def is_present(recipe: Recipe, name: str, values: Mapping[str, str]) -> bool:
    """Whether a variant has an input: see :func:`presence`."""
    return matches(presence(recipe, name), values)
