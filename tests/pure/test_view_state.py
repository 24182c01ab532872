from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.events import (
    Event,
    MemorySampled,
    RunStarted,
    StageFinished,
    StagePlanned,
    StageProgress,
    StageStarted,
)
from axletree.core.values import Key, StageId
from axletree.view.choose import choose_view
from axletree.view.jsonl import JsonView, encode
from axletree.view.state import MAX_SAMPLES, Folding, RunView, apply
from support import events, matrix_events
from support.events import fold

BUILD = StageId(events.v("build"))


def test_fold_is_apply_event_by_event() -> None:
    view = RunView()
    for event in events.failing_run():
        view = apply(view, event)
    assert view == fold(events.failing_run())


def test_a_folding_holds_the_state_and_no_event() -> None:
    """A run of hours has hundreds of thousands of memory samples."""
    folding = Folding()
    stage = StagePlanned(stage=StageId("a"), action="run", needs=(), variants=("any",), cached=False)
    folding.take(RunStarted(time=0.0, recipe="r", variants=("any",), stages=(stage,)))
    for second in range(4 * MAX_SAMPLES):
        folding.take(MemorySampled(time=float(second), stage=StageId("a"), memory=second, processes=1))
    (view,) = folding.view.stages.values()
    assert len(view.samples) <= MAX_SAMPLES
    assert view.peak_memory == 4 * MAX_SAMPLES - 1


def test_apply_leaves_the_state_before_as_it_was() -> None:
    states = list(itertools.accumulate(events.green_run(), apply, initial=RunView()))
    again = list(itertools.accumulate(events.green_run(), apply, initial=RunView()))
    assert states == again
    assert states[1].stages[BUILD].status == "waiting"


def test_a_green_run() -> None:
    run = fold(events.green_run())
    build = run.stages[BUILD]
    assert run.status == "done"
    assert {stage.status for stage in run.stages.values()} == {"done"}
    assert build.elapsed(0.0) == pytest.approx(96.0)
    assert build.peak_memory == 2_950_000_000
    assert build.started == events.START + 24.3
    assert build.finished == pytest.approx(events.START + 120.3)
    assert len(run.published) == 4


def test_a_failing_run_keeps_cause_and_log() -> None:
    run = fold(events.failing_run())
    (failed,) = run.having("failed")
    assert failed.cause == events.CAUSE
    assert failed.log is not None
    assert failed.log.startswith(events.LOGS)
    assert len(run.having("blocked")) == 6


def test_elapsed_grows_while_a_stage_runs() -> None:
    run = fold(e for e in events.green_run() if not (isinstance(e, StageFinished) and e.stage == BUILD))
    assert run.stages[BUILD].elapsed(events.START + 30.3) == pytest.approx(6.0)


def test_a_second_start_forgets_what_the_first_said() -> None:
    stage = StageId("build")
    planned = StagePlanned(stage=stage, action="build", needs=(), variants=("a",), cached=False)
    run = fold(
        [
            RunStarted(time=0.0, recipe="x", variants=("a",), stages=(planned,)),
            StageStarted(time=1.0, stage=stage, key=Key("k"), jobs=8, log="l"),
            StageProgress(time=2.0, stage=stage, message="c++", done=5, total=9),
            MemorySampled(time=2.0, stage=stage, memory=100, processes=9),
            StageStarted(time=3.0, stage=stage, key=Key("k"), jobs=1, log="l"),
        ]
    ).stages[stage]
    assert (run.done, run.progress, run.jobs, run.started) == (None, "", 1, 3.0)
    assert run.peak_memory == 100


def test_events_of_a_stage_that_was_not_planned_are_shown() -> None:
    stage = StageId("late")
    run = fold([StageStarted(time=1.0, stage=stage, key=Key("k"), jobs=1, log="l")])
    assert run.stages[stage].status == "running"


@given(st.lists(st.integers(min_value=0, max_value=10**12), min_size=1, max_size=4 * MAX_SAMPLES))
def test_samples_stay_few_in_order_and_keep_their_peak(memory: list[int]) -> None:
    stage = StageId("s")
    view = fold(MemorySampled(time=float(i), stage=stage, memory=m, processes=1) for i, m in enumerate(memory))
    samples = view.stages[stage].samples
    assert len(samples) <= MAX_SAMPLES
    assert max(m for _, m in samples) == max(memory) == view.stages[stage].peak_memory
    assert [t for t, _ in samples] == sorted(t for t, _ in samples)
    assert samples[-1] == (float(len(memory) - 1), memory[-1])


