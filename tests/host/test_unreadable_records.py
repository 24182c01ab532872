"""Records that this version can't read: no plan takes them for a result, and the stage runs again and replaces them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from axletree.core.events import StageFinished
from axletree.core.values import Key, StageId, canonical_json
from axletree.execute.context import ActionContext, Outcome
from axletree.plan.keys import Surroundings, resolve_plan
from axletree.plan.step import Step
from axletree.store.store import Store
from support.requests import MADE_UP, MadeUpFacts, MadeUpParameters, request_of, run_request
from support.running import Here, execute_plan, plan_by_hand
from support.store import write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPEC = MADE_UP
LIB = StageId("lib")
PLAN = plan_by_hand(
    Step(name="lib", action="made-up", axes={}, parameters=MadeUpParameters(name="lib")),
    Step(name="bind", action="made-up", axes={}, parameters=MadeUpParameters(name="bind"), needs={"in:lib": "lib"}),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def making(number: int) -> Callable[[ActionContext[Any]], Outcome]:
    def action(context: ActionContext[Any]) -> Outcome:
        write_files(context.work / "out", {"number": str(number).encode()})
        return Outcome(tree=context.store.ingest(context.work / "out", adopt=True), facts=MadeUpFacts(made=number))

    return action


def rewrite(store: Store, key: Key, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """Put another record in the place of one."""
    path = store.record_path(key)
    data = canonical_json(change(json.loads(path.read_bytes()))) + b"\n"
    path.chmod(0o644)
    path.write_bytes(data)
    return data


def other_facts(record: dict[str, Any]) -> dict[str, Any]:
    """What a version wrote that counted in words."""
    return {**record, "facts": {"made": "many"}}


def first_schema(record: dict[str, Any]) -> dict[str, Any]:
    """As records were before facts and ingredients had types: nothing was left out, isolation was a fact."""
    return {
        "facts": {**record["facts"], "isolation": {"mounts": True, "network": True, "processes": True}},
        "findings": [],
        "finished_at": 1790000000.0,
        "ingredients": {
            "action": {"name": "made-up", "revision": 1},
            "axes": {},
            "inputs": {},
            "parameters": {"name": "lib", "flag": "", "audit": False},
        },
        "key": record["key"],
        "metrics": {"cpu": 1.0, "jobs": 1, "peak_memory": 1, "peak_process": 1, "wall": 1.0},
        "schema": 1,
        "stage": record["stage"],
        "tree": record["tree"],
    }


def cut_off(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("stage", "key")}


unreadable = pytest.mark.parametrize("change", [other_facts, first_schema, cut_off])


@unreadable
def test_the_stage_runs_again_and_its_record_takes_the_place(
    store: Store, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    request = request_of()
    run_request(store, request, making(1))
    old = rewrite(store, request.key, change)
    done, events = run_request(store, request, making(2))
    assert done
    finished = events[-1]
    assert isinstance(finished, StageFinished)
    assert finished.status == "done"
    record = store.get_record(request.key, SPEC.facts)
    assert record is not None
    assert (record.facts, record.tree) == ({"made": 2}, finished.tree)
    assert store.record_path(request.key).read_bytes() != old
    _, events = run_request(store, request, lambda _: pytest.fail("it ran again"))
    assert isinstance(events[-1], StageFinished)
    assert events[-1].status == "cached"


@unreadable
def test_planning_takes_it_for_no_result(store: Store, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    execute_plan(PLAN, store, Here(store, making(1), spec=SPEC), {"made-up": SPEC})
    before = resolve_plan(PLAN, {"made-up": SPEC}.__getitem__, Surroundings(), store.get_record)
    assert all(each.record is not None for each in before.values())
    rewrite(store, before[LIB].key, change)
    after = resolve_plan(PLAN, {"made-up": SPEC}.__getitem__, Surroundings(), store.get_record)
    assert after[LIB].key == before[LIB].key
    assert after[LIB].record is None
    assert not after[StageId("bind")].certain


@unreadable
def test_the_driver_runs_the_stage_and_goes_on_with_what_it_made(
    store: Store, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    first, _ = execute_plan(PLAN, store, Here(store, making(1), spec=SPEC), {"made-up": SPEC})
    rewrite(store, first.resolved[LIB].key, change)
    again = Here(store, making(2), spec=SPEC)
    second, _ = execute_plan(PLAN, store, again, {"made-up": SPEC})
    assert second.status == "done"
    assert [request.stage for request in again.ran] == ["lib", "bind"], "another tree, so what needs it is made anew"
    record = second.resolved[LIB].record
    assert record is not None
    assert record.facts == {"made": 2}
    third = Here(store, making(3), spec=SPEC)
    execute_plan(PLAN, store, third, {"made-up": SPEC})
    assert third.ran == []


def test_what_a_stage_was_last_is_not_known_from_it_either(store: Store) -> None:
    """Planning says that it has not run yet, and does not fail."""
    execute_plan(PLAN, store, Here(store, making(1), spec=SPEC), {"made-up": SPEC})
    path = store.last_path(LIB, PLAN.recipe)
    path.write_bytes(canonical_json(first_schema(json.loads(path.read_bytes()))) + b"\n")
    assert store.last_record(LIB, PLAN.recipe) is None
    again = Here(store, making(1), spec=SPEC)
    result, _ = execute_plan(PLAN, store, again, {"made-up": SPEC})
    assert (result.status, again.ran) == ("done", [])


def test_facts_of_a_newer_version_that_tell_more_are_a_result(store: Store) -> None:
    request = request_of()
    run_request(store, request, making(1))
    rewrite(store, request.key, lambda record: {**record, "facts": {"made": 1, "more": [1]}})
    _, events = run_request(store, request, lambda _: pytest.fail("it ran again"))
    assert isinstance(events[-1], StageFinished)
    assert events[-1].status == "cached"


def test_an_action_that_returns_the_facts_of_another_fails(store: Store) -> None:
    """Else its result would be stored, and never be found."""

    class Needed(MadeUpFacts, frozen=True, kw_only=True):
        word: str

    spec = msgspec.structs.replace(SPEC, facts=Needed)
    done, events = run_request(store, request_of(), making(1), spec=spec)
    assert not done
    assert isinstance(events[-1], StageFinished)
    assert events[-1].message == "action 'made-up' did not return a valid Needed: Object missing required field `word`"
    assert store.get_record(request_of().key) is None
