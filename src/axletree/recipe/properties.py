"""What is known of axis values: properties, from the recipe and from its data files.

A data file holds tables of a recipe, ``properties`` and ``presets``, that several recipes can share; it may say more
than a recipe has values for. What the recipe itself says goes before its data, a value before a pattern of values
(``"cu12*"``), a longer pattern before a shorter one.
"""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from axletree.core.errors import Problem, RecipeError
from axletree.core.trees import is_safe_path
from axletree.recipe.base import Name, Properties, Table
from axletree.recipe.checks.presets import preset_faults
from axletree.recipe.checks.properties import property_faults
from axletree.recipe.faults import Fault, dotted, suggestion
from axletree.recipe.presets import Preset
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe

Known = dict[str, dict[str, str]]
"""Axis -> property that some value has -> the file that says so, as the recipe names it; empty for the recipe."""


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file of a recipe."""

    name: str
    """As the recipe names it."""
    filename: str
    """As problems name it."""
    text: str | None = None
    """Its content; ``None`` where it cannot be read."""
    trouble: str = ""
    """Why not."""


class DataTables(Table, frozen=True, kw_only=True):
    """Content of a data file."""

    properties: Annotated[
        Properties, Meta(description="Properties of axis values, for placeholders: axis -> value -> property -> text.")
    ] = {}
    presets: Annotated[
        dict[Name, Preset], Meta(description="Build matrices of other projects, for `matrix --preset`.")
    ] = {}


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe's properties and presets, with its data files."""

    properties: Properties
    """Of the values that the recipe has, and no others."""
    presets: dict[str, Preset]
    known: Known
    complete: bool
    """Whether all data and properties could be read: if not, what seems to lack may stand there."""
    faults: tuple[Fault, ...]
    """What is wrong in the recipe itself."""
    problems: tuple[Problem, ...]
    """What is wrong in data files."""


class _Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Where properties come from."""

    name: str
    """Name of a data file, empty for the recipe itself."""
    tables: DataTables
    file: DataFile | None = None


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A text for a property of one value."""

    rank: tuple[bool, bool, int]
    """The recipe before data, a value before a pattern, a longer pattern before a shorter one."""
    layer: _Layer
    key: str
    """Value or pattern under which it stands."""
    text: str


def data_names(values: Mapping[str, object]) -> tuple[str, ...]:
    """The data files that a recipe's document names and may read, as far as it can be understood; relative to it."""
    names = values.get("data")
    named = names if isinstance(names, list) else []
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and is_safe_path(name)))


def collect(recipe: Recipe, files: Sequence[DataFile], *, sound: bool, asked: Sequence[Path] = ()) -> Library:
    """Read a recipe's data files, and put together what is known of its axes' values.

    Args:
        recipe: as it is written.
        files: what it names, read or not.
        sound: whether nothing is wrong with what it says itself of its data and properties.
        asked: what ``--set`` says; a property only replaces others, so something else must say it of some value.
    """
    by_name = {file.name: file for file in files}
    own = _Layer(name="", tables=DataTables(properties=recipe.properties, presets=recipe.presets))
    layers, faults, problems = [own], [], list[Problem]()
    for number, name in enumerate(recipe.data):
        file = by_name.get(name)
        if file is None:
            continue  # one that must not be read, or that is named twice: told elsewhere
        if file.text is None:
            hint = f"expected the file at {file.filename}"
            faults.append(Fault(path=("data", number), message=f"cannot read {name}: {file.trouble}", hint=hint))
            continue
        tables, found = _read(file.text, file.filename)
        layers.append(_Layer(name=name, tables=tables, file=file))
        problems += found
    faults += _unsaid(layers, asked)
    properties, conflicts = _merge(recipe, layers)
    presets, doubles = _presets(layers)
    for layer, fault in [*conflicts, *doubles]:
        if layer.file is None or layer.file.text is None:
            faults.append(fault)
        else:
            problems += locate_faults([fault], layer.file.text, layer.file.filename)
    return Library(
        properties=properties,
        presets=presets,
        known=_known(layers),
        complete=sound and len(layers) == 1 + len(recipe.data) and not problems,
        faults=tuple(faults),
        problems=tuple(problems),
    )


