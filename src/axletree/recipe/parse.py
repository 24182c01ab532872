"""TOML text -> :class:`~axletree.recipe.model.Recipe`, or all that is wrong with it, each with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import RecipeError
from axletree.core.formats import format_problem
from axletree.recipe.checks.axes import axis_faults
from axletree.recipe.checks.checkouts import checkout_faults
from axletree.recipe.checks.compiling import compile_faults
from axletree.recipe.checks.environments import environment_faults
from axletree.recipe.checks.graph import graph_faults
from axletree.recipe.checks.packages import package_faults
from axletree.recipe.checks.presets import own_preset_faults
from axletree.recipe.checks.properties import own_property_faults
from axletree.recipe.checks.relocation import relocation_faults
from axletree.recipe.checks.texts import placeholder_faults
from axletree.recipe.checks.values import value_faults
from axletree.recipe.checks.variants import variant_faults
from axletree.recipe.faults import Fault, related
from axletree.recipe.model import RECIPE_SCHEMA, Recipe
from axletree.recipe.properties import collect
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.recipe.properties import DataFile, Library

_CHECKS = (
    axis_faults,
    graph_faults,
    environment_faults,
    compile_faults,
    package_faults,
    relocation_faults,
    value_faults,
    checkout_faults,
)
_OWN_CHECKS = (own_property_faults, own_preset_faults)
"""Of what stands in the recipe itself, not in its data."""


def parse_recipe(text: str, *, filename: str, data: Sequence[DataFile] = ()) -> Recipe:
    """Read a recipe.

    Args:
        text: content of the file.
        filename: how the user named it; problems carry it.
        data: the files that :func:`~axletree.recipe.properties.data_names` asks for.

    Returns:
        The recipe, its data's properties and presets among its own.

    Raises:
        RecipeError: with every problem of the text and its data: structure, references, placeholders and values. A text
            that is no TOML has one problem, at the place where reading it stopped.
    """
    values = decode_toml(text, filename)
    _require_format(values, text, filename)
    faults, repaired = check_structure(values, Recipe)
    written = msgspec.convert(repaired, Recipe)
    own = [fault for check in _OWN_CHECKS for fault in check(written)]
    sound = not any(fault.path[:1] in (("data",), ("properties",)) for fault in [*faults, *own])
    library = collect(written, data, sound=sound)
    recipe = msgspec.structs.replace(written, properties=library.properties, presets=library.presets)
    faults += library.faults
    faults += _meaning(recipe, faults, own, library)
    problems = [*locate_faults(faults, text, filename), *library.problems]
    if problems:
        raise RecipeError(*problems)
    return recipe


def _require_format(values: dict[str, Any], text: str, filename: str) -> None:
    """A recipe of another version of Axletree has one problem: what else seems wrong with it need not be."""
    found = values.get("schema", RECIPE_SCHEMA)
    if isinstance(found, int):
        problem = format_problem(found, RECIPE_SCHEMA, file=filename, remake=f"write it for format {RECIPE_SCHEMA}")
        if problem is not None:
            fault = Fault(path=("schema",), message=problem.message, hint=problem.hint)
            raise RecipeError(*locate_faults([fault], text, filename))


def _meaning(recipe: Recipe, structural: Sequence[Fault], own_faults: Sequence[Fault], library: Library) -> list[Fault]:
    """Faults of meaning, without those that only follow from a structural one."""
    spoilt = [fault.path for fault in structural]

    def own(faults: Iterable[Fault]) -> list[Fault]:
        return [
            fault
            for fault in faults
            if not any(related(path, bad) for path in (fault.path, *fault.needs) for bad in spoilt)
        ]

    found = own(own_faults) + own(fault for check in _CHECKS for fault in check(recipe))
    found += own(placeholder_faults(recipe, library))
    return found + own(variant_faults(recipe, [*structural, *found], library))
