"""Running a plan that was made by hand, as ``build`` does, with stages in this process or in processes of their own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from axletree.core.events import Event, RunStarted, StageFinished
from axletree.core.values import StageId
from axletree.execute.driver import BuildRun, Result, execute
from axletree.plan.admission import MIB, Budget
from axletree.plan.graph import Plan, PlannedStage
from axletree.plan.keys import Surroundings
from support.requests import run_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.core.records import StageRequest
    from axletree.execute.executor import Executor
    from axletree.plan.actions.spec import ActionSpec
    from axletree.plan.step import Step
    from axletree.store.store import Store
    from support.requests import Action

GIB = 1024 * MIB
ROOMY = Budget(cores=8, slots=8, memory=64 * GIB, disk=100 * GIB)


def plan_by_hand(*steps: Step) -> Plan:
    """A plan of one variant; a step needs others by their names."""
    stages = {
        StageId(step.name): PlannedStage(
            id=StageId(step.name),
            step=step,
            needs={name: StageId(need) for name, need in step.needs.items()},
            variants=("default",),
        )
        for step in steps
    }
    return Plan(recipe="small", version="1.0", variants=("default",), stages=stages)


class Here:
    """An executor that runs stages in this process, and remembers which."""

    def __init__(self, store: Store, action: Action, *, spec: ActionSpec) -> None:
        """All stages are of one action."""
        self.store, self.action, self.spec = store, action, spec
        self.ran: list[StageRequest] = []

    async def run(self, request: StageRequest, emit: Callable[[Event], None]) -> StageFinished:
        self.ran.append(request)
        _, events = run_request(self.store, request, self.action, spec=self.spec, emit=emit)
        finished = events[-1]
        assert isinstance(finished, StageFinished)
        return finished


def execute_plan(
    plan: Plan,
    store: Store,
    executor: Executor,
    specs: Mapping[str, ActionSpec],
    *,
    budget: Budget = ROOMY,
    keep_going: bool = False,
) -> tuple[Result, list[Event]]:
    """Run a plan, with all that is remembered of its stages."""
    job = BuildRun(
        plan=plan,
        specs=dict(specs),
        surroundings=Surroundings(),
        budget=budget,
        last={name: last for name in plan.stages if (last := store.last_record(name, plan.recipe)) is not None},
        local={},
        keep_going=keep_going,
    )
    started = RunStarted(time=time.time(), recipe=plan.recipe, variants=plan.variants, stages=())
    events: list[Event] = []
    result = execute(job, store, executor, started=started, emit=events.append)
    return result, events