def properties_at(recipe: Recipe, values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What texts can read of axes' values beside the values themselves: axis -> property -> text."""
    return {axis: table[values[axis]] for axis, table in recipe.properties.items() if values.get(axis) in table}


def _read(text: str, filename: str) -> tuple[DataTables, list[Problem]]:
    try:
        document = decode_toml(text, filename)
    except RecipeError as error:
        return DataTables(), list(error.problems)
    faults, repaired = check_structure(document, DataTables)
    tables = msgspec.convert(repaired, DataTables)
    if not faults:
        faults += property_faults(tables.properties)
        faults += [fault for name, preset in tables.presets.items() for fault in preset_faults(name, preset)]
    return tables, locate_faults(faults, text, filename)


def _merge(recipe: Recipe, layers: Sequence[_Layer]) -> tuple[Properties, list[tuple[_Layer, Fault]]]:
    merged: Properties = {}
    conflicts: dict[tuple[str, Path], tuple[_Layer, Fault]] = {}
    for axis, values in recipe.axes.items():
        for value in values:
            texts: dict[str, str] = {}
            for name, found in _candidates(layers, axis, value).items():
                best = [each for each in found if each.rank == max(each.rank for each in found)]
                texts[name] = best[0].text
                other = next((each for each in best if each.text != best[0].text), None)
                if other is not None:
                    fault = _conflict(axis, value, name, best[0], other)
                    conflicts.setdefault((other.layer.name, fault.path), (other.layer, fault))
            if texts:
                merged.setdefault(axis, {})[value] = texts
    return merged, list(conflicts.values())


def _candidates(layers: Sequence[_Layer], axis: str, value: str) -> dict[str, list[_Found]]:
    found: dict[str, list[_Found]] = {}
    for layer in layers:
        for key, texts in layer.tables.properties.get(axis, {}).items():
            if key == value or fnmatch.fnmatchcase(value, key):
                for name, text in texts.items():
                    rank = (layer.file is None, key == value, len(key))
                    found.setdefault(name, []).append(_Found(rank=rank, layer=layer, key=key, text=text))
    return found


def _conflict(axis: str, value: str, name: str, one: _Found, other: _Found) -> Fault:
    place = dotted(("properties", axis, one.key, name))
    where = f"{place} of {one.layer.name}" if one.layer.name != other.layer.name else place
    return Fault(
        path=("properties", axis, other.key, name),
        message=f"this value of {name} for {axis} {value!r} conflicts with {where}",
        hint=f"set the value in the recipe: [{dotted(('properties', axis, value))}]",
    )


def _presets(layers: Sequence[_Layer]) -> tuple[dict[str, Preset], list[tuple[_Layer, Fault]]]:
    presets: dict[str, Preset] = {}
    doubles: list[tuple[_Layer, Fault]] = []
    for layer in layers:
        for name, preset in layer.tables.presets.items():
            if name in presets:
                message = f"two presets are called {name!r}"
                doubles.append((layer, Fault(path=("presets", name), message=message, hint="rename one of them")))
            presets.setdefault(name, preset)
    return presets, doubles


def _known(layers: Sequence[_Layer]) -> Known:
    known: Known = {}
    for layer in reversed(layers):
        for axis, values in layer.tables.properties.items():
            for name in _names(values):
                known.setdefault(axis, {}).setdefault(name, layer.name)
    return known


def _unsaid(layers: Sequence[_Layer], asked: Sequence[Path]) -> Iterator[Fault]:
    """Properties that are asked for and that nothing else says: they would change nothing."""
    for path in asked:
        if path[0] != "properties":
            continue
        _, axis, _, name = path
        known = {
            each
            for layer in layers
            for value, texts in layer.tables.properties.get(str(axis), {}).items()
            for each in texts
            if layer.file is not None or ("properties", axis, value, each) not in asked
        }
        if name not in known:
            hint = suggestion(str(name), known, "its properties")
            yield Fault(path=path, message=f"axis {axis!r} has no property {name!r}", hint=hint)


def _names(values: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for texts in values.values():
        yield from texts
