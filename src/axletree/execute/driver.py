"""The loop of a run: instruction -> executor -> event, until every stage is in a final state."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import AxletreeError, HostError, StageError
from axletree.core.events import (
    Event,
    Keeps,
    RunFinished,
    RunStarted,
    StageFinished,
    StageProgress,
    StageStarted,
    Status,
)
from axletree.core.records import Grant, LocalFacts, StageRecord, StageRequest
from axletree.core.setting import placed
from axletree.core.values import StageId
from axletree.execute.stage import log_file, stage_lock
from axletree.plan.actions.spec import ActionSpec
from axletree.plan.admission import Budget, most
from axletree.plan.graph import Plan
from axletree.plan.keys import Resolved, Surroundings, resolve_stage
from axletree.plan.schedule import Block, Cancel, Ended, Hit, Killed, Miss, Refused, Resolve, Scheduler, Start, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.execute.executor import Executor
    from axletree.plan.admission import Cost
    from axletree.plan.graph import PlannedStage
    from axletree.plan.schedule import Instruction, Signal
    from axletree.store.store import Store


_GOOD = frozenset({"done", "cached"})
_COUNTED = {"done": "ran", "cached": "cached", "failed": "failed", "cancelled": "blocked"}


class BuildRun(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run needs to know, decided before it starts."""

    plan: Plan
    specs: dict[str, ActionSpec]
    """Action -> what planning must know of it."""
    surroundings: Surroundings
    budget: Budget
    last: dict[StageId, StageRecord]
    """What stages were last time, for what they cost."""
    local: dict[StageId, LocalFacts]
    """Stage -> facts of this machine that its action needs."""
    keep_going: bool = False


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a run."""

    finish: RunFinished
    """What the run says at its end: whoever goes on with the results tells it when that is over, too."""
    resolved: dict[StageId, Resolved]
    """The stages that are done or cached, with their records."""
    failures: tuple[StageFinished, ...] = ()

    @property
    def status(self) -> Literal["done", "failed", "cancelled"]:
        """How it ended."""
        return self.finish.status

    @property
    def exit_code(self) -> int:
        """What a run that failed ends with. A stage's own failure says most; bad input more than a lacking host."""
        return min((failure.exit_code or StageError.exit_code for failure in self.failures), default=0)

    @property
    def met_corruption(self) -> bool:
        """Whether a stage found a damaged blob: it is in quarantine now, and its maker would run again."""
        return self.status == "failed" and any(failure.corrupt for failure in self.failures)


_TICK_SECONDS = 0.25
_KILLED_TWICE = "the stage had already been killed once and run again on its own with a single job"


def execute(
    job: BuildRun,
    store: Store,
    executor: Executor,
    *,
    started: RunStarted,
    emit: Callable[[Event], None],
    tick: Callable[[], None] = lambda: None,
) -> Result:
    """Run a plan to its end and return what became of it; ``emit`` gets all events but the closing one.

    SIGINT and SIGTERM cancel the run: nothing more starts, what runs is ended with its whole tree, and what was
    finished stays in the store.
    """
    return asyncio.run(_Driver(job, store, executor, emit).drive(started, tick))


