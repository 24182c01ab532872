"""The state of a run, folded from its events: what every view draws from."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import msgspec

from axletree.core.events import (
    Event,
    Keeps,
    MemorySampled,
    ProgressUnit,
    Published,
    RunFinished,
    RunStarted,
    StageFinished,
    StagePlanned,
    StageProgress,
    StageStarted,
    Status,
)
from axletree.core.findings import Finding
from axletree.core.records import Metrics
from axletree.core.values import Digest, Key, StageId

MAX_SAMPLES = 512
"""Memory samples kept for a stage; of a long one, those of each part of its time are merged into the largest."""

WAITS = "waiting for a different run to finish the same stage"
"""What is said of a stage until it does something itself."""


class StageView(msgspec.Struct, frozen=True, kw_only=True):
    """A stage as a run has it so far. Times are seconds since the epoch, memory is bytes."""

    planned: StagePlanned
    status: Status = "waiting"
    started: float | None = None
    finished: float | None = None
    jobs: int = 0
    key: Key | None = None
    tree: Digest | None = None
    log: str | None = None
    keeps: Keeps = "nothing"
    """What of it outlives its being stopped."""
    progress: str = ""
    """What the stage last said of what it does."""
    done: int | None = None
    total: int | None = None
    unit: ProgressUnit = "steps"
    """What ``done`` and ``total`` count."""
    memory: int = 0
    """Of the latest sample."""
    peak_memory: int = 0
    processes: int = 0
    samples: tuple[tuple[float, int], ...] = ()
    """Time and memory, oldest first."""
    metrics: Metrics | None = None
    message: str | None = None
    """What went wrong, one line."""
    cause: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    lacks: tuple[str, ...] = ()
    """Isolation that the system did not grant."""

    @property
    def stage(self) -> StageId:
        """The stage's id."""
        return self.planned.stage

    @property
    def over(self) -> bool:
        """Whether nothing more will come from it."""
        return self.status not in ("waiting", "running")

    def elapsed(self, now: float) -> float:
        """Seconds that it ran, up to ``now`` while it does; 0 where it never started."""
        if self.metrics is not None and self.started is None:
            return self.metrics.wall
        if self.started is None:
            return 0.0
        return max(0.0, (now if self.finished is None else self.finished) - self.started)


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run so far."""

    recipe: str = ""
    variants: tuple[str, ...] = ()
    started: float = 0.0
    latest: float = 0.0
    """Time of the latest event."""
    stages: dict[StageId, StageView] = {}
    """In plan order."""
    published: tuple[Published, ...] = ()
    finish: RunFinished | None = None

    @property
    def status(self) -> Literal["running", "done", "failed", "cancelled"]:
        """How the run stands."""
        return "running" if self.finish is None else self.finish.status

    @property
    def wall(self) -> float:
        """Seconds from the start to the latest event, or what the run said at its end."""
        return self.latest - self.started if self.finish is None else self.finish.wall

    def having(self, *statuses: Status) -> tuple[StageView, ...]:
        """The stages with one of some statuses, in plan order."""
        return tuple(stage for stage in self.stages.values() if stage.status in statuses)


def apply(view: RunView, event: Event) -> RunView:
    """The state after an event. Neither argument is changed."""
    return _apply(view, event, dict(view.stages))


class Folding:
    """The state of a run as its events come, for who needs only the last one: memory does not grow with them."""

    def __init__(self) -> None:
        """Start before the first event."""
        self.view = RunView()
        """The run so far; replaced by the next event."""
        self._stages: dict[StageId, StageView] = {}

    def take(self, event: Event) -> None:
        """Take an event in."""
        # One dictionary for the whole fold: a copy for each of 60,000 events would be most of the work.
        self.view = _apply(self.view, event, self._stages)
        self._stages = self.view.stages


def _apply(view: RunView, event: Event, stages: dict[StageId, StageView]) -> RunView:
    """The state after an event; ``stages`` belongs to the caller and is written to."""
    replace = msgspec.structs.replace
    latest = max(view.latest, event.time)
    if isinstance(event, RunStarted):
        return RunView(
            recipe=event.recipe,
            variants=event.variants,
            started=event.time,
            latest=event.time,
            stages={planned.stage: StageView(planned=planned) for planned in event.stages},
        )
    if isinstance(event, Published):
        return replace(view, latest=latest, stages=stages, published=(*view.published, event))
    if isinstance(event, RunFinished):
        return replace(view, latest=latest, stages=stages, finish=event)
    known = stages.get(event.stage)
    if known is None:  # a stream that was cut at its head: show what is there
        known = StageView(
            planned=StagePlanned(stage=event.stage, action="", needs=(), variants=view.variants, cached=False)
        )
    stages[event.stage] = advance(known, event)
    return replace(view, latest=latest, stages=stages)


def advance(stage: StageView, event: StageStarted | StageProgress | MemorySampled | StageFinished) -> StageView:
    """A stage after an event of its own."""
    replace = msgspec.structs.replace
    if isinstance(event, StageStarted):
        # A stage may start again, when it was killed for its memory: what the first attempt said is over.
        return StageView(
            planned=stage.planned,
            status="running",
            started=event.time,
            jobs=event.jobs,
            key=event.key,
            log=event.log,
            keeps=event.keeps,
            progress=WAITS if event.waits else "",
            samples=stage.samples,
            peak_memory=stage.peak_memory,
        )
    if isinstance(event, StageProgress):
        return replace(stage, progress=event.message, done=event.done, total=event.total, unit=event.unit)
    if isinstance(event, MemorySampled):
        return replace(
            stage,
            memory=event.memory,
            processes=event.processes,
            peak_memory=max(stage.peak_memory, event.memory),
            samples=_add_sample(stage.samples, (event.time, event.memory)),
        )
    peak = stage.peak_memory if event.metrics is None else max(stage.peak_memory, event.metrics.peak_memory)
    return replace(
        stage,
        status=event.status,
        finished=event.time,
        key=event.key or stage.key,
        tree=event.tree,
        log=event.log or stage.log,
        metrics=event.metrics,
        peak_memory=peak,
        message=event.message,
        cause=event.cause,
        findings=event.findings,
        lacks=event.lacks,
    )


def _add_sample(samples: tuple[tuple[float, int], ...], sample: tuple[float, int]) -> tuple[tuple[float, int], ...]:
    """Samples with a new one, at most one for each part of the time that is over, and the new one as it is."""
    if not samples:
        return (sample,)
    least = (sample[0] - samples[0][0]) / (MAX_SAMPLES - 3)
    part = 2.0 ** math.ceil(math.log2(least)) if least > 0 else math.inf  # doubles now and then, so slots nest
    if len(samples) >= MAX_SAMPLES:
        slots = itertools.groupby(samples, key=lambda pair: pair[0] // part)
        samples = tuple(max(pairs, key=_memory_of) for _, pairs in slots)
    elif len(samples) > 1 and samples[-2][0] // part == samples[-1][0] // part:
        samples = (*samples[:-2], max(samples[-2:], key=_memory_of))
    return (*samples, sample)


def _memory_of(sample: tuple[float, int]) -> int:
    return sample[1]
