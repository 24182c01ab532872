"""The loop of a run with an executor that is told what happens: what is remembered, started again, refused, told."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.core.events import Event, StageFinished, StageProgress, StageStarted
from axletree.core.records import Metrics, StageRecord
from axletree.core.trees import Entry, make_tree
from axletree.core.values import StageId
from axletree.execute.stage import stage_lock
from axletree.plan.admission import MIB, Budget
from axletree.plan.step import Step
from axletree.store.store import Store
from axletree.view.plain import plain_lines
from axletree.view.state import RunView, apply
from support.requests import MADE_UP, MadeUpParameters
from support.running import GIB, ROOMY, execute_plan, plan_by_hand

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from axletree.core.records import StageRequest
    from axletree.execute.driver import Result
    from axletree.plan.graph import Plan


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def plan_of(*names: str, flag: str = "") -> Plan:
    """Stages that need nothing."""
    steps = (
        Step(name=name, action="run", axes={}, parameters=MadeUpParameters(name=name, flag=flag)) for name in names
    )
    return plan_by_hand(*steps)


@dataclass
class Play:
    """An executor: each stage does at its first, second ... start what the script says, and else it is done."""

    store: Store
    script: Mapping[str, list[StageFinished]] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    started: list[StageRequest] = field(default_factory=list)

    async def run(self, request: StageRequest, emit: Callable[[Event], None]) -> StageFinished:
        del emit
        self.started.append(request)
        scripted = self.script.get(request.stage, [])
        if scripted:
            return scripted.pop(0)
        data = request.key.encode()
        entry = Entry(path="key", blob=self.store.put_bytes(data), size=len(data))
        tree = self.store.put_tree(make_tree([entry]))
        record = StageRecord(
            stage=request.stage, key=request.key, tree=tree, ingredients=request.ingredients, metrics=self.metrics
        )
        self.store.put_record(record)
        return StageFinished(time=time.time(), stage=request.stage, status="done", key=request.key, tree=tree)


def killed(stage: str) -> StageFinished:
    return StageFinished(time=1.0, stage=StageId(stage), status="failed", message="killed", exit_code=1, killed=True)


def run(plan: Plan, play: Play, *, budget: Budget = ROOMY, keep_going: bool = False) -> tuple[Result, list[Event]]:
    specs = {"run": msgspec.structs.replace(MADE_UP, compiles=True)}
    return execute_plan(plan, play.store, play, specs, budget=budget, keep_going=keep_going)


def test_the_most_memory_that_a_stage_ever_took_is_remembered(store: Store) -> None:
    """The record keeps what was measured; what is expected of the stage does not shrink with a warm compiler cache."""
    name = StageId("lib")
    run(plan_of("lib", flag="-O1"), Play(store, metrics=Metrics(wall=60.0, peak_process=2 * GIB)))
    result, _ = run(plan_of("lib", flag="-O2"), Play(store, metrics=Metrics(wall=1.0, peak_process=90 * MIB)))
    record, last = result.resolved[name].record, store.last_record(name, "small")
    assert record is not None
    assert last is not None
    assert record.metrics.peak_process == 90 * MIB
    assert (last.metrics.wall, last.metrics.peak_process) == (1.0, 2 * GIB)
    play = Play(store)
    run(plan_of("lib", flag="-O3"), play, budget=Budget(cores=8, slots=8, memory=7 * GIB, disk=GIB))
    assert play.started[0].grant.jobs == 3


def test_a_killed_stage_runs_again_alone_and_with_one_job(store: Store) -> None:
    play = Play(store, {"lib": [killed("lib")]})
    result, events = run(plan_of("lib", "other"), play)
    assert result.status == "done"
    assert [(each.stage, each.grant.jobs) for each in play.started] == [("lib", 8), ("lib", 1), ("other", 8)]
    assert [(e.stage, e.status) for e in events if isinstance(e, StageFinished)] == [("lib", "done"), ("other", "done")]
    assert [e.message for e in events if isinstance(e, StageProgress)] == [
        "killed, most likely because memory ran out; running it again on its own with a single job"
    ]


def test_a_stage_that_is_killed_alone_as_well_has_failed_and_says_so(store: Store) -> None:
    play = Play(store, {"lib": [killed("lib"), killed("lib")]})
    result, _ = run(plan_of("lib"), play)
    assert len(play.started) == 2
    (failure,) = result.failures
    assert (
        failure.message == "killed; the stage had already been killed once and run again on its own with a single job"
    )
    assert result.exit_code == 1


def test_a_stage_that_another_run_has_in_hand_is_said_to_wait(store: Store, tmp_path: Path) -> None:
    known = Play(Store.open(tmp_path / "another"))
    run(plan_of("lib", "other"), known)
    key = next(request.key for request in known.started if request.stage == "lib")
    with store.lock(stage_lock(key)):
        _, events = run(plan_of("lib", "other"), Play(store))
    started = {event.stage: event for event in events if isinstance(event, StageStarted)}
    assert {stage: event.waits for stage, event in started.items()} == {"lib": True, "other": False}
    states = list(itertools.accumulate(events, apply, initial=RunView()))
    said = [
        line
        for before, event, after in zip(states, events, states[1:], strict=False)
        for line in plain_lines(before, event, after)
    ]
    assert any("lib  waiting for a different run to finish the same stage" in line for line in said)
    assert not any("lib  started" in line for line in said)
