"""A run as plain lines: for logs of a CI system, pipes, and terminals that want no colour."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.events import Event, RunStarted, StageFinished, StageProgress, StageStarted
from axletree.core.units import format_bytes, format_clock, format_duration, plural, some_lines
from axletree.view.choose import EventView
from axletree.view.findings import Style, counted, finding_lines, indented, plain
from axletree.view.state import WAITS, RunView, StageView, apply
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from axletree.core.events import Download, ProgressUnit
    from axletree.core.findings import Finding

MAX_CAUSE = 20
"""Lines of a failure's cause that are shown; the log has all."""

MAX_DOWNLOADS = 5
"""Files to download that are named, largest first."""

_COUNT_PREFIX = re.compile(r"^\[\s*\d+/\d+\]\s*")
_NAME_COLUMNS = 44


def step_text(stage: StageView) -> str:
    """How far a stage is; see :func:`progress_text`."""
    return progress_text(stage.progress, stage.done, stage.total, stage.unit)


def progress_text(message: str, done: int | None, total: int | None, unit: ProgressUnit) -> str:
    """How far work is: ``[12/40] c++ -c a.cpp``, ``57.0 MB of 190 MB torch.whl``, or the phase alone."""
    words = printable(message).partition("\n")[0].strip()
    if done is None:
        return words
    if unit == "bytes":
        whole = "" if total is None else f" of {format_bytes(total)}"
        return f"{format_bytes(done)}{whole} {words}".rstrip()
    words = _COUNT_PREFIX.sub("", words)
    return f"[{done}{'' if total is None else f'/{total}'}] {words}".rstrip()


def running_text(view: RunView) -> str:
    """What a run is at: the stage that has been at work longest, and how many others are."""
    running = sorted(view.having("running"), key=lambda stage: stage.started or 0.0)
    if not running:
        return ""
    more = f" and {len(running) - 1} more" if len(running) > 1 else ""
    return f"{running[0].stage} {step_text(running[0])}".rstrip() + more


def outcome_text(stage: StageView) -> str:
    """How a finished stage ended, without its name: ``done in 42 s``, ``FAILED after 3.0 s: no such file``."""
    took = format_duration(stage.elapsed(0.0))
    if stage.status == "done":
        peak = f", peak memory {format_bytes(stage.peak_memory)}" if stage.peak_memory else ""
        return f"done in {took}{peak}{_findings_text(stage)}"
    if stage.status == "cached":
        return f"in the store{_findings_text(stage)}"
    reason = f": {printable(stage.message)}" if stage.message else ""
    if stage.status == "failed":
        return f"FAILED after {took}{reason}"
    if stage.status == "blocked":
        return f"not reached{reason}"
    return f"cancelled after {took}{reason}" if stage.started is not None else "not started"


def failure_lines(stage: StageView, indent: str, style: Style = plain) -> list[str]:
    """The root cause of a failed stage, its findings of severity error, and where its log is."""
    lines = [indent + "  " + line for text in stage.cause[:MAX_CAUSE] for line in printable(text).split("\n")]
    if len(stage.cause) > MAX_CAUSE:
        lines.append(f"{indent}  ... {plural(len(stage.cause) - MAX_CAUSE, 'more line')} in the log")
    for finding in stage.findings:
        if finding.severity == "error" and not finding.waived:
            told = msgspec.structs.replace(finding, lines=())  # they are the cause above
            lines += indented(finding_lines(told, style), f"{indent}  ")
    return [*lines, f"{indent}log: {stage.log}"] if stage.log else lines


def download_lines(downloads: Sequence[Download]) -> list[str]:
    """What will be fetched, before it is: the total, and the largest files."""
    if not downloads:
        return []
    known = [file.size for file in downloads if file.size is not None]
    unknown = f", {len(downloads) - len(known)} of unknown size" if len(known) < len(downloads) else ""
    sizes = ("?" if file.size is None else format_bytes(file.size) for file in downloads)
    lines = [f"{size:>8}  {printable(file.filename)}" for size, file in zip(sizes, downloads, strict=True)]
    total = f"to download: {plural(len(downloads), 'file')}, {format_bytes(sum(known))}{unknown}"
    return [total, *(f"  {line}" for line in some_lines(lines, MAX_DOWNLOADS))]


