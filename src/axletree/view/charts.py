"""Where the marks of the report's charts go: percentages of a plot, round ticks, no drawing.

Everything horizontal is a percentage of the plot's width, so a page draws the same chart on a phone and on a desk
without scaled text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.events import Status
from axletree.core.units import format_bytes, format_clock, format_duration
from axletree.core.values import StageId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.view.state import RunView, StageView

MAX_ROWS = 60
"""Stages that get a row of their own; with more, stages that ran one after the other share a row."""

MAX_BARS = 2000
"""Bars of a timeline: of more, the failed and the longest are drawn."""

MAX_SERIES = 6
"""Steps that get a colour of their own in the memory chart: more can't be told apart."""

_BUCKETS = 240
_TIME_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """A mark on an axis."""

    at: float
    """Percent of the axis."""
    label: str


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A stage on the timeline."""

    number: int
    """Of the stage in plan order."""
    stage: StageId
    status: Status
    x: float
    """Start, percent."""
    width: float
    """Percent; 0 for what took no time: it is drawn as a mark."""
    note: str
    """Written beside the bar."""
    side: str
    """Where the note stands: ``right`` of the bar, ``left`` of it, or ``inside`` its end."""
    title: str
    """Everything about it in a few lines."""
    needs: tuple[int, ...]
    critical: bool
    """Whether it is on the chain of stages that decided how long the run took."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A Gantt chart."""

    rows: tuple[tuple[Bar, ...], ...]
    labelled: bool
    """Whether each row is one stage and carries its name."""
    ticks: tuple[Tick, ...]
    unit: str
    hidden: int
    """Stages without a bar: those that did not run, where rows are shared."""
    critical: tuple[StageId, ...]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """An area of the memory chart."""

    label: str
    other: bool
    """Whether it stands for all steps that got no colour of their own."""
    path: str
    """SVG path in a plot of 1000 x 100."""
    peak: str
    title: str


