from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.view import charts
from support import events, matrix_events
from support.events import fold

if TYPE_CHECKING:
    from axletree.core.events import Event


@given(st.floats(min_value=0.05, max_value=400_000))
def test_time_ticks_are_round_few_and_in_range(wall: float) -> None:
    ticks, unit = charts.time_ticks(wall)
    assert 1 <= len(ticks) <= 7
    assert ticks[0].at == 0
    assert all(0 <= tick.at <= 100 for tick in ticks)
    assert unit in ("s", "min:s", "h:min:s")
    assert len({tick.label for tick in ticks}) == len(ticks)


@given(st.integers(min_value=1, max_value=10**13))
def test_byte_ticks_reach_above_the_top(top: int) -> None:
    ticks, end = charts.byte_ticks(top)
    assert end >= top
    assert 2 <= len(ticks) <= 5
    assert (ticks[0].label, ticks[0].at, ticks[-1].at) == ("0", 0, 100)
    assert all(re.fullmatch(r"0|\d+(\.\d+)? (B|kB|MB|GB|TB)", tick.label) for tick in ticks)


def test_labels_of_byte_ticks() -> None:
    ticks, _ = charts.byte_ticks(3_130_000_000)
    assert [tick.label for tick in ticks] == ["0", "1 GB", "2 GB", "3 GB", "4 GB"]


@pytest.mark.parametrize("run", [events.green_run(), events.failing_run(), events.cancelled_run()])
def test_each_stage_has_a_row_within_the_plot(run: tuple[Event, ...]) -> None:
    view = fold(run)
    chart = charts.timeline(view)
    assert chart is not None
    assert chart.labelled
    assert {bar.stage for (bar,) in chart.rows} == set(view.stages)
    assert all(bar.x >= 0 and bar.x + bar.width <= 100.001 for (bar,) in chart.rows)


def test_bars_stand_where_the_stage_ran() -> None:
    view = fold(events.green_run())
    chart = charts.timeline(view)
    assert chart is not None
    build = next(bar for (bar,) in chart.rows if bar.stage == events.v("build"))
    assert build.x == pytest.approx(100 * 24.3 / view.wall, abs=0.01)
    assert build.width == pytest.approx(100 * 96 / view.wall, abs=0.01)
    assert build.note == "1 min 36 s"
    assert [list(view.stages)[number] for number in build.needs] == ["patch", events.v("environment:build")]


def test_the_longest_chain() -> None:
    chain = charts.critical_chain(fold(events.green_run()))
    assert [stage.partition("[")[0] for stage in chain] == [
        *("environment:build", "build", "install:build", "pack:torch-scatter", "audit:torch-scatter"),
        *("index:torch-2.13/cpu", "test:operators:pip"),
    ]


def test_many_stages_share_rows_without_overlap() -> None:
    view = fold(matrix_events.matrix_run(50))
    chart = charts.timeline(view)
    assert chart is not None
    assert not chart.labelled
    assert len(chart.rows) < 20
    for row in chart.rows:
        for left, right in itertools.pairwise(row):
            assert left.x + left.width <= right.x + 0.002
    drawn = sum(len(row) for row in chart.rows)
    assert drawn + chart.hidden == len(view.stages)
    assert drawn == sum(stage.started is not None for stage in view.stages.values())


def test_a_run_of_nothing_has_no_charts() -> None:
    view = fold(events.noop_run())
    assert charts.timeline(view) is None
    assert charts.memory_chart(view) is None


def test_memory_is_stacked_and_named() -> None:
    chart = charts.memory_chart(fold(events.green_run()))
    assert chart is not None
    assert len(chart.series) == charts.MAX_SERIES
    assert [series.other for series in chart.series] == [False] * 5 + [True]
    assert chart.series[-1].label == "6 other stages"
    heights = [float(y) for series in chart.series for y in re.findall(r",([\d.]+)", series.path)]
    assert min(heights) >= 0
    assert max(heights) <= 100
    assert all(re.fullmatch(r"(M[\d., L]+Z)+", series.path) for series in chart.series)


def test_memory_of_many_variants_is_named_by_step() -> None:
    chart = charts.memory_chart(fold(matrix_events.matrix_run(20)))
    assert chart is not None
    assert "build (16 stages)" in [series.label for series in chart.series]
