"""What actions declare: types that have a schema, defaults that are left out of keys, values that come back as sent."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axletree.core.records import Ingredients, LocalFacts, StageRequest
from axletree.core.values import StageId, canonical_json, digest_of, key_of
from axletree.plan.actions.fetch import CommitSource, FetchParameters, FileSource, FolderSource
from axletree.plan.actions.spec import Facts, Parameters
from axletree.plan.actions.table import ACTIONS
from axletree.plan.graph import Plan, PlannedStage, build_plan
from axletree.plan.keys import resolve_stage
from axletree.plan.step import Step
from axletree.recipe.axes import expand, variant_id
from axletree.recipe.parse import parse_recipe
from axletree.recipe.properties import DataFile, data_names
from axletree.recipe.target import resolve
from support import ferry, kept, shaped, tiny, tug, wagon
from support.recipes import SMALL, shipped_defaults
from support.requests import MADE_UP, NOTHING, request_of
from support.structs import structs_in, values_of
from support.targets import MANY, SURROUNDINGS, inputs_of, plan_of, recipe_texts

SHIPPED = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
FILLED = {"PYTHONS": '"3.11", "3.12"', "PYTHON": "3.11", "FIRST": "3.11", "DEPOT": "/depot", "TOOLS": '"c++"'}
"""Words of our own recipes that a test fills in."""
OURS = {
    "small": SMALL,
    "many": MANY,
    "kept": kept.RECIPE,
    "shaped": shaped.RECIPE,
    "tiny": tiny.RECIPE,
    "tug": tug.RECIPE,
    "wagon": wagon.RECIPE + wagon.PACKAGES + wagon.PREFIX_STAGES,
    "ferry": ferry.RECIPE,
}
VARIANTS = 6
"""Of a recipe's variants as many are planned, from all over the matrix."""
KINDS = sorted({kind for spec in ACTIONS.values() for kind in (spec.parameters, spec.facts)}, key=str)
CLOSED = settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])

