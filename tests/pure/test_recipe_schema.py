"""The JSON schemas are schemas, and agree with what the code reads and writes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, ValidationError

from axletree.core import events
from axletree.core.values import StageId
from axletree.recipe.schema import data_schema, event_schema, recipe_schema
from support.recipes import SMALL

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SHIPPED = sorted([*(ROOT / "recipes").glob("*.toml"), *(ROOT / "recipes" / "env").glob("*.toml")])
FAULTY = ROOT / "tests" / "golden" / "recipe_errors"


def validate(document: dict[str, Any], schema: dict[str, Any]) -> None:
    Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("schema", [recipe_schema(), data_schema(), event_schema()], ids=["recipe", "data", "events"])
def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"]
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_recipes_are_valid(path: Path) -> None:
    validate(tomllib.loads(path.read_text(encoding="utf-8")), recipe_schema())


@pytest.mark.parametrize("name", ["blas", "cpu", "cuda", "presets", "python", "rocm"])
def test_shipped_data_is_valid(name: str) -> None:
    text = (ROOT / "recipes" / "pytorch" / f"{name}.toml").read_text(encoding="utf-8")
    validate(tomllib.loads(text), data_schema())
    with pytest.raises(ValidationError):
        validate(tomllib.loads(f"{text}\n[propertys]\n"), data_schema())


def test_a_small_recipe_is_valid() -> None:
    validate(tomllib.loads(SMALL), recipe_schema())


def test_a_recipe_may_leave_to_its_defaults_what_they_know_but_not_its_source() -> None:
    short = tomllib.loads('axes.python = ["3.11"]\n[source]\npath = "."\n[stages.build]\nenv = { A = "1" }\n')
    validate(short, recipe_schema())
    with pytest.raises(ValidationError):
        validate({key: value for key, value in short.items() if key != "source"}, recipe_schema())


SHORT = 'axes.python = ["3.11"]\n[source]\npath = "."\n'


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ('extends = "pytorch"', None),
        ('extends = "pytorch"\n[presets.mine.axes]\n[checkouts.x]\nref = "v1"\n[stages.new]\nenv = {}', None),
        ('[stages.build]\naction = "build"', "source"),
        (SHORT, None),
        (f"{SHORT}[environments.test]\n[tests.own]\ncommands = ['true']", None),
        (SHORT.replace('path = "."', 'pypi = "small"'), "version"),
        (f'{SHORT}[stages.build]\naction = "build"', "name"),
        (f"{SHORT}[environments.other]", "name"),
        (SHORT.replace("path", "wheel"), "name"),
        (f"{SMALL}[stages.more]\nenv = {{}}", "action"),
        (f"{SMALL}[tests.more]\ncommands = ['true']", "packages"),
        (f"{SMALL}[presets.mine]\nsummary = 'x'", "axes"),
        (f"{SMALL}[checkouts.x]\nref = 'v1'", "git"),
    ],
)
def test_what_must_be_there_follows_from_where_the_rest_comes_from(text: str, lacks: str | None) -> None:
    errors = list(Draft202012Validator(recipe_schema()).iter_errors(tomllib.loads(text)))
    assert [error.message for error in errors][:1] == ([] if lacks is None else [f"{lacks!r} is a required property"])


@pytest.mark.parametrize("name", ["unknown-key", "wrong-type", "wrong-literal", "empty-list", "bad-name"])
def test_structural_faults_are_seen_by_an_editor_too(name: str) -> None:
    document = tomllib.loads((FAULTY / f"{name}.toml").read_text(encoding="utf-8"))
    with pytest.raises(ValidationError):
        validate(document, recipe_schema())


def keys(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield key, value
            yield from keys(value)
    if isinstance(node, list):
        for value in node:
            yield from keys(value)


def test_a_recipe_cannot_say_null() -> None:
    assert not [
        value for key, value in keys(recipe_schema()) if value == "null" or (key == "default" and value is None)
    ]


def test_every_key_of_a_recipe_is_described() -> None:
    silent = [
        f"{name}.{key}"
        for name, table in recipe_schema()["$defs"].items()
        for key, value in table["properties"].items()
        if not value.get("description")
    ]
    assert not silent


@pytest.mark.parametrize(
    "event",
    [
        events.RunFinished(time=1.5, status="done", ran=1, cached=2, failed=0, blocked=0, wall=3.0),
        events.StageProgress(time=1.5, stage=StageId("build[py311]"), message="[1/2]", done=1, total=2),
        events.StageFinished(time=1.5, stage=StageId("build[py311]"), status="failed", cause=("error: x",)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_are_valid(event: events.Event) -> None:
    document = json.loads(msgspec.json.encode(event))
    validate(document, event_schema())
    for wrong in ({**document, "event": "unheard-of"}, {**document, "time": "now"}):
        with pytest.raises(ValidationError):
            validate(wrong, event_schema())
