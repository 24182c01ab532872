"""The scheduler: single cases, and properties over runs of made-up plans on a made-up machine."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.records import Metrics
from axletree.core.values import StageId
from axletree.plan.admission import MIB, Budget, Cost
from axletree.plan.schedule import (
    FINAL,
    Block,
    Cancel,
    Ended,
    Hit,
    Killed,
    Miss,
    Refused,
    Resolve,
    Scheduler,
    Start,
    Work,
)
from axletree.recipe.target import TargetResources

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping

    from axletree.plan.schedule import Instruction, Signal, State

GIB = 1024 * MIB
ROOMY = Budget(cores=8, slots=8, memory=64 * GIB, disk=100 * GIB)
GOOD = {"done", "cached"}


def work(name: str, *needs: str, wall: float = 1.0, compiles: bool = False, **resources: int) -> Work:
    return Work(
        id=StageId(name),
        needs=tuple(StageId(need) for need in needs),
        compiles=compiles,
        resources=TargetResources(**resources),
        last=Metrics(wall=wall),
    )


def table(*works: Work) -> dict[StageId, Work]:
    return {each.id: each for each in works}


@dataclass
class Machine:
    """Answers instructions and watches what the scheduler promises. ``random`` decides which stage ends next."""

    works: Mapping[StageId, Work]
    budget: Budget
    keep_going: bool
    random: random.Random
    hits: frozenset[StageId] = frozenset()
    failing: frozenset[StageId] = frozenset()
    killed: frozenset[StageId] = frozenset()
    again: set[StageId] = field(default_factory=set)
    """Stages that were killed once."""
    cancel_at: int | None = None
    signals: list[Signal] = field(default_factory=list)
    told: list[list[Instruction]] = field(default_factory=list)
    started: list[StageId] = field(default_factory=list)
    running: dict[StageId, Cost] = field(default_factory=dict)
    ended: dict[StageId, str] = field(default_factory=dict)
    stopped: bool = False

    def run(self) -> Scheduler:
        scheduler = Scheduler(self.works, self.budget, keep_going=self.keep_going)
        waiting: deque[StageId] = deque()
        self.take(scheduler.begin(), waiting)
        while waiting or self.running:
            self.take(scheduler.handle(self.next_signal(waiting)), waiting)
            if len(self.signals) == self.cancel_at:
                self.stopped = True
                self.signals.append(Cancel())
                self.take(scheduler.handle(Cancel()), waiting)
        assert scheduler.finished
        assert all(state in FINAL for state in scheduler.states.values())
        return scheduler

    def next_signal(self, waiting: deque[StageId]) -> Signal:
        signal: Signal
        if waiting and (not self.running or self.random.random() < 0.7):
            stage = waiting.popleft()
            signal = Hit(stage) if stage in self.hits else Miss(stage)
            if stage in self.hits and not self.stopped:
                self.ended[stage] = "cached"
        else:
            stage = self.random.choice(sorted(self.running))
            del self.running[stage]
            if stage in self.killed - self.again and not self.stopped:
                self.again.add(stage)
                self.signals.append(Killed(stage))
                return self.signals[-1]
            failed = stage in self.failing
            self.ended[stage] = "failed" if failed else "done"
            self.stopped |= failed and not self.keep_going
            signal = Ended(stage, not failed)
        self.signals.append(signal)
        return signal

    def take(self, instructions: Iterable[Instruction], waiting: deque[StageId]) -> None:
        instructions = list(instructions)
        self.told.append(instructions)
        for instruction in instructions:
            stage = instruction.stage
            assert stage not in self.ended
            if isinstance(instruction, Block):
                self.ended[stage] = instruction.state
                continue
            assert not self.stopped, f"{instruction} after the end was called"
            assert all(self.ended.get(need) in GOOD for need in self.works[stage].needs)
            if isinstance(instruction, Resolve):
                waiting.append(stage)
            else:
                assert stage not in self.running
                assert self.again.isdisjoint(self.running), f"{stage} started beside one that was to run alone"
                if stage in self.again:
                    assert (self.running, instruction.cost.jobs) == ({}, 1)
                self.started.append(stage)
                self.running[stage] = instruction.cost
                self.check_room()
                taken = [place for each in self.running if (place := self.works[each].workspace) is not None]
                assert len(taken) == len(set(taken)), "two stages in one workspace"

    def check_room(self) -> None:
        costs = self.running.values()
        assert sum(cost.cores for cost in costs) <= self.budget.cores
        assert sum(cost.slots for cost in costs) <= self.budget.slots
        if len(self.running) > 1:
            assert sum(cost.memory for cost in costs) <= self.budget.memory


SIZES = st.sampled_from([None, 100 * MIB, GIB, 3 * GIB, 40 * GIB])


@st.composite
def machines(draw: st.DrawFn, *, budget: Budget | None = None) -> Machine:
    works: dict[StageId, Work] = {}
    for number in range(draw(st.integers(1, 9))):
        needs = draw(st.lists(st.sampled_from(sorted(works)), unique=True, max_size=3)) if works else []
        stage = StageId(f"s{number}")
        works[stage] = Work(
            id=stage,
            needs=tuple(needs),
            compiles=draw(st.booleans()),
            workspace=draw(st.sampled_from([None, None, "one", "two"])),
            resources=TargetResources(
                cores=draw(st.integers(1, 12)), memory=draw(SIZES), memory_per_job=draw(SIZES), disk=draw(SIZES)
            ),
            last=draw(
                st.none()
                | st.builds(
                    Metrics,
                    wall=st.integers(0, 90).map(float),
                    peak_memory=st.integers(0, 9 * GIB),
                    peak_process=st.integers(0, 2 * GIB),
                )
            ),
        )
    some = st.frozensets(st.sampled_from(sorted(works)), max_size=4)
    room = st.builds(
        Budget,
        cores=st.integers(1, 8),
        slots=st.integers(1, 8),
        memory=st.integers(GIB, 16 * GIB),
        disk=st.integers(0, 50 * GIB),
    )
    hits = draw(some)
    return Machine(
        works=works,
        budget=budget or draw(room),
        keep_going=draw(st.booleans()),
        random=draw(st.randoms(use_true_random=False)),
        hits=hits,
        failing=draw(some) - hits,
        killed=draw(some),
        cancel_at=draw(st.none() | st.integers(1, 20)),
    )


@given(machines())
def test_every_run_ends_and_keeps_its_promises(machine: Machine) -> None:
    """The machine itself checks order, room, and that nothing starts once the end was called."""
    scheduler = machine.run()
    assert scheduler.states == machine.ended
    assert scheduler.costs == {}
    assert (scheduler.free.cores, scheduler.free.slots, scheduler.free.memory) == (
        machine.budget.cores,
        machine.budget.slots,
        machine.budget.memory,
    )


@given(machines())
def test_the_same_signals_give_the_same_instructions(machine: Machine) -> None:
    machine.run()
    again = Scheduler(machine.works, machine.budget, keep_going=machine.keep_going)
    assert [again.begin(), *(again.handle(signal) for signal in machine.signals)] == machine.told


@given(machines())
def test_with_keep_going_a_failure_stops_what_depends_on_it_and_nothing_else(machine: Machine) -> None:
    machine.keep_going, machine.cancel_at = True, None
    states = machine.run().states
    for stage, item in machine.works.items():
        ruined = any(states[need] in {"failed", "blocked"} for need in item.needs)
        assert (states[stage] == "blocked") == ruined
        if not ruined:
            expected = "cached" if stage in machine.hits else "failed" if stage in machine.failing else "done"
            assert states[stage] == expected


@given(machines(budget=Budget(cores=1, slots=1, memory=0, disk=0)))
def test_the_longest_chain_goes_first(machine: Machine) -> None:
    """On a machine for one stage at a time: of all that was ready, the start of the longest way to the end."""
    machine.failing, machine.cancel_at, machine.hits = frozenset(), None, frozenset()
    ways = {stage: way(stage, machine.works) for stage in machine.works}
    scheduler = Scheduler(machine.works, machine.budget, keep_going=True)
    queue = deque(scheduler.begin())
    while queue or not scheduler.finished:
        if queue and isinstance(queue[0], Resolve):
            queue.extend(scheduler.handle(Miss(queue.popleft().stage)))
            continue
        start = queue.popleft()
        before = {stage for stage, state in scheduler.states.items() if state == "ready"}
        told = scheduler.handle(Ended(start.stage, ok=True))
        for begun in (each for each in told if isinstance(each, Start)):
            assert ways[begun.stage] == max(ways[stage] for stage in before)
        queue.extend(sorted(told, key=lambda each: isinstance(each, Start)))


def way(stage: StageId, works: Mapping[StageId, Work]) -> float:
    last = works[stage].last
    own = (last.wall if last is not None else 0.0) or 1.0
    return own + max((way(each.id, works) for each in works.values() if stage in each.needs), default=0.0)


def played(scheduler: Scheduler, *signals: Signal) -> list[list[str]]:
    """What is started by each signal."""
    return [[each.stage for each in scheduler.handle(signal) if isinstance(each, Start)] for signal in signals]


def a(name: str) -> StageId:
    return StageId(name)


def test_a_chain_of_hits_needs_no_start() -> None:
    scheduler = Scheduler(table(work("a"), work("b", "a"), work("c", "b")), ROOMY, keep_going=False)
    assert scheduler.begin() == [Resolve(a("a"))]
    assert scheduler.handle(Hit(a("a"))) == [Resolve(a("b"))]
    assert scheduler.handle(Hit(a("b"))) == [Resolve(a("c"))]
    assert scheduler.handle(Hit(a("c"))) == []
    assert scheduler.finished


def test_two_inputs_must_both_be_there() -> None:
    scheduler = Scheduler(table(work("a"), work("b"), work("c", "a", "b", "a")), ROOMY, keep_going=False)
    scheduler.begin()
    assert scheduler.handle(Hit(a("a"))) == []
    assert scheduler.handle(Hit(a("b"))) == [Resolve(a("c"))]


def test_what_took_long_last_time_starts_first() -> None:
    tight = Budget(cores=1, slots=1, memory=GIB, disk=0)
    works = table(
        work("now"), work("short", wall=5.0), work("long", wall=50.0), work("chain"), work("z", "chain", wall=60)
    )
    scheduler = Scheduler(works, tight, keep_going=False)
    scheduler.begin()
    misses = [Miss(a(name)) for name in ("now", "short", "long", "chain")]
    assert played(scheduler, *misses) == [[], [], [], ["chain"]]
    assert scheduler.handle(Ended(a("chain"), ok=True)) == [Resolve(a("z"))]
    assert played(scheduler, Miss(a("z")), Ended(a("z"), ok=True)) == [["z"], ["long"]]


def test_nothing_starts_as_long_as_a_key_is_being_computed() -> None:
    """Else whatever is answered first would take the machine, however much longer another way is."""
    works = table(work("short", compiles=True), work("long", compiles=True), work("end", "long", wall=90.0))
    scheduler = Scheduler(works, ROOMY, keep_going=False)
    scheduler.begin()
    assert played(scheduler, Miss(a("short")), Miss(a("long"))) == [[], ["long"]]


def test_thousands_of_stages_without_room_do_not_hide_those_of_the_other_kind() -> None:
    many = [work(f"m{number:04}", compiles=True, wall=9.0) for number in range(1000)]
    scheduler = Scheduler(table(*many, work("download")), ROOMY, keep_going=False)
    scheduler.begin()
    started = played(scheduler, *(Miss(each.id) for each in many), Miss(a("download")))
    assert started[-1] == ["m0000", "download"]


def test_what_does_not_fit_lets_others_pass_and_starts_alone_in_the_end() -> None:
    budget = Budget(cores=4, slots=4, memory=4 * GIB, disk=10 * GIB)
    works = table(work("first", wall=999.0), work("huge", wall=99.0, memory=16 * GIB), work("small"))
    scheduler = Scheduler(works, budget, keep_going=False)
    scheduler.begin()
    assert played(scheduler, *(Miss(a(name)) for name in works)) == [[], [], ["first", "small"]]
    assert played(scheduler, Ended(a("first"), ok=True), Ended(a("small"), ok=True)) == [[], ["huge"]]


def test_a_compile_takes_all_cores_and_the_rest_runs_beside_it() -> None:
    works = table(work("compile", compiles=True), work("other", compiles=True), work("download"))
    scheduler = Scheduler(works, ROOMY, keep_going=False)
    scheduler.begin()
    *_, started = [scheduler.handle(Miss(a(name))) for name in works]
    assert [each.stage for each in started] == ["compile", "download"]
    assert isinstance(started[0], Start)
    assert started[0].cost.jobs == 8


def test_without_keep_going_a_failure_lets_what_runs_end_and_starts_nothing() -> None:
    works = table(work("bad"), work("long"), work("idle"), work("user", "bad"), work("after", "long"))
    scheduler = Scheduler(works, Budget(cores=2, slots=2, memory=GIB, disk=0), keep_going=False)
    scheduler.begin()
    assert played(scheduler, *(Miss(a(name)) for name in ("bad", "long", "idle"))) == [[], [], ["bad", "long"]]
    told = scheduler.handle(Ended(a("bad"), ok=False))
    assert told == [Block(a("user"), "blocked"), Block(a("idle"), "cancelled"), Block(a("after"), "cancelled")]
    assert not scheduler.finished
    assert scheduler.handle(Ended(a("long"), ok=True)) == []
    assert scheduler.finished
    expected: dict[str, State] = {"bad": "failed", "long": "done", "idle": "cancelled", "user": "blocked"}
    assert scheduler.states == {**expected, "after": "cancelled"}


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_stage_that_this_machine_cannot_run_stops_what_needs_it_and_nothing_else(*, keep_going: bool) -> None:
    works = table(work("image"), work("plain"), work("user", "image"), work("after", "plain"))
    scheduler = Scheduler(works, ROOMY, keep_going=keep_going)
    scheduler.begin()
    assert scheduler.handle(Refused(a("image"))) == [Block(a("user"), "blocked")]
    assert played(scheduler, Miss(a("plain"))) == [["plain"]]
    assert scheduler.handle(Ended(a("plain"), ok=True)) == [Resolve(a("after"))]
    scheduler.handle(Hit(a("after")))
    assert scheduler.finished
    assert scheduler.states == {"image": "failed", "plain": "done", "user": "blocked", "after": "cached"}


def test_after_a_cancellation_late_answers_are_void() -> None:
    works = table(work("first"), work("a", "first"), work("b"), work("c", "a"))
    scheduler = Scheduler(works, ROOMY, keep_going=False)
    scheduler.begin()
    assert played(scheduler, Miss(a("first")), Miss(a("b"))) == [[], ["first", "b"]]
    assert scheduler.handle(Ended(a("first"), ok=True)) == [Resolve(a("a"))]
    assert scheduler.handle(Cancel()) == [Block(a("a"), "cancelled"), Block(a("c"), "cancelled")]
    assert scheduler.handle(Hit(a("a"))) == []
    assert scheduler.states[a("a")] == "cancelled"
    assert scheduler.handle(Ended(a("b"), ok=False)) == []
    assert scheduler.finished


def test_a_full_disk_does_not_make_the_rest_run_one_by_one() -> None:
    budget = Budget(cores=4, slots=4, memory=4 * GIB, disk=GIB)
    works = table(work("large", disk=2 * GIB), work("b", "large"), work("c", "large"))
    scheduler = Scheduler(works, budget, keep_going=False)
    scheduler.begin()
    played(scheduler, Miss(a("large")), Ended(a("large"), ok=True))
    assert played(scheduler, Miss(a("b")), Miss(a("c"))) == [[], ["b", "c"]]


def test_a_killed_stage_runs_again_when_it_is_alone_and_with_one_job() -> None:
    works = table(work("big", compiles=True, wall=9.0), work("load"), work("late", "load"))
    scheduler = Scheduler(works, ROOMY, keep_going=False)
    scheduler.begin()
    assert played(scheduler, Miss(a("big")), Miss(a("load"))) == [[], ["big", "load"]]
    assert played(scheduler, Killed(a("big")), Ended(a("load"), ok=True)) == [[], []]
    (again,) = scheduler.handle(Miss(a("late")))
    assert isinstance(again, Start)
    assert (again.stage, again.cost.jobs) == ("big", 1)
    assert played(scheduler, Ended(a("big"), ok=True)) == [["late"]]


def test_disk_space_comes_back_when_somebody_made_room() -> None:
    budget = Budget(cores=4, slots=4, memory=4 * GIB, disk=3 * GIB)
    works = table(*(work(name, wall=wall, disk=2 * GIB) for name, wall in {"a": 3.0, "b": 2.0, "c": 1.0}.items()))
    scheduler = Scheduler(works, budget, keep_going=False)
    scheduler.begin()
    assert played(scheduler, *(Miss(a(name)) for name in works)) == [[], [], ["a"]]
    assert played(scheduler, Ended(a("a"), ok=True, disk=4 * GIB)) == [["b", "c"]]
    assert scheduler.free.disk == 0


def test_stages_of_one_workspace_take_turns_and_hold_nothing_while_they_wait() -> None:
    budget = Budget(cores=2, slots=2, memory=64 * GIB, disk=0)
    binds = [msgspec.structs.replace(work(name, wall=9.0, compiles=True), workspace="w") for name in ("b311", "b312")]
    works = table(*binds, work("other", compiles=True), work("test"))
    scheduler = Scheduler(works, budget, keep_going=False)
    scheduler.begin()
    assert played(scheduler, *(Miss(a(name)) for name in works)) == [[], [], [], ["b311", "test"]]
    assert scheduler.free.cores == 0
    assert played(scheduler, Ended(a("b311"), ok=True)) == [["b312"]]
    assert played(scheduler, Ended(a("b312"), ok=True)) == [["other"]]


def test_what_waits_for_its_workspace_does_not_hold_up_others() -> None:
    budget = Budget(cores=2, slots=2, memory=64 * GIB, disk=0)
    binds = [msgspec.structs.replace(work(name, wall=9.0, compiles=True), workspace="w") for name in ("b311", "b312")]
    first = msgspec.structs.replace(binds[0], compiles=False)
    scheduler = Scheduler(table(first, binds[1], work("other", compiles=True)), budget, keep_going=False)
    scheduler.begin()
    assert played(scheduler, *(Miss(a(name)) for name in ("b311", "b312", "other"))) == [[], [], ["b311", "other"]]
    assert played(scheduler, Ended(a("other"), ok=True), Ended(a("b311"), ok=True)) == [[], ["b312"]]


def test_an_answer_that_nobody_asked_for_is_an_error() -> None:
    scheduler = Scheduler(table(work("a"), work("b", "a")), ROOMY, keep_going=False)
    scheduler.begin()
    with pytest.raises(RuntimeError, match="b is waiting, not resolving"):
        scheduler.handle(Hit(a("b")))
