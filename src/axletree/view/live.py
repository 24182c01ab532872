"""A run on a terminal: what is running now, redrawn in place; what is finished, one line each, above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec
from rich.console import Group
from rich.live import Live
from rich.text import Text

from axletree.core.events import Event, RunStarted, StageFinished, StageStarted, Status
from axletree.core.units import format_bytes, format_clock, format_duration
from axletree.view.choose import EventView
from axletree.view.findings import COLOURS, finding_lines
from axletree.view.plain import download_lines, failure_lines, outcome_text, step_text
from axletree.view.state import RunView, StageView, apply
from axletree.view.tables import printable

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console, RenderableType

    from axletree.core.findings import Finding

MARKS: dict[Status, tuple[str, str]] = {
    "waiting": ("·", "dim"),
    "running": ("▶", "cyan"),
    "done": ("✓", "green"),
    "cached": ("=", "dim"),
    "failed": ("✗", "bold red"),
    "blocked": ("-", "yellow"),
    "cancelled": ("■", "yellow"),
}
"""Mark and style of each status; the mark says it without the colour."""

REFRESH = 0.1
"""Seconds between two drawings of a run that sends many events."""

_BAR = 20
_FAILED_SHOWN = 3
_TICK = 1.0
_QUIET_ABOVE = 40
"""From this many stages on, those that took less than ``_TICK`` are counted and get no line of their own."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's memory now, bytes."""

    memory_used: int
    memory_total: int


def finished_line(stage: StageView) -> Text:
    """The one line that a finished stage collapses to, with its cause below it where it failed."""
    mark, style = MARKS[stage.status]
    line = Text.assemble((mark, style), " ", (stage.stage, "bold" if stage.status == "failed" else ""), "  ")
    line.append(outcome_text(stage), style=style if stage.status in ("failed", "blocked", "cancelled") else "dim")
    if stage.status == "failed":
        for text in failure_lines(stage, "  "):
            line.append("\n" + text, style="red" if text.startswith("    ") else "dim")
    return line


def finding_text(finding: Finding) -> Text:
    """A finding with its severity in its colour."""
    text = Text("\n".join(finding_lines(finding)))
    text.stylize(f"bold {COLOURS[finding.severity]}", 0, len(finding.severity))
    return text


def frame(view: RunView, now: float, *, width: int, height: int, machine: Machine | None = None) -> RenderableType:
    """The part that is redrawn: failed stages, running ones (the longest-running first), the overall line.

    Args:
        view: The run so far.
        now: Seconds since the epoch.
        width: Columns of the terminal.
        height: Its rows; the frame keeps below it.
        machine: The machine's memory, shown if given.
    """
    room = max(1, height - 3)
    failed = view.having("failed")[-min(_FAILED_SHOWN, room // 3) :] if room >= 3 else ()
    running = sorted(view.having("running"), key=lambda stage: stage.started or now)
    more = len(running) + len(failed) > room
    shown = running[: room - len(failed) - more]
    columns = max((len(stage.stage) for stage in (*failed, *shown)), default=0)
    lines = [_row(stage, now, columns) for stage in (*failed, *shown)]
    if more:
        lines.append(Text(f"  and {len(running) - len(shown)} more running", "dim"))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Group(*lines, _overall(view, now, width=width, machine=machine))


def _row(stage: StageView, now: float, columns: int) -> Text:
    mark, style = MARKS[stage.status]
    failed = stage.status == "failed"
    words = printable(stage.message or "failed") if failed else step_text(stage)
    memory = "" if failed or not stage.memory else format_bytes(stage.memory)
    row = Text.assemble(
        (f"{mark} ", style),
        (f"{stage.stage:<{columns}}", "bold" if failed else ""),
        f" {format_clock(stage.elapsed(now)):>7}",
        (f" {memory:>7}  ", "dim"),
        (words, style if failed else ""),
        no_wrap=True,
        overflow="ellipsis",
    )
    row.rstrip()
    return row


def _overall(view: RunView, now: float, *, width: int, machine: Machine | None) -> Text:
    over, total = sum(stage.over for stage in view.stages.values()), len(view.stages)
    failed, blocked = len(view.having("failed")), len(view.having("blocked"))
    words = Text.assemble(
        (f"{over}/{total} stages", "bold"), f"  {len(view.having('running'))} running", f"  {_eta(view, now)}"
    )
    if failed:
        words.append(f"  {failed} failed", "bold red")
    if blocked:
        words.append(f"  {blocked} not reached", "yellow")
    if machine is not None:
        share = machine.memory_used / machine.memory_total if machine.memory_total else 0.0
        words.append(
            f"  memory {format_bytes(machine.memory_used)} of {format_bytes(machine.memory_total)}",
            "red" if share > 0.9 else "dim",
        )
    if width >= 100:
        filled = round(_BAR * over / max(total, 1))
        words = Text.assemble(("━" * filled, "cyan"), ("─" * (_BAR - filled), "bright_black"), "  ", words)
    words.truncate(width, overflow="ellipsis")
    return words


def _eta(view: RunView, now: float) -> str:
    """Elapsed time, and the work that is left where every stage left has run before."""
    left = 0.0
    for stage in view.having("waiting", "running"):
        if stage.planned.estimate is None:
            return format_clock(now - view.started)
        left += max(0.0, stage.planned.estimate - stage.elapsed(now))
    return f"{format_clock(now - view.started)}, {format_duration(left)} of work left"


class LiveView(EventView):
    """Draws a run on a terminal; see :class:`axletree.view.choose.EventView`."""

    def __init__(self, console: Console) -> None:
        """``console`` must be a terminal that can move its cursor."""
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._machine: Machine | None = None
        self._drawn = 0.0
        self.state = RunView()
        """The run so far."""

    def __enter__(self) -> Self:
        """Take the bottom of the terminal."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the drawing and show the cursor again; the lines above stay."""
        self._live.update(Group(), refresh=False)
        self._live.stop()

    def handle(self, event: Event, now: float) -> None:
        """Take an event in; draws at most every tenth of a second, but starts and ends at once."""
        self.state = apply(self.state, event)
        if isinstance(event, StageFinished) and self._worth_a_line(self.state.stages[event.stage]):
            self._console.print(finished_line(self.state.stages[event.stage]), soft_wrap=True, highlight=False)
        if isinstance(event, RunStarted):
            for line in download_lines(event.downloads):
                self._console.print(Text(line, "dim"), soft_wrap=True)
            for finding in event.findings:
                self._console.print(Text(), finding_text(finding), sep="\n", soft_wrap=True)
        at_once = isinstance(event, RunStarted | StageStarted)
        if at_once or now - self._drawn >= REFRESH:
            self._draw(now)

    def tick(self, now: float, machine: Machine | None = None) -> None:
        """Draw the clocks anew; call it about every second."""
        self._machine = machine or self._machine
        self._draw(now)

    def _worth_a_line(self, stage: StageView) -> bool:
        if stage.status in ("failed", "done"):
            many = len(self.state.stages) > _QUIET_ABOVE
            return stage.status == "failed" or not many or stage.elapsed(0.0) >= _TICK
        return stage.status == "cached" and not stage.planned.cached

    def _draw(self, now: float) -> None:
        self._drawn = now
        size = self._console.size
        drawn = frame(self.state, now, width=size.width, height=size.height, machine=self._machine)
        self._live.update(drawn, refresh=True)
