from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest

from axletree.core.events import StageFinished
from axletree.core.findings import Finding, LogLine
from axletree.core.values import StageId
from axletree.view.findings import group_findings
from axletree.view.report import InstallCommand, render_report, report_data
from support import events, reports
from support.events import fold

HOSTILE = "\"><script>pwned = 1</script><img src=x onerror='pwned = 2'>{{ 7 * 7 }}\x1b[31m\u202e"


class Page(HTMLParser):
    """Tags with their attributes, in order; notes what is left open."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parse(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("name", reports.SAMPLES)
def test_reports_are_well_formed_and_load_nothing(name: str) -> None:
    page = parse(render_report(reports.SAMPLES[name]()))
    assert [tag for tag, _ in page.tags if tag in ("link", "img", "iframe", "object", "base", "form")] == []
    for tag, attributes in page.tags:
        for attribute, value in attributes.items():
            assert not attribute.startswith("on"), (tag, attribute)
            assert attribute not in ("src", "style", "action"), (tag, attribute)
            if attribute == "href":
                assert (value or "").startswith("#")
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {(attributes.get("href") or "")[1:] for tag, attributes in page.tags if tag == "a"}
    assert targets <= set(ids)


def test_the_policy_names_the_one_script_and_the_one_style() -> None:
    html = render_report(reports.green())
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in html
    assert "default-src &#39;none&#39;" in html


def test_hostile_text_stays_text() -> None:
    stage = StageId(f"build[{HOSTILE}]")
    finding = Finding(rule=HOSTILE, severity="error", where=HOSTILE, message=HOSTILE, fix=HOSTILE, evidence=(HOSTILE,))
    script = events.changed(
        events.GREEN[0],
        id=stage,
        status="failed",
        message=HOSTILE,
        cause=(HOSTILE,),
        findings=(finding,),
        why=(HOSTILE,),
    )
    data = report_data(
        fold(events.play((script,), variants=(HOSTILE,))),
        records={},
        recipe_name=HOSTILE,
        recipe_version=HOSTILE,
        host={HOSTILE: HOSTILE},
        toolchain={HOSTILE: HOSTILE},
        environments={HOSTILE: next(iter(reports.ENVIRONMENTS.values()))},
        install=[InstallCommand(tool=HOSTILE, what=HOSTILE, command=HOSTILE)],
    )
    html = render_report(data)
    tags = [tag for tag, _ in parse(html).tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "{{ 7 * 7 }}" in html


def test_what_is_known_of_a_failure_is_shown_with_its_cause() -> None:
    finding = Finding(
        rule="link/killed",
        severity="error",
        where="build.log:7",
        message="The linker was killed",
        cause="It needs more memory than there is.",
        lines=(LogLine(line=7, text="collect2: Killed"),),
    )
    script = events.changed(events.GREEN[0], status="failed", findings=(finding,), why=())
    data = report_data(fold(events.play((script,))), records={}, recipe_name="demo", recipe_version="1", host={})
    html = render_report(data)
    assert html.count("<p>It needs more memory than there is.</p>") == 2  # among failures, and among findings
    assert "7 | collect2: Killed" in html


def test_a_thousand_stages_stay_one_readable_page() -> None:
    html = render_report(reports.big())
    page = parse(html)
    assert len(page.tags) < 25_000
    assert len(html) < 2_000_000
    assert html.count('<details class="fold">') == 3


def test_the_same_data_gives_the_same_page() -> None:
    assert render_report(reports.green()) == render_report(reports.green())


def test_packages_of_a_green_run() -> None:
    (package,) = reports.green().packages
    assert package.name == "torch-scatter"
    assert package.version == "2.1.2+torch.2.13.cpu"
    assert package.tag == "cp311-cp311-manylinux_2_28_x86_64"
    assert package.path == f"{events.INDEX}/{events.WHEEL}"
    assert package.status == "new"
    (again,) = reports.noop().packages
    assert again.status == "unchanged"


@pytest.mark.parametrize(
    ("failed", "status"),
    [("build", "not reached"), ("pack:torch-scatter", "failed"), ("audit:torch-scatter", "refused")],
)
def test_packages_that_are_not_published(failed: str, status: str) -> None:
    names = [events.v(name) for name in ("build", "install:build", "pack:torch-scatter", "audit:torch-scatter")]
    at = names.index(events.v(failed))
    scripts = tuple(
        events.changed(s, status="failed" if s.id == names[at] else "blocked" if s.id in names[at:] else "done")
        for s in events.GREEN
        if s.id in names or s.action in ("fetch", "patch", "environment")
    )
    data = report_data(
        fold(events.play(scripts)), records=events.records(scripts), recipe_name="x", recipe_version="1", host={}
    )
    (package,) = data.packages
    assert package.status == status
    assert package.name == "torch-scatter"


def test_tests_by_installer() -> None:
    tests = {test.installer: test for test in reports.green().tests}
    assert tests.keys() == {"pip", "uv"}
    assert (tests["uv"].name, tests["uv"].client, tests["uv"].passed) == ("operators", "0.11.2", 36)
    assert {test.status for test in reports.failing().tests} == {"blocked"}
    assert {test.wall for test in reports.failing().tests} == {None}


def test_what_was_found_when_a_cached_stage_ran_is_still_shown() -> None:
    assert reports.noop().findings == reports.green().findings
    assert any(stage.metrics is not None for stage in reports.noop().run.stages.values())


def test_findings_that_say_the_same_are_one_group_and_the_worst_is_first() -> None:
    data = reports.big(20)
    rules = [group.finding.rule for group in data.findings]
    assert rules[0] == "dist/rpath-outside"
    assert len(rules) == len(set(rules))
    base = reports.failing().run.stages[StageId(events.v("build"))]
    other = Finding(rule="a", severity="info", where="x", message="m")
    stage = msgspec.structs.replace(
        base,
        findings=(other, msgspec.structs.replace(other, where="y"), msgspec.structs.replace(other, severity="error")),
    )
    groups = group_findings([stage, stage])
    assert [(group.finding.severity, len(group.places)) for group in groups] == [("error", 1), ("info", 2)]


def test_a_stream_without_an_end_is_reported_as_running() -> None:
    cut = [event for event in events.green_run() if isinstance(event, StageFinished) or event.time < events.START + 30]
    data = report_data(fold(cut), records={}, recipe_name="x", recipe_version="1", host={})
    assert data.run.status == "running"
    parse(render_report(data))