def warning_lines(findings: Sequence[Finding], style: Style = plain) -> list[str]:
    """What is to be said of a plan before it runs."""
    return [line for finding in findings for line in ("", *finding_lines(finding, style))]


def plain_lines(before: RunView, event: Event, after: RunView, style: Style = plain) -> list[str]:
    """The lines, mostly one or none, that an event is worth; ``before`` and ``after`` are the states around it.

    Progress is thinned by what was done, not by time, so a log of the same run always has the same lines: one for each
    tenth of a known total (a quarter of a download), each leading digit of a count without one, each new phase.
    """
    if isinstance(event, RunStarted):
        return [_head(after), *download_lines(event.downloads), *warning_lines(event.findings, style)]
    if isinstance(event, StageStarted):
        again = "started again" if event.stage in before.stages and before.stages[event.stage].started else "started"
        if event.waits:
            return [_line(after, event, WAITS)]
        jobs = f" ({event.jobs} jobs)" if event.jobs > 1 else ""
        return [_line(after, event, again + jobs)]
    if isinstance(event, StageProgress):
        stage, last = after.stages[event.stage], before.stages.get(event.stage)
        if _progress_step(stage) is None or (last is not None and _progress_step(last) == _progress_step(stage)):
            return []
        return [_line(after, event, step_text(stage))]
    if isinstance(event, StageFinished):
        return _finished(event, after, style)
    return []


def _finished(event: StageFinished, after: RunView, style: Style) -> list[str]:
    stage = after.stages[event.stage]
    # The head line counted what the plan found in the store, the summary counts what was not reached.
    if event.status == "blocked" or (event.status == "cached" and stage.planned.cached):
        return []
    if event.status == "cancelled" and stage.started is None:
        return []
    line = _line(after, event, outcome_text(stage))
    return [line, *failure_lines(stage, " " * 9, style)] if event.status == "failed" else [line]


def _head(view: RunView) -> str:
    cached = sum(stage.planned.cached for stage in view.stages.values())
    return (
        f"{view.recipe}: {plural(len(view.stages), 'stage')} for {plural(len(view.variants), 'variant')}, "
        f"{cached:,} in the store, {len(view.stages) - cached:,} to run"
    )


def _line(view: RunView, event: StageStarted | StageProgress | StageFinished, text: str) -> str:
    columns = min(_NAME_COLUMNS, max(map(len, view.stages)))
    return f"{format_clock(event.time - view.started):>7}  {event.stage:<{columns}}  {text}".rstrip()


def _progress_step(stage: StageView) -> int | str | None:
    """What must change for a line to be worth it; ``None`` where there is nothing to say."""
    if stage.done is None:
        return stage.progress or None
    if not stage.total:
        return f"{len(str(stage.done))}{str(stage.done)[0]}"
    # The last step says no more than the line of the finished stage that follows; downloads matter less than steps.
    parts = 4 if stage.unit == "bytes" else 10
    return stage.done * parts // stage.total if stage.done < stage.total else None


def _findings_text(stage: StageView) -> str:
    said = counted([finding for finding in stage.findings if finding.severity != "info"])
    return f", {said}" if said else ""


class PlainView(EventView):
    """Writes plain lines as events come; see :class:`axletree.view.choose.EventView`."""

    def __init__(self, write: Callable[[str], object], style: Style = plain) -> None:
        """``write`` takes one line without its newline, ``style`` colours severities."""
        self._write = write
        self._style = style
        self.state = RunView()
        """The run so far."""

    def handle(self, event: Event, now: float) -> None:
        """Write the lines of an event."""
        del now
        before, self.state = self.state, apply(self.state, event)
        for line in plain_lines(before, event, self.state, self._style):
            self._write(line)
