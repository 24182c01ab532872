"""TOML text -> :class:`~axletree.recipe.model.Recipe`, or all that is wrong with it, each with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import RecipeError
from axletree.core.formats import format_problem
from axletree.recipe.checks.asked import unread_faults
from axletree.recipe.checks.axes import axis_faults
from axletree.recipe.checks.checkouts import checkout_faults
from axletree.recipe.checks.compiling import compile_faults
from axletree.recipe.checks.environments import environment_faults
from axletree.recipe.checks.graph import graph_faults
from axletree.recipe.checks.images import recipe_image_faults
from axletree.recipe.checks.importing import import_faults
from axletree.recipe.checks.packages import package_faults
from axletree.recipe.checks.presets import own_preset_faults
from axletree.recipe.checks.properties import own_property_faults
from axletree.recipe.checks.relocation import relocation_faults
from axletree.recipe.checks.sources import source_faults
from axletree.recipe.checks.texts import placeholder_faults
from axletree.recipe.checks.values import value_faults
from axletree.recipe.checks.variants import variant_faults
from axletree.recipe.defaults import DERIVED, fill
from axletree.recipe.documents import problems_of, read_document
from axletree.recipe.editing import is_dropped
from axletree.recipe.faults import Fault, related, visible
from axletree.recipe.model import RECIPE_SCHEMA, Recipe
from axletree.recipe.properties import collect
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.recipe.defaults import Defaults
    from axletree.recipe.documents import Document
    from axletree.recipe.properties import DataFile, Library

_CHECKS = (
    axis_faults,
    graph_faults,
    environment_faults,
    import_faults,
    compile_faults,
    package_faults,
    relocation_faults,
    value_faults,
    source_faults,
    checkout_faults,
    recipe_image_faults,
)
_OWN_CHECKS = (own_property_faults, own_preset_faults)
"""Of what stands in the recipe itself, not in its data."""


def parse_recipe(
    text: str, *, filename: str, data: Sequence[DataFile] = (), defaults: Defaults | None = None
) -> Recipe:
    """Read a recipe.

    Args:
        text: content of the file.
        filename: how the user named it; problems carry it.
        data: the files that :func:`~axletree.recipe.properties.data_names` asks for.
        defaults: what fills in a recipe that states no stage.

    Returns:
        The recipe, its data's properties and presets among its own.

    Raises:
        RecipeError: with every problem of the text and its data: structure, references, placeholders and values. A text
            that is no TOML has one problem, at the place where reading it stopped.
    """
    return parse_document(fill(read_document(text, filename), defaults), data=data)


def parse_document(document: Document, *, data: Sequence[DataFile] = ()) -> Recipe:
    """Read a recipe that is a document: see :func:`parse_recipe`. Each problem names the place of what is wrong."""
    _require_format(document)
    faults, repaired = check_structure(document.values, Recipe)
    faults = [_with_way_out(fault, document.values) for fault in faults]
    written = msgspec.convert(repaired, Recipe)
    own = [fault for check in _OWN_CHECKS for fault in check(written)]
    own = _without_dropped(own, document)
    if written.remove:
        hint = 'set extends to the recipe to remove keys from: extends = "NAME"'
        own.append(
            Fault(path=("remove",), message="the recipe removes keys, but does not extend another recipe", hint=hint)
        )
    sound = not any(fault.path[:1] in (("data",), ("properties",)) for fault in [*faults, *own])
    library = collect(written, data, sound=sound, asked=document.asked)
    recipe = msgspec.structs.replace(written, properties=library.properties, presets=library.presets)
    faults += library.faults
    faults += _meaning(recipe, faults, own, library, document)
    told = {fault.path for fault in faults}
    faults += [fault for fault in unread_faults(document.values, document.asked) if fault.path not in told]
    problems = [*problems_of(document, faults), *library.problems]
    if problems:
        raise RecipeError(*problems)
    return recipe


def _with_way_out(fault: Fault, values: dict[str, Any]) -> Fault:
    """Say of a name or version that is missing what a short recipe needs instead."""
    source = table_of(values, "source")
    if fault.path not in {("name",), ("version",)} or fault.path[0] in values:
        return fault
    if fault.path == ("version",) and isinstance(source.get("pypi"), str):
        hint = f'add the version of {visible(source["pypi"])} to build, such as version = "1.0"; it selects the sdist'
    elif not table_of(values, "stages") and "python" not in table_of(values, "axes"):
        hint = 'set it, or set axes.python, such as python = ["3.12"], to read it from the project'
    elif other := next((each for each in table_of(values, "environments") if each not in DERIVED), None):
        hint = f"set it, or rename environments.{visible(other)} to {' or '.join(DERIVED)} to read it from the project"
    else:
        return fault
    return msgspec.structs.replace(fault, hint=hint)


def _require_format(document: Document) -> None:
    """A recipe of another version of Axletree has one problem: what else seems wrong with it need not be."""
    found = document.values.get("schema", RECIPE_SCHEMA)
    if isinstance(found, int):
        remake = f"rewrite the recipe for format {RECIPE_SCHEMA}"
        problem = format_problem(found, RECIPE_SCHEMA, file=document.filename, remake=remake)
        if problem is not None:
            fault = Fault(path=("schema",), message=problem.message, hint=problem.hint)
            raise RecipeError(*problems_of(document, [fault]))


def _without_dropped(faults: Iterable[Fault], document: Document) -> list[Fault]:
    """Faults without those of conditions on values that a base has and this recipe does not want."""
    return [fault for fault in faults if not any(is_dropped(document, *absent) for absent in fault.absent)]


def _meaning(
    recipe: Recipe, structural: Sequence[Fault], own_faults: Sequence[Fault], library: Library, document: Document
) -> list[Fault]:
    """Faults of meaning, without those that only follow from a structural one."""
    spoilt = [fault.path for fault in structural]

    def own(faults: Iterable[Fault]) -> list[Fault]:
        return [
            fault
            for fault in faults
            if not any(related(path, bad) for path in (fault.path, *fault.needs) for bad in spoilt)
        ]

    checked = [fault for check in _CHECKS for fault in check(recipe)]
    found = own(own_faults) + own(_without_dropped(checked, document))
    found += own(placeholder_faults(recipe, library))
    return found + own(_without_dropped(variant_faults(recipe, [*structural, *found], library), document))
