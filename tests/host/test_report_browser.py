"""The report in a real browser: nothing is loaded, nothing complains, and its controls work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.core.values import StageId
from axletree.view.report import render_report, report_data
from support import events, reports
from support.browser import chromium, find_chromium
from support.events import fold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.view.report import ReportData
    from support.browser import Browser, Page

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert CHROMIUM is not None
    with chromium(CHROMIUM, tmp_path_factory.mktemp("profile")) as running:
        yield running


def open_report(browser: Browser, data: ReportData, folder: Path, *, width: int = 1280, dark: bool = False) -> Page:
    path = folder / "report.html"
    path.write_text(render_report(data), encoding="utf-8")
    page = browser.page()
    page.look(width=width, dark=dark)
    page.open(path.as_uri())
    return page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", reports.SAMPLES)
def test_opens_quietly_and_fits(browser: Browser, tmp_path: Path, name: str, width: int, *, dark: bool) -> None:
    page = open_report(browser, reports.SAMPLES[name](), tmp_path, width=width, dark=dark)
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.screenshot(tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 20_000
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(19, 20, 23)" if dark else "rgb(247, 247, 245)")


@pytest.mark.parametrize("name", ["green", "failing", "cancelled", "single"])
def test_timeline_has_a_visible_bar_for_each_stage(browser: Browser, tmp_path: Path, name: str) -> None:
    data = reports.SAMPLES[name]()
    page = open_report(browser, data, tmp_path)
    widths = page.evaluate(
        "[...document.querySelectorAll('.gantt .stage .bar')].map((bar) => bar.getBoundingClientRect().width)"
    )
    assert len(widths) == len(data.run.stages)
    assert min(widths) > 0


def test_large_timeline_has_a_bar_for_each_stage_that_ran(browser: Browser, tmp_path: Path) -> None:
    data = reports.big()
    page = open_report(browser, data, tmp_path)
    ran = sum(stage.started is not None for stage in data.run.stages.values())
    assert page.evaluate("document.querySelectorAll('.gantt .stage').length") == ran


def test_pointing_at_a_bar_shows_what_it_needs(browser: Browser, tmp_path: Path) -> None:
    page = open_report(browser, reports.green(), tmp_path)
    number = list(reports.green().run.stages).index(StageId(events.v("build")))
    page.evaluate(
        f"document.querySelector('[data-stage=\"{number}\"]').dispatchEvent(new PointerEvent('pointerenter'))"
    )
    assert "needs patch, environment:build" in page.evaluate("document.getElementById('stage-info').textContent")
    assert page.evaluate("document.querySelectorAll('.links path').length") == 3
    assert page.evaluate("document.querySelectorAll('.label.near').length") == 4
    page.evaluate("document.querySelector('.gantt').dispatchEvent(new PointerEvent('pointerleave'))")
    assert page.evaluate("document.querySelectorAll('.links path, .near').length") == 0


def test_filter_hides_what_does_not_match(browser: Browser, tmp_path: Path) -> None:
    page = open_report(browser, reports.green(), tmp_path)
    page.evaluate(
        "{ const box = document.querySelector('[data-filter=findings-list]');"
        " box.value = 'RUNPATH machine'; box.dispatchEvent(new Event('input')); }"
    )
    shown = "[...document.querySelectorAll('.finding')].filter((row) => row.getClientRects().length > 0)"
    assert page.evaluate(f"{shown}.length") == 1
    assert page.evaluate(f"{shown}[0].querySelector('code').textContent") == "dist/rpath-outside"
    assert page.evaluate("document.querySelector('#findings output').textContent") == "1 of 4"


def test_tables_sort_by_value_not_by_text(browser: Browser, tmp_path: Path) -> None:
    page = open_report(browser, reports.green(), tmp_path)
    click = "[...document.querySelectorAll('#stages-table .sort')].find((b) => b.textContent === 'Peak memory').click()"
    page.evaluate(click)
    first = "document.querySelector('#stages-table tbody tr').cells[0].textContent"
    assert page.evaluate(first) == events.v("build")
    page.evaluate(click)
    assert page.evaluate(first) == "patch"


def test_hostile_text_does_not_run(browser: Browser, tmp_path: Path) -> None:
    text = "\"'><script>pwned = 1</script><img src=x onerror='pwned = 2'>"
    script = events.changed(events.GREEN[0], id=f"fetch[{text}]", status="failed", message=text, cause=(text,))
    data = report_data(
        fold(events.play((script,))), records={}, recipe_name=text, recipe_version=text, host={text: text}, toolchain={}
    )
    page = open_report(browser, data, tmp_path)
    assert page.evaluate("typeof pwned") == "undefined"
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert page.evaluate("document.querySelector('h1').textContent").startswith(text)
    assert page.complaints() == []


def test_a_script_that_got_in_would_not_run(browser: Browser, tmp_path: Path) -> None:
    page = open_report(browser, reports.single(), tmp_path)
    page.evaluate(
        "{ const script = document.createElement('script'); script.textContent = 'pwned = 1';"
        " document.body.append(script); }"
    )
    assert page.evaluate("typeof pwned") == "undefined"
    assert "Content Security Policy" in "".join(page.complaints())


def test_folds_open_for_paper(browser: Browser, tmp_path: Path) -> None:
    page = open_report(browser, reports.big(), tmp_path)
    closed = "document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(closed)
    assert before > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(closed) == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(closed) == before