class MemoryChart(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of all stages over time, stacked."""

    series: tuple[Series, ...]
    """Bottom first; the last is all other steps together where there are more than :data:`MAX_SERIES`."""
    ticks: tuple[Tick, ...]
    levels: tuple[Tick, ...]
    unit: str
    peak: str


def time_ticks(wall: float) -> tuple[tuple[Tick, ...], str]:
    """At most six round times up to ``wall`` seconds, and the unit that they are written in."""
    step = next((step for step in _TIME_STEPS if wall / step <= 6), _TIME_STEPS[-1])
    unit = "s" if wall < 120 else "min:s" if wall < 3600 else "h:min:s"
    times = [number * step for number in range(int(wall / step + 1e-9) + 1)]
    ticks = tuple(
        Tick(at=round(100 * time / wall, 3), label=f"{time:g}" if unit == "s" else format_clock(time)) for time in times
    )
    return ticks, unit


def byte_ticks(top: int) -> tuple[tuple[Tick, ...], int]:
    """Round sizes from 0 to the first one at or above ``top`` bytes, as percentages of that one, which is returned."""
    steps = (digit * 10**power for power in range(18) for digit in (1, 2, 5))
    step = next(step for step in steps if top <= 4 * step)
    count = max(1, -(-top // step))
    ticks = tuple(
        Tick(at=round(100 * number / count, 3), label=_round_bytes(number * step)) for number in range(count + 1)
    )
    return ticks, count * step


def _round_bytes(size: int) -> str:
    value, _, unit = format_bytes(size).partition(" ")
    return f"{float(value):g} {unit}" if size else "0"


def timeline(run: RunView) -> Timeline | None:
    """The chart of a run, or ``None`` where no stage ran."""
    if run.wall <= 0 or not any(stage.started is not None for stage in run.stages.values()):
        return None
    numbers = {stage: number for number, stage in enumerate(run.stages)}
    chain = critical_chain(run)
    bars = sorted((_bar(stage, run, numbers, chain) for stage in run.stages.values()), key=lambda bar: bar.x)
    ticks, unit = time_ticks(run.wall)
    labelled = len(bars) <= MAX_ROWS
    drawn = bars if labelled else [bar for bar in bars if run.stages[bar.stage].started is not None]
    if len(drawn) > MAX_BARS:
        wide = sorted(drawn, key=lambda bar: (bar.status != "failed", -bar.width))[:MAX_BARS]
        drawn = sorted(wide, key=lambda bar: bar.x)
    return Timeline(
        rows=tuple((bar,) for bar in drawn) if labelled else _lanes(drawn),
        labelled=labelled,
        ticks=ticks,
        unit=unit,
        hidden=len(bars) - len(drawn),
        critical=chain,
    )


def critical_chain(run: RunView) -> tuple[StageId, ...]:
    """The stages, first to last, each of which waited for the one before, that end with the last to finish."""
    ran = {s.stage: s for s in run.stages.values() if s.started is not None and s.finished is not None}
    chain: list[StageId] = []
    stage = max(ran.values(), key=lambda stage: stage.finished or 0.0, default=None)
    while stage is not None:
        chain.append(stage.stage)
        needed = [ran[need] for need in stage.planned.needs if need in ran]
        stage = max(needed, key=lambda stage: stage.finished or 0.0, default=None)
    return tuple(reversed(chain))


def _bar(stage: StageView, run: RunView, numbers: dict[StageId, int], chain: tuple[StageId, ...]) -> Bar:
    began = stage.started if stage.started is not None else stage.finished
    x = 0.0 if began is None else min(100.0, max(0.0, 100 * (began - run.started) / run.wall))
    elapsed = stage.elapsed(run.latest) if stage.started is not None else 0.0
    width = min(100 - x, 100 * elapsed / run.wall)
    notes = {"cached": "in the store", "blocked": "not reached"}
    note = notes.get(stage.status) or (format_duration(elapsed) if stage.started is not None else "not started")
    if stage.status in ("failed", "cancelled"):
        note = f"{stage.status}, {note}" if stage.started is not None else note
    side = "right" if x + width < 75 else "left" if x > 35 else "inside"
    return Bar(
        number=numbers[stage.stage],
        stage=stage.stage,
        status=stage.status,
        x=round(x, 3),
        width=round(width, 3),
        note=note,
        side=side,
        title=_title(stage, run, note),
        needs=tuple(numbers[need] for need in stage.planned.needs if need in numbers),
        critical=stage.stage in chain and len(chain) > 1,
    )


def _title(stage: StageView, run: RunView, note: str) -> str:
    lines = [f"{stage.stage}: {stage.status}" + ("" if stage.status in note else f", {note}")]
    if stage.started is not None and stage.finished is not None:
        begin, end = stage.started - run.started, stage.finished - run.started
        lines.append(f"from {format_clock(begin)} to {format_clock(end)}")
    if stage.peak_memory and stage.started is not None:
        lines.append(f"peak memory {format_bytes(stage.peak_memory)}, {stage.jobs} job{'s' * (stage.jobs != 1)}")
    if stage.planned.needs:
        needs = [*stage.planned.needs[:4], *(["..."] if len(stage.planned.needs) > 4 else [])]
        lines.append(f"needs {', '.join(needs)}")
    return "\n".join(lines)


def _lanes(bars: Sequence[Bar]) -> tuple[tuple[Bar, ...], ...]:
    """Bars on as few rows as possible, none over another."""
    lanes: list[list[Bar]] = []
    for bar in bars:
        free = next((lane for lane in lanes if lane[-1].x + lane[-1].width <= bar.x + 1e-9), None)
        if free is None:
            lanes.append([bar])
        else:
            free.append(bar)
    return tuple(tuple(lane) for lane in lanes)


def memory_chart(run: RunView) -> MemoryChart | None:
    """The chart of a run, or ``None`` where nothing was sampled."""
    sampled = [stage for stage in run.stages.values() if stage.samples]
    if not sampled or run.wall <= 0:
        return None
    named = _named_levels(sampled, run)
    totals = [sum(values) for values in zip(*(levels for _, levels, _ in named), strict=True)]
    levels, top = byte_ticks(max(totals))
    ticks, unit = time_ticks(run.wall)
    series: list[Series] = []
    floor = [0] * _BUCKETS
    for label, values, other in named:
        ceiling = [low + value for low, value in zip(floor, values, strict=True)]
        peak = format_bytes(max(values))
        at = format_clock(run.wall * (values.index(max(values)) + 0.5) / _BUCKETS)
        title = f"{label}: up to {peak}, at {at}"
        path = _area(floor, ceiling, top)
        series.append(Series(label=label, other=other, path=path, peak=peak, title=title))
        floor = ceiling
    return MemoryChart(series=tuple(series), ticks=ticks, levels=levels, unit=unit, peak=format_bytes(max(totals)))


def _named_levels(sampled: Sequence[StageView], run: RunView) -> list[tuple[str, list[int], bool]]:
    """Memory over time of each series: a step (``build``) in all variants together, small steps all together.

    With a label and whether it is the latter.
    """
    steps: dict[str, list[StageView]] = {}
    for stage in sorted(sampled, key=lambda stage: stage.started or 0.0):
        steps.setdefault(stage.stage.partition("[")[0], []).append(stage)
    levels = {
        step: [sum(values) for values in zip(*(_levels(stage, run) for stage in stages), strict=True)]
        for step, stages in steps.items()
    }
    by_peak = sorted(steps, key=lambda step: -max(levels[step]))
    own = by_peak if len(by_peak) <= MAX_SERIES else by_peak[: MAX_SERIES - 1]
    named = [
        (stages[0].stage if len(stages) == 1 else f"{step} ({len(stages)} stages)", levels[step], False)
        for step, stages in steps.items()
        if step in own
    ]
    rest = [step for step in steps if step not in own]
    if rest:
        count = sum(len(steps[step]) for step in rest)
        sums = [sum(values) for values in zip(*(levels[step] for step in rest), strict=True)]
        named.append((f"{count} other stages", sums, True))
    return named


def _levels(stage: StageView, run: RunView) -> list[int]:
    """Memory of a stage in each part of the run: the largest sample there, between samples the one before."""
    width = run.wall / _BUCKETS
    levels = [0] * _BUCKETS
    for time, memory in stage.samples:
        bucket = min(_BUCKETS - 1, max(0, int((time - run.started) / width)))
        levels[bucket] = max(levels[bucket], memory)
    begin = stage.started if stage.started is not None else stage.samples[0][0]
    end = stage.finished if stage.finished is not None else run.latest
    first, last = int((begin - run.started) / width), int((end - run.started) / width)
    before = stage.samples[0][1]
    for bucket in range(max(0, first), min(_BUCKETS - 1, last) + 1):
        levels[bucket] = before = levels[bucket] or before
    return levels


def _area(floor: Sequence[int], ceiling: Sequence[int], top: int) -> str:
    """Path of the parts where a series is not empty, in steps; heights are percent of ``top``, measured downwards."""
    step = 1000 / _BUCKETS
    path: list[str] = []
    bucket = 0
    while bucket < _BUCKETS:
        if ceiling[bucket] == floor[bucket]:
            bucket += 1
            continue
        begin = bucket
        while bucket < _BUCKETS and ceiling[bucket] > floor[bucket]:
            bucket += 1
        upper = [f"{x:g},{y:g}" for x, y in _steps(ceiling[begin:bucket], begin, step, top)]
        lower = [f"{x:g},{y:g}" for x, y in reversed(_steps(floor[begin:bucket], begin, step, top))]
        path.append(f"M{' L'.join([*upper, *lower])}Z")
    return "".join(path)


def _steps(values: Sequence[int], begin: int, step: float, top: int) -> list[tuple[float, float]]:
    points: list[tuple[float, float]] = []
    for number, value in enumerate(values):
        y = round(100 - 100 * value / top, 2)
        if points and points[-1][1] == y:  # the same level goes on: move its end
            points[-1] = (round((begin + number + 1) * step, 2), y)
            continue
        points += [(round((begin + number) * step, 2), y), (round((begin + number + 1) * step, 2), y)]
    return points