ONLY_ONE = (None, False, True, 0, "", ())
"""Values of which Python has one each."""

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def shipped_plan(path: Path) -> Plan:
    text = path.read_text("utf-8")
    files = [path.parent / name for name in data_names(tomllib.loads(text))]
    data = [
        DataFile(name=str(file.relative_to(path.parent)), filename=file.name, text=file.read_text("utf-8"))
        for file in files
    ]
    recipe = parse_recipe(text, filename=path.name, data=data, defaults=shipped_defaults(path))
    variants = tuple(expand(recipe))
    targets = [resolve(recipe, variant) for variant in variants[:: -(-len(variants) // VARIANTS)]]
    return build_plan(targets, inputs_of(targets), label=lambda values: variant_id(values, recipe.axes))


def assert_the_same_after_a_trip(value: msgspec.Struct) -> None:
    data = msgspec.json.encode(value)
    again = msgspec.json.decode(data, type=type(value))
    assert again == value
    assert msgspec.json.encode(again) == data
    plain = msgspec.json.decode(data)
    assert msgspec.json.encode(msgspec.convert(plain, type(value))) == data


def assert_each_step_is_as_declared(plan: Plan) -> None:
    assert plan.stages
    for stage in plan.stages.values():
        assert type(stage.step.parameters) is ACTIONS[stage.action].parameters
        assert_the_same_after_a_trip(stage.step.parameters)


@each_kind
def test_each_type_has_a_schema(kind: type[msgspec.Struct]) -> None:
    schema = msgspec.json.schema(kind)
    assert kind.__name__ in schema["$defs"]


@each_kind
def test_parameters_and_facts_are_what_they_are_declared_as(kind: type[msgspec.Struct]) -> None:
    """Parameters are all known; of facts a newer version may tell more."""
    config = kind.__struct_config__
    assert issubclass(kind, Parameters | Facts)
    assert config.frozen
    assert config.omit_defaults
    assert config.forbid_unknown_fields is issubclass(kind, Parameters)


@pytest.mark.parametrize(
    "struct",
    sorted({struct for kind in (*KINDS, Ingredients, LocalFacts) for struct in structs_in(kind)}, key=str),
    ids=lambda struct: struct.__name__,
)
def test_what_is_left_out_at_its_default_is_recognised_as_it(struct: type[msgspec.Struct]) -> None:
    """msgspec compares by identity: a default of any other kind would be in keys at times, and at times not."""
    if not struct.__struct_config__.omit_defaults:
        return
    for field in msgspec.structs.fields(struct):
        if field.default_factory is not msgspec.NODEFAULT:
            assert field.default_factory in {dict, list, set}, field.name
        elif field.default is not msgspec.NODEFAULT:
            assert any(field.default is one for one in ONLY_ONE), field.name


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_steps_of_recipes_that_ship_come_back_as_they_were(path: Path) -> None:
    assert_each_step_is_as_declared(shipped_plan(path))


@pytest.mark.parametrize("name", OURS)
def test_steps_of_small_recipes_come_back_as_they_were(name: str) -> None:
    text = OURS[name]
    for word, value in FILLED.items():
        text = text.replace(word, value)
    assert_each_step_is_as_declared(plan_of(text))


@given(recipe_texts())
@CLOSED
def test_steps_of_any_recipe_come_back_as_they_were(text: str) -> None:
    assert_each_step_is_as_declared(plan_of(text))


@each_kind
@given(st.data())
@CLOSED
def test_any_value_comes_back_as_it_was(kind: type[msgspec.Struct], data: st.DataObject) -> None:
    assert_the_same_after_a_trip(data.draw(values_of(kind)))


@each_kind
@given(st.data())
@CLOSED
def test_a_key_survives_the_trip_to_the_process_that_runs_the_stage(
    kind: type[msgspec.Struct], data: st.DataObject
) -> None:
    if not issubclass(kind, Parameters):
        return
    request = request_of(parameters=data.draw(values_of(kind)))
    again = msgspec.json.decode(canonical_json(request), type=StageRequest)
    assert again == request
    assert key_of(again.ingredients) == request.key


@pytest.mark.parametrize(
    "source",
    [
        FolderSource(tree=digest_of(b"tree")),
        CommitSource(url="https://example.org/x.git", commit="12" * 20, submodules=False),
        FileSource(filename="x-1.tar.gz", sha256=digest_of(b"x")),
        FileSource(filename="x-1.tar.gz", sha256=digest_of(b"x"), size=0, url="https://example.org/x-1.tar.gz"),
    ],
    ids=["folder", "commit", "bare", "whole"],
)
def test_each_kind_of_source_comes_back_as_it_was(source: Any) -> None:
    assert_the_same_after_a_trip(FetchParameters(source=source))


class Before(Parameters, frozen=True, kw_only=True):
    """An action's parameters."""

    name: str
    flags: tuple[str, ...] = ()


class After(Parameters, frozen=True, kw_only=True):
    """The same a version later."""

    first: bool = False
    name: str
    flags: tuple[str, ...] = ()
    word: str = ""
    count: int = 0
    wanted: str | None = None
    more: dict[str, str] = {}  # noqa: RUF012 (a msgspec structure copies it)
    many: tuple[Before, ...] = ()


def key_with(parameters: Parameters) -> str:
    spec = msgspec.structs.replace(MADE_UP, parameters=type(parameters))
    step = Step(name="lib", action="made-up", axes={}, parameters=parameters)
    stage = PlannedStage(id=StageId("lib"), step=step, needs={}, variants=("default",))
    return resolve_stage(stage, spec, SURROUNDINGS, inputs={}, lookup=NOTHING).key


@given(st.data())
@CLOSED
def test_a_new_field_with_a_default_changes_no_key(data: st.DataObject) -> None:
    old = data.draw(values_of(Before))
    new = After(name=old.name, flags=old.flags)
    assert key_with(new) == key_with(old)
    said = After(name=old.name, flags=old.flags, first=False, word="", count=0, wanted=None, more={}, many=())
    assert key_with(said) == key_with(old), "what is said and is the default is no change either"
    assert msgspec.json.decode(msgspec.json.encode(old), type=After) == new


@pytest.mark.parametrize(
    "given_",
    [{"first": True}, {"word": "x"}, {"count": 1}, {"wanted": ""}, {"more": {"": ""}}, {"many": (Before(name=""),)}],
    ids=str,
)
def test_a_new_field_that_is_used_changes_the_key(given_: dict[str, Any]) -> None:
    assert key_with(After(name="x", **given_)) != key_with(Before(name="x"))
