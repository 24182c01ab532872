from __future__ import annotations

import io
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.console import Console

from axletree.core.events import RunStarted, StageFinished, StageProgress
from axletree.core.values import StageId
from axletree.report.plan import plan_report
from axletree.view.live import LiveView, Machine, finished_line, frame
from axletree.view.plain import PlainView
from axletree.view.plan import plan_text
from axletree.view.summary import summary_lines
from support import events, matrix_events
from support.events import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from axletree.core.events import Event

INSTALL = ("pip install 'torch-scatter @ file:///home/me/dist/torch-2.13/cpu/torch_scatter-2.1.2-py3-none-any.whl'",)
RUNS = {
    "green": events.green_run(),
    "noop": events.noop_run(),
    "failing": events.failing_run(),
    "cancelled": events.cancelled_run(),
    "matrix": matrix_events.matrix_run(20),
}


def plain(run: Iterable[Event]) -> list[str]:
    lines: list[str] = []
    with PlainView(lines.append) as view:
        for event in run:
            view.handle(event, 0.0)
    return lines


class Terminal(Console):
    """A terminal without colours that remembers what was written to it."""

    def __init__(self, width: int) -> None:
        self.written = io.StringIO()
        super().__init__(file=self.written, width=width, height=14, force_terminal=True, color_system=None, _environ={})

    @property
    def text(self) -> str:
        return self.written.getvalue()


@pytest.mark.parametrize("name", RUNS)
def test_plain_lines_with_summary(name: str, golden: Callable[[str, str], None]) -> None:
    out = summary_lines(fold(RUNS[name]), out="dist", install=INSTALL, report="dist/report.html")
    golden(f"view/plain-{name}.txt", "\n".join([*plain(RUNS[name]), "", *out]) + "\n")


def test_a_summary_shows_some_of_many_commands() -> None:
    install = [f"pip install small=={n}" for n in range(40)]
    lines = summary_lines(fold(RUNS["green"]), out="dist", install=install)
    assert lines[-2:] == ["install with: pip install small==3", "  and 36 more, for other variants: see the report"]


def test_progress_is_thinned_by_count_not_by_time() -> None:
    start = events.play(events.GREEN)[:1]
    stage = StageId(events.v("build"))
    steps = [
        StageProgress(time=events.START + n / 100, stage=stage, message=f"[{n}/5000] cc", done=n, total=5000)
        for n in range(5001)
    ]
    lines = [line for line in plain([*start, *steps]) if "cc" in line]
    assert len(lines) == 10
    open_end = [StageProgress(time=events.START, stage=stage, message="file", done=n) for n in range(1, 1001)]
    assert len([line for line in plain([*start, *open_end]) if "file" in line]) == 28


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [
        (0, 54_631, "0 B of 54.6 kB fetching a.tar.gz"),
        (57_000_000, 190_000_000, "57.0 MB of 190 MB fetching a.tar.gz"),
        (54_631, None, "54.6 kB fetching a.tar.gz"),
    ],
)
def test_bytes_are_shown_as_sizes(done: int, total: int | None, shown: str) -> None:
    start = events.play(events.GREEN)[:1]
    step = StageProgress(
        time=events.START,
        stage=StageId("fetch"),
        message="fetching a.tar.gz",
        done=done,
        total=total,
        unit="bytes",
    )
    assert plain([*start, step])[-1].split(None, 2)[2] == shown
    many = msgspec.structs.replace(step, done=1, total=200_000, unit="steps")
    assert plain([*start, many])[-1].split(None, 2)[2] == "[1/200000] fetching a.tar.gz"


def test_terminal_escapes_of_a_log_do_not_reach_the_terminal() -> None:
    broken = events.changed(
        events.GREEN[0], status="failed", message="\x1b]0;owned\x07bad", cause=("\x1b[2Jcleared\rover",), steps=()
    )
    run = events.play((broken,))
    text = "\n".join([*plain(run), *summary_lines(fold(run), out="dist")])
    assert "\x1b" not in text
    assert "\r" not in text
    assert "clearedover" in text


@pytest.mark.parametrize(
    ("name", "count", "width"), [("green", 30, 100), ("green", 100, 80), ("failing", 80, 60), ("matrix", 1500, 120)]
)
def test_live_frames(name: str, count: int, width: int, golden: Callable[[str, str], None]) -> None:
    view = fold(RUNS[name][:count])
    console = Terminal(width)
    machine = Machine(memory_used=9_000_000_000, memory_total=25_200_000_000)
    for stage in (*view.having("done")[-4:], *view.having("failed")):
        console.print(finished_line(stage), soft_wrap=True, highlight=False)
    console.print(frame(view, view.latest + 0.5, width=width, height=12, machine=machine))
    golden(f"view/live-{name}-{width}.txt", console.text)


@pytest.mark.parametrize("height", [3, 5, 8, 20])
def test_live_frames_keep_below_the_height(height: int) -> None:
    view = fold(RUNS["matrix"][:1500])
    console = Terminal(80)
    console.print(frame(view, view.latest, width=80, height=height))
    lines = console.text.splitlines()
    assert len(lines) < height
    assert all(len(line) <= 80 for line in lines)


def test_live_view_leaves_one_line_for_each_stage_and_a_clean_terminal() -> None:
    console = Terminal(100)
    with LiveView(console) as live:
        for event in events.failing_run():
            live.handle(event, event.time)
            live.tick(event.time, Machine(memory_used=1, memory_total=2))
    text = console.text
    assert text.count("✗ build[py311-cpu-torch2.13.0]  FAILED after 41 s") == 1
    assert text.count("✓ environment:test[py311-cpu-torch2.13.0]  done") == 1
    assert "in the store" in text
    assert events.CAUSE[0] in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_live_view_gives_the_cursor_back_after_an_error() -> None:
    console = Terminal(100)

    def interrupted() -> None:
        with LiveView(console) as live:
            live.handle(events.green_run()[0], events.START)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    text = console.text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_live_view_counts_the_short_stages_of_a_large_run() -> None:
    console = Terminal(100)
    run = matrix_events.matrix_run(20)
    with LiveView(console) as live:
        for event in run:
            live.handle(event, event.time)
    text = console.text
    finished = [e for e in run if isinstance(e, StageFinished) and e.status == "done" and e.metrics is not None]
    assert text.count("✓ ") == sum(e.metrics.wall >= 1 for e in finished if e.metrics is not None)


def planned(run: tuple[Event, ...]) -> RunStarted:
    assert isinstance(run[0], RunStarted)
    return run[0]


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize(("name", "width"), [("failing", 110), ("matrix", 90), ("noop", 80)])
def test_plans(name: str, width: int, *, explain: bool, golden: Callable[[str, str], None]) -> None:
    start = planned(RUNS[name] if name != "matrix" else matrix_events.matrix_run(4))
    perhaps = {stage.stage for stage in start.stages if stage.action in ("install", "pack")}
    report = plan_report(start.recipe, variants=start.variants, stages=start.stages, perhaps=perhaps)
    text = plan_text(report, width=width, explain=explain)
    golden(f"view/plan-{name}{'-explain' if explain else ''}.txt", text + "\n")


def test_plan_as_json(golden: Callable[[str, str], None]) -> None:
    start = planned(RUNS["failing"])
    report = plan_report(start.recipe, variants=start.variants, stages=start.stages)
    golden("view/plan-failing.json", msgspec.json.format(msgspec.json.encode(report)).decode() + "\n")