class _Driver:
    """One run. All state changes happen in the event loop's thread, through the scheduler."""

    def __init__(self, job: BuildRun, store: Store, executor: Executor, emit: Callable[[Event], None]) -> None:
        self.job = job
        self.store = store
        self.executor = executor
        self.emit = emit
        self.resolved: dict[StageId, Resolved] = {}
        self.failures: list[StageFinished] = []
        self.again: set[StageId] = set()
        """Stages that were killed once."""
        self.cancelled = False
        self.counts = dict.fromkeys(("ran", "cached", "failed", "blocked"), 0)
        self.tasks: dict[asyncio.Task[StageFinished], StageId] = {}
        self.scheduler = Scheduler(
            {stage.id: self._work(stage) for stage in job.plan.stages.values()}, job.budget, keep_going=job.keep_going
        )

    def _work(self, stage: PlannedStage) -> Work:
        last = self.job.last.get(stage.id)
        local = self.job.local.get(stage.id, LocalFacts())
        return Work(
            id=stage.id,
            needs=tuple(stage.needs.values()),
            compiles=self.job.specs[stage.action].compiles,
            resources=stage.step.resources,
            last=last.metrics if last is not None else None,
            workspace=local.continues or local.workspace,
        )

    async def drive(self, started: RunStarted, tick: Callable[[], None]) -> Result:
        """Loop until nothing is left to do."""
        clock = time.monotonic()
        self.emit(started)
        with self._signals():
            self._follow(self.scheduler.begin())
            while self.tasks:
                ended, _ = await asyncio.wait(self.tasks, timeout=_TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                tick()
                for task in ended:
                    self._end(task)
        status: Literal["done", "failed", "cancelled"] = (
            "cancelled" if self.cancelled else "failed" if self.failures else "done"
        )
        finish = RunFinished(time=time.time(), status=status, wall=time.monotonic() - clock, **self.counts)
        done = {stage: resolved for stage, resolved in self.resolved.items() if resolved.record is not None}
        return Result(finish=finish, resolved=done, failures=tuple(self.failures))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            loop.add_signal_handler(number, self._cancel)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def _cancel(self) -> None:
        self.cancelled = True
        self._signal(Cancel())
        for task in self.tasks:
            task.cancel()

    def _signal(self, event: Signal) -> None:
        self._follow(self.scheduler.handle(event))

    def _follow(self, instructions: list[Instruction]) -> None:
        """Carry out instructions, and those that follow from them; a queue, since chains of hits can be long."""
        queue = deque(instructions)
        while queue:
            instruction = queue.popleft()
            match instruction:
                case Resolve(stage):
                    queue.extend(self.scheduler.handle(self._resolve(stage)))
                case Start(stage, cost):
                    self._start(stage, cost)
                case Block(stage, state):
                    self.counts["blocked"] += 1
                    self.emit(StageFinished(time=time.time(), stage=stage, status=state))

    def _resolve(self, stage_id: StageId) -> Hit | Miss | Refused:
        stage = self.job.plan.stages[stage_id]
        resolved = resolve_stage(
            stage,
            self.job.specs[stage.action],
            self.job.surroundings,
            inputs={name: self.resolved[needed] for name, needed in stage.needs.items()},
            lookup=self.store.get_record,
        )
        self.resolved[stage_id] = resolved
        if resolved.record is None:
            return Miss(stage_id) if self._may_run(stage_id) else Refused(stage_id)
        self._tell_cached(stage_id, resolved.record)
        return Hit(stage_id)

    def _may_run(self, stage_id: StageId) -> bool:
        """Whether this machine can run a stage. The error is that of the first one; of others it is only named."""
        problem = self.job.local.get(stage_id, LocalFacts()).refused
        if problem is None:
            return True
        status: Status = "blocked" if any(each.refused for each in self.failures) else "failed"
        ended = StageFinished(
            time=time.time(),
            stage=stage_id,
            status=status,
            message=str(HostError(problem)) if status == "failed" else problem.message.partition(":")[0],
            exit_code=HostError.exit_code,
            refused=True,
        )
        self.failures += [ended] if status == "failed" else []
        self.counts[_COUNTED.get(status, status)] += 1
        self.emit(ended)
        return False

    def _tell_cached(self, stage_id: StageId, record: StageRecord) -> None:
        self.counts["cached"] += 1
        self._remember(stage_id, record)
        self.emit(
            StageFinished(
                time=time.time(),
                stage=stage_id,
                status="cached",
                key=record.key,
                tree=record.tree,
                metrics=record.metrics,
                findings=placed(record.findings, self.job.local.get(stage_id, LocalFacts()).setting),
            )
        )

    def _start(self, stage_id: StageId, cost: Cost) -> None:
        resolved = self.resolved[stage_id]
        step = self.job.plan.stages[stage_id].step
        request = StageRequest(
            stage=stage_id,
            recipe=self.job.plan.recipe,
            action=step.action,
            key=resolved.key,
            ingredients=resolved.ingredients,
            inputs={
                name: record.tree
                for name, needed in self.job.plan.stages[stage_id].needs.items()
                if (record := self.resolved[needed].record) is not None
            },
            local=self.job.local.get(stage_id, LocalFacts()),
            grant=Grant(jobs=cost.jobs, memory=cost.memory, parallel=step.parallel),
        )
        log = str(log_file(self.store, request.key))
        keeps: Keeps = "compiler-cache" if request.local.ccache is not None else "nothing"
        if request.local.workspace is not None or request.local.continues is not None:
            keeps = "folder"
        self.emit(
            StageStarted(
                time=time.time(),
                stage=stage_id,
                key=request.key,
                jobs=cost.jobs,
                log=log,
                keeps=keeps,
                waits=self.store.is_locked(stage_lock(request.key)),
            )
        )
        self.tasks[asyncio.ensure_future(self.executor.run(request, self.emit))] = stage_id

    def _end(self, task: asyncio.Task[StageFinished]) -> None:
        stage_id = self.tasks.pop(task)
        if task.cancelled():
            finished = StageFinished(time=time.time(), stage=stage_id, status="cancelled")
        elif isinstance(error := task.exception(), AxletreeError):  # it could not even be asked for: a full disk
            message, code = str(error), error.exit_code
            finished = StageFinished(time=time.time(), stage=stage_id, status="failed", message=message, exit_code=code)
        else:
            finished = self._confirmed(stage_id, task.result())
        if finished.killed and not self.scheduler.stopping:
            if stage_id not in self.again:
                self._start_again(stage_id)
                return
            words, newline, hint = (finished.message or "killed").partition("\n")
            finished = msgspec.structs.replace(finished, message=f"{words}; {_KILLED_TWICE}{newline}{hint}")
        if finished.status == "failed":
            self.failures.append(finished)
        self.counts[_COUNTED[finished.status]] += 1
        self.emit(finished)
        free = shutil.disk_usage(self.store.root).free
        self._signal(Ended(stage_id, finished.status in _GOOD, disk=free))

    def _start_again(self, stage_id: StageId) -> None:
        """Have a stage that was killed run once more: alone and with one job it may get by with the memory there is."""
        self.again.add(stage_id)
        message = "killed, most likely because memory ran out; running it again on its own with a single job"
        self.emit(StageProgress(time=time.time(), stage=stage_id, message=message))
        self._signal(Killed(stage_id))

    def _confirmed(self, stage_id: StageId, finished: StageFinished) -> StageFinished:
        """A stage is done when the store says so, not when its process does."""
        if finished.status not in _GOOD:
            return finished
        resolved = self.resolved[stage_id]
        record = self.store.get_record(resolved.key, self.job.specs[self.job.plan.stages[stage_id].action].facts)
        if record is None:
            return msgspec.structs.replace(
                finished, status="failed", message="the stage's process reported a result that is not in the store"
            )
        self._remember(stage_id, record)
        self.resolved[stage_id] = msgspec.structs.replace(resolved, record=record)
        return finished

    def _remember(self, stage_id: StageId, record: StageRecord) -> None:
        """Keep a stage's latest record under its name here: the record itself names the stage that made it first."""
        last = self.job.last.get(stage_id)
        metrics = most(record.metrics, last.metrics if last is not None else None)
        self.store.remember_last(msgspec.structs.replace(record, stage=stage_id, metrics=metrics), self.job.plan.recipe)
