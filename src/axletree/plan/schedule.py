"""The scheduler as a value: events in, instructions out. No clock, no process, so every run can be replayed.

States of a stage: ``waiting`` (something that it needs is not done) -> ``resolving`` (its key is being computed) ->
``cached`` or ``ready`` (waits for room) -> ``running`` -> ``done`` or ``failed``; ``blocked`` (something that it needs
failed) and ``cancelled`` are reached from any state before ``running``'s end. Nothing leaves a final state. A stage
that was killed goes back to ``ready`` and runs again alone: what runs comes to its end first, and nothing starts beside
it.

Keys are computed first: as long as one is asked for, nothing starts. So of all that must run the longest chain goes
first, however many answers there are and in whatever order they come.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from axletree.core.records import Metrics
from axletree.core.values import StageId
from axletree.plan.admission import Budget, Cost, cost_of, fits, give_back, take
from axletree.recipe.target import TargetResources

if TYPE_CHECKING:
    from collections.abc import Mapping

State = Literal["waiting", "resolving", "ready", "running", "done", "cached", "failed", "blocked", "cancelled"]
FINAL: frozenset[State] = frozenset({"done", "cached", "failed", "blocked", "cancelled"})

_PASSED_OVER = 64
"""Stages without room that one look at the queue passes over: of thousands, those behind them wait for the next."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A stage as the scheduler sees it."""

    id: StageId
    needs: tuple[StageId, ...]
    compiles: bool = False
    resources: TargetResources = TargetResources()
    last: Metrics | None = None
    """What it used last time."""
    workspace: str | None = None
    """A kept folder that it works in: stages of one workspace run one after another."""


class Hit(msgspec.Struct, frozen=True):
    """Event: the stage's result is in the store."""

    stage: StageId


class Miss(msgspec.Struct, frozen=True):
    """Event: the stage must run."""

    stage: StageId


class Refused(msgspec.Struct, frozen=True):
    """Answer: the stage has no result, and this machine cannot run it. That says nothing about others."""

    stage: StageId


class Ended(msgspec.Struct, frozen=True):
    """Event: the stage's process is gone, with its whole tree."""

    stage: StageId
    ok: bool
    disk: int | None = None
    """Bytes that are free now, if somebody looked."""


class Killed(msgspec.Struct, frozen=True):
    """Event: the stage's process is gone since something killed it, most likely for its memory; it may run again."""

    stage: StageId


class Cancel(msgspec.Struct, frozen=True):
    """Event: nothing more may start."""


class Resolve(msgspec.Struct, frozen=True):
    """Instruction: compute the stage's final key, then answer :class:`Hit` or :class:`Miss`."""

    stage: StageId


class Start(msgspec.Struct, frozen=True):
    """Instruction: run the stage with that many jobs."""

    stage: StageId
    cost: Cost


class Block(msgspec.Struct, frozen=True):
    """Instruction: tell that the stage will not run."""

    stage: StageId
    state: Literal["blocked", "cancelled"]


Signal = Hit | Miss | Refused | Ended | Killed | Cancel
Instruction = Resolve | Start | Block


