"""JSON schemas (draft 2020-12), derived from the types that read and write the data."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.events import Event
from axletree.recipe.model import Recipe
from axletree.recipe.only_environments import KEYS
from axletree.recipe.properties import DataTables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NULL = {"type": "null"}
FILLED_IN = {"Recipe": {"name", "version"}, "Stage": {"action"}, "Test": {"packages"}}
"""Keys that must be there, but that a short recipe leaves to its defaults."""
FROM_BASE = {"Recipe": {"source"}, "Preset": {"summary", "axes"}, "Checkout": {"git"}}
"""Further keys that must be there, but that a recipe with ``extends`` may leave to its base."""
_SHORT = {
    "required": ["source", "axes"],
    "properties": {
        "source": {"not": {"required": ["wheel"]}},
        "axes": {"required": ["python"]},
        "environments": {"propertyNames": {"enum": ["build", "test"]}},
        "stages": {"additionalProperties": {"not": {"required": ["action"]}}},
    },
}
"""As :func:`~axletree.recipe.defaults.is_short` says."""


def recipe_schema() -> dict[str, Any]:
    """Schema of a recipe file, for editors that complete and check TOML.

    It holds the structure only; what a recipe means is checked by :func:`~axletree.recipe.parse.parse_recipe`.
    """
    schema = toml_schema(Recipe, "Axletree recipe", "What to build, and for which variants.")
    for name, table in schema["$defs"].items():
        elsewhere = FILLED_IN.get(name, set()) | FROM_BASE.get(name, set())
        table["required"] = [key for key in table["required"] if key not in elsewhere]
    return schema | {"if": {"required": ["extends"]}, "else": _stands_alone()}


def _stands_alone() -> dict[str, Any]:
    """What must be in a recipe that extends no other: all of it, or little if the project has the rest."""
    named = {"if": {"properties": {"source": {"required": ["pypi"]}}}, "then": {"required": ["version"]}}
    whole = _required(FILLED_IN, stages="Stage", tests="Test")
    stated = _required(FROM_BASE, presets="Preset", checkouts="Checkout")
    only = {"required": ["environments"], "propertyNames": {"enum": [*KEYS]}}
    return {"if": only, "else": stated | {"if": _SHORT, "then": named, "else": whole}}


def _required(keys: Mapping[str, Iterable[str]], **tables: str) -> dict[str, Any]:
    """A schema that requires keys of the recipe, and of each table inside some of its tables."""
    inner = {table: {"additionalProperties": {"required": sorted(keys[name])}} for table, name in tables.items()}
    return {"required": sorted(keys["Recipe"]), "properties": inner}


def data_schema() -> dict[str, Any]:
    """Schema of a recipe's data file."""
    return toml_schema(DataTables, "Axletree data", "Properties of axis values.")


def event_schema() -> dict[str, Any]:
    """Schema of one line of ``axletree build --json``."""
    return schema_document(msgspec.json.schema(Event), "Axletree event", "One line of the event stream of a run.")


def toml_schema(model: type, title: str, description: str) -> dict[str, Any]:
    """Schema of TOML files that are read as a type."""
    return schema_document(_without_null(msgspec.json.schema(model)), title, description)


def schema_document(body: dict[str, Any], title: str, description: str) -> dict[str, Any]:
    """A schema with its head, as it is published."""
    document = {"$schema": DRAFT, "title": title, "description": description, **body}
    plain = msgspec.json.decode(msgspec.json.encode(document))  # lists, not the tuples of the model
    tidy: dict[str, Any] = _unindented(plain)
    return tidy


def _unindented(node: Any) -> Any:
    """A schema whose descriptions have no indentation of docstrings: from Python 3.13 on they come without."""
    if isinstance(node, list):
        return [_unindented(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else _unindented(value)
        for key, value in node.items()
    }


def _without_null(node: Any) -> Any:
    """A schema that does not allow null: TOML has none, an absent key is how a recipe says "nothing"."""
    if isinstance(node, list):
        return [_without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _without_null(value) for key, value in node.items() if not (key == "default" and value is None)}
    options = kept.get("anyOf")
    if options and _NULL in options:
        rest = [option for option in options if option != _NULL]
        del kept["anyOf"]
        kept |= rest[0] if len(rest) == 1 else {"anyOf": rest}
    return kept