def test_a_long_run_keeps_samples_of_all_its_time() -> None:
    stage, last = StageId("s"), 40 * MAX_SAMPLES
    folding = Folding()
    for second in range(last):
        folding.take(MemorySampled(time=1.7e9 + second, stage=stage, memory=second % 97, processes=1))
    samples = folding.view.stages[stage].samples
    gaps = [after - before for (before, _), (after, _) in itertools.pairwise(samples)]
    assert max(gaps) < last / 60
    assert {memory for _, memory in samples[:-1]} <= set(range(50, 97))  # the largest of each part


@pytest.mark.parametrize("run", [events.green_run(), events.noop_run(), events.failing_run(), events.cancelled_run()])
def test_events_survive_json(run: tuple[Event, ...]) -> None:
    assert tuple(msgspec.json.decode(encode(event), type=Event) for event in run) == run


def test_json_lines_of_progress_and_memory_are_few_and_tell_all() -> None:
    lines: list[str] = []
    view, stage, other = JsonView(lines.append), StageId("a"), StageId("b")
    for number in range(1, 1001):  # 100 steps a second
        time = number / 100
        view.handle(StageProgress(time=time, stage=stage, message="c", done=number, total=1000), 0.0)
        view.handle(MemorySampled(time=time, stage=stage, memory=900 if number == 333 else 5, processes=1), 0.0)
    view.handle(StageProgress(time=10.0, stage=other, message="another"), 0.0)
    few = len(lines)
    assert few < 50
    view.handle(StageProgress(time=10.01, stage=stage, message="installing"), 0.0)
    view.handle(StageFinished(time=10.02, stage=stage, status="done"), 0.0)
    events = [msgspec.json.decode(line, type=Event) for line in lines]
    steps = [event for event in events if isinstance(event, StageProgress) and event.stage == stage]
    assert [event.message for event in steps[-2:]] == ["c", "installing"]
    assert steps[-2].done == 1000
    assert max(event.memory for event in events if isinstance(event, MemorySampled)) == 900
    assert isinstance(events[-1], StageFinished)


def test_json_lines_hold_nothing_back_while_others_go_on() -> None:
    lines: list[str] = []
    view = JsonView(lines.append)
    for time, done in ((0.0, 1), (0.1, 2)):
        view.handle(StageProgress(time=time, stage=StageId("a"), message="c", done=done), 0.0)
    assert len(lines) == 1
    view.handle(MemorySampled(time=0.6, stage=StageId("b"), memory=1, processes=1), 0.0)
    assert '"done":2' in lines[1]


def test_json_lines_are_lines_and_the_first_has_the_schema() -> None:
    lines: list[str] = []
    with JsonView(lines.append) as view:
        for event in matrix_events.matrix_run(3):
            view.handle(event, 0.0)
    assert not any("\n" in line for line in lines)
    assert '"event":"run-started"' in lines[0]
    assert '"schema":1' in lines[0]


@pytest.mark.parametrize(
    ("environ", "terminal", "json", "color", "kind"),
    [
        ({"TERM": "xterm-256color"}, True, False, None, "live"),
        ({"TERM": "xterm-256color"}, True, False, True, "live"),
        ({"TERM": "xterm-256color"}, True, False, False, "plain"),
        ({"TERM": "dumb"}, True, False, None, "plain"),
        ({}, True, False, None, "plain"),
        ({"TERM": "xterm-256color"}, False, False, None, "plain"),
        ({"TERM": "xterm-256color"}, False, False, True, "plain"),
        ({"TERM": "xterm-256color"}, True, True, None, "json"),
        ({"TERM": "dumb"}, False, True, None, "json"),
    ],
)
def test_choice_of_the_view(
    environ: dict[str, str], kind: str, *, terminal: bool, json: bool, color: bool | None
) -> None:
    assert choose_view(environ, is_terminal=terminal, json=json, color=color) == kind