class Scheduler:
    """Decides what starts when. ``handle`` is its only entry; ``states`` may be read at any time."""

    def __init__(self, work: Mapping[StageId, Work], budget: Budget, *, keep_going: bool = False) -> None:
        self.work = dict(work)
        self.machine = budget
        self.free = budget
        self.keep_going = keep_going
        self.states: dict[StageId, State] = dict.fromkeys(self.work, "waiting")
        self.costs: dict[StageId, Cost] = {}
        self._open = {stage_id: len(set(item.needs)) for stage_id, item in self.work.items()}
        self._users: dict[StageId, list[StageId]] = {stage_id: [] for stage_id in self.work}
        for item in self.work.values():
            for needed in set(item.needs):
                self._users[needed].append(item.id)
        self._depth = _depths(self.work, self._users)
        # Longest way to the end first; by what they take, cores or slots, so that one kind never hides the other.
        self._ready: dict[bool, list[tuple[float, StageId]]] = {False: [], True: []}
        self._asked = 0
        self._alone: list[StageId] = []
        """Killed stages; the first runs alone or waits for that."""
        self._unfinished = len(self.work)
        self._stopping = False

    @property
    def finished(self) -> bool:
        """Whether every stage is in a final state."""
        return self._unfinished == 0

    @property
    def stopping(self) -> bool:
        """Whether nothing more will start: the run was cancelled, or a stage failed that ends it."""
        return self._stopping

    def begin(self) -> list[Instruction]:
        """The first instructions: stages that need nothing."""
        return [self._resolve(stage_id) for stage_id, count in self._open.items() if count == 0]

    def handle(self, signal: Signal) -> list[Instruction]:
        """Take one event and return what to do now."""
        instructions = self._react(signal)
        if self._stopping:
            return [*instructions, *self._cancel_rest()]
        return instructions if self._asked else [*instructions, *self._admit()]

    def _react(self, signal: Signal) -> list[Instruction]:
        match signal:
            case Hit(stage):
                if self._moves(stage, "resolving"):
                    self._asked -= 1
                    self._settle(stage, "cached")
                    return self._release(stage)
            case Miss(stage):
                if self._moves(stage, "resolving"):
                    self._asked -= 1
                    self._queue(stage)
            case Refused(stage):
                if self._moves(stage, "resolving"):
                    self._asked -= 1
                    self._settle(stage, "failed")
                    return self._block_users(stage)
            case Killed(stage):
                self._leave(stage)
                self.states[stage] = "ready"
                self._alone.append(stage)
            case Ended(stage, ok, disk):
                self._leave(stage)
                if disk is not None:
                    taken = sum(cost.disk for cost in self.costs.values())
                    self.free = msgspec.structs.replace(self.free, disk=disk - taken)
                self._settle(stage, "done" if ok else "failed")
                return self._release(stage) if ok else self._fail(stage)
            case Cancel():
                self._stopping = True
            case _:
                assert_never(signal)
        return []

    def _moves(self, stage: StageId, state: State) -> bool:
        """Whether a stage is where the event says; an answer that comes after a cancellation is void."""
        now = self.states[stage]
        if now != state and not (self._stopping and now in FINAL):
            raise RuntimeError(f"{stage} is {now}, not {state}")
        return now == state

    def _leave(self, stage: StageId) -> None:
        """A stage runs no longer."""
        self._moves(stage, "running")
        self.free = give_back(self.free, self.costs.pop(stage))
        if stage in self._alone:
            self._alone.remove(stage)

    def _settle(self, stage: StageId, state: State) -> None:
        self.states[stage] = state
        self._unfinished -= 1

    def _resolve(self, stage: StageId) -> Resolve:
        self.states[stage] = "resolving"
        self._asked += 1
        return Resolve(stage)

    def _queue(self, stage: StageId) -> None:
        self.states[stage] = "ready"
        heapq.heappush(self._ready[self.work[stage].compiles], (-self._depth[stage], stage))

    def _release(self, stage: StageId) -> list[Instruction]:
        instructions: list[Instruction] = []
        for user in self._users[stage]:
            self._open[user] -= 1
            if self._open[user] == 0 and self.states[user] == "waiting" and not self._stopping:
                instructions.append(self._resolve(user))
        return instructions

    def _fail(self, stage: StageId) -> list[Instruction]:
        if not self.keep_going:
            self._stopping = True
        return self._block_users(stage)

    def _block_users(self, stage: StageId) -> list[Instruction]:
        """What needs a stage is not reached."""
        instructions: list[Instruction] = []
        queue = list(self._users[stage])
        while queue:
            user = queue.pop(0)
            if self.states[user] not in FINAL:
                self._settle(user, "blocked")
                instructions.append(Block(user, "blocked"))
                queue.extend(self._users[user])
        return instructions

    def _cancel_rest(self) -> list[Instruction]:
        """Stages that did not start won't; those that run are ended by the driver, or come to their own end."""
        idle = [stage_id for stage_id, state in self.states.items() if state in {"waiting", "ready", "resolving"}]
        for stage_id in idle:
            self._settle(stage_id, "cancelled")
        return [Block(stage_id, "cancelled") for stage_id in idle]

    def _admit(self) -> list[Instruction]:
        """Start what fits, longest way to the end first; a lone stage starts even if it is over the budget."""
        if self._alone:
            return [] if self.costs else [self._start(self._alone[0], msgspec.structs.replace(self.free, cores=1))]
        instructions: list[Instruction] = []
        passed: list[StageId] = []
        while len(passed) < _PASSED_OVER and (queue := self._next_queue()) is not None:
            _, stage_id = heapq.heappop(queue)
            if self._is_taken(stage_id) or (self.costs and not fits(self._cost(stage_id, self.free), self.free)):
                passed.append(stage_id)
            else:
                instructions.append(self._start(stage_id, self.free))
        for stage_id in passed:
            self._queue(stage_id)
        return instructions

    def _is_taken(self, stage: StageId) -> bool:
        """Whether the stage's workspace is another's for now: waiting inside, it would hold cores for nothing."""
        workspace = self.work[stage].workspace
        return workspace is not None and any(self.work[running].workspace == workspace for running in self.costs)

    def _cost(self, stage: StageId, free: Budget) -> Cost:
        item = self.work[stage]
        return cost_of(item.resources, compiles=item.compiles, last=item.last, machine=self.machine, free=free)

    def _start(self, stage: StageId, free: Budget) -> Start:
        """Start a stage with as much of what is free as it can use."""
        cost = self._cost(stage, free)
        self.states[stage] = "running"
        self.costs[stage] = cost
        self.free = take(self.free, cost)
        return Start(stage, cost)

    def _next_queue(self) -> list[tuple[float, StageId]] | None:
        """The queue whose first stage is next, of those whose kind has room; with nothing running all have."""
        room = {True: self.free.cores, False: self.free.slots}
        queues = [queue for kind, queue in self._ready.items() if queue and (not self.costs or room[kind] >= 1)]
        return min(queues, key=lambda queue: queue[0], default=None)


def _depths(work: Mapping[StageId, Work], users: Mapping[StageId, list[StageId]]) -> dict[StageId, float]:
    """Seconds from the start of a stage to the end of the longest chain behind it; a second where nothing is known."""
    depths: dict[StageId, float] = {}
    for stage_id in reversed(list(work)):
        last = work[stage_id].last
        own = last.wall if last is not None and last.wall else 1.0
        depths[stage_id] = own + max((depths[user] for user in users[stage_id]), default=0.0)
    return depths
