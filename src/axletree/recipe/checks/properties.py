"""Properties of axis values: their names, the values they are for, and texts that read them."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from axletree.recipe.checks.axes import twice
from axletree.recipe.checks.values import inside_message
from axletree.recipe.faults import Fault, dotted, suggestion
from axletree.recipe.placeholders import ALWAYS, PARTS, scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.recipe.axes import Variant
    from axletree.recipe.base import Properties
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe
    from axletree.recipe.placeholders import Placeholder


def property_faults(properties: Properties) -> Iterator[Fault]:
    """Faults of properties that hold for recipes and data files alike."""
    for axis, values in properties.items():
        for value, texts in values.items():
            for name, text in texts.items():
                path: Path = ("properties", axis, value, name)
                if name in PARTS:
                    message = f"no property can be called {name!r}: {{{axis}.{name}}} is a part of the value"
                    yield Fault(path=path, message=message)
                reads = [each for each in scan(text).placeholders if each.name in (*ALWAYS, *properties)]
                if reads:
                    message = f"placeholders do not work in properties: {reads[0]} would not be replaced"
                    yield Fault(path=path, message=message, hint="move it to the text that uses the property")


def own_property_faults(recipe: Recipe) -> Iterator[Fault]:
    """Faults of the data files that a recipe names, and of properties in it: all must be for values that it has."""
    yield from twice(recipe.data, ("data",), "file")
    for number, name in enumerate(recipe.data):
        message = inside_message(name)
        if message is not None:
            yield Fault(path=("data", number), message=message)
    yield from property_faults(recipe.properties)
    for axis, values in recipe.properties.items():
        if axis not in recipe.axes:
            hint = suggestion(axis, recipe.axes, "axes of this recipe")
            path: Path = ("properties", axis)
            yield Fault(path=path, message=f"unknown axis {axis!r}", hint=hint, needs=(("axes", axis),))
            continue
        for value in values:
            if not any(fnmatch.fnmatchcase(each, value) or each == value for each in recipe.axes[axis]):
                yield Fault(
                    path=("properties", axis, value),
                    message=f"axis {axis!r} has no value {value!r}",
                    hint=suggestion(value, recipe.axes[axis], "its values"),
                    needs=(("axes", axis),),
                    absent=((axis, value),),
                )


def unknown_property(recipe: Recipe, placeholder: Placeholder, path: Path, known: Mapping[str, str]) -> Fault:
    """The fault of a text that asks for what no value of an axis has."""
    name, part = placeholder.name, placeholder.part
    hint = suggestion(part, known, f"properties of {name}")
    if hint is None and name in recipe.axes:
        table = dotted(("properties", name, recipe.axes[name][0]))
        hint = f'to use it as a property, set it for each value: [{table}] {part} = "..."'
    message = f"{placeholder} uses an unknown part {part!r}; valid parts are {', '.join(PARTS)}"
    return Fault(path=path, message=message, hint=hint, needs=(("axes", name),))


def missing_property(
    recipe: Recipe, placeholder: Placeholder, path: Path, variants: Sequence[Variant], known: Mapping[str, str]
) -> Fault | None:
    """The fault of a text that asks for a property which some of the values lack.

    Args:
        recipe: the recipe, with the properties of its data.
        placeholder: what the text asks for.
        path: where the text stands.
        variants: those that have the text.
        known: property of the axis -> the data file that other values have it from, empty for the recipe.
    """
    name, part = placeholder.name, placeholder.part
    values = dict.fromkeys(variant.values[name] for variant in variants)
    lacking = [value for value in values if part not in recipe.properties.get(name, {}).get(value, {})]
    if not lacking:
        return None
    tables = ", ".join(f'[{dotted(("properties", name, value))}] {part} = "..."' for value in lacking)
    file = known.get(part)
    message = f"{placeholder}: {name} has no property {part!r} for {_listed(lacking)}"
    return Fault(path=path, message=message, hint=f"add to {file or 'the recipe'}: {tables}")


def _listed(values: Sequence[str]) -> str:
    quoted = [repr(value) for value in values]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
