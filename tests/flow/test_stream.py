"""The event stream of a build: what it says of publishing, its closing event, and the report behind that."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

from support.faulty import make_project
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

FAULT = """
from axletree.app import planning
planning.prepare = lambda *_, **__: 1 / 0
"""


def test_the_closing_event_comes_after_what_was_published(tmp_path: Path) -> None:
    ended = make_project(tmp_path / "project").build("--json")
    assert ended.code == 0, ended.err
    assert [event["event"] for event in ended.events][-2:] == ["published", "run-finished"]
    assert ended.events[-1]["status"] == "done"
    result = ended.result
    assert (result["status"], result["exit_code"], result["problems"]) == ("done", 0, [])
    assert [each["state"] for each in result["variants"]] == ["done"]
    assert result["page"] == "dist/report.html"


def test_a_run_that_could_not_publish_has_failed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    assert project.build().code == 0
    (wheel,) = project.out.glob("*.whl")
    shutil.rmtree(project.out / "simple")
    wheel.write_bytes(b"another file of that name")
    ended = project.build("--json")
    assert ended.code == 2
    last = ended.events[-1]
    assert (last["event"], last["status"], last["failed"]) == ("run-finished", "failed", 0)
    assert wheel.name in ended.err
    assert (ended.result["status"], ended.result["exit_code"]) == ("failed", 2)
    assert wheel.name in ended.result["problems"][0]["file"]


def test_a_run_that_fails_ends_with_its_report(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    project.edit("int small_answer", "int small answer", file="src/small.cpp")
    ended = project.build("--json")
    assert (ended.code, ended.events[-1]["event"], ended.result["status"]) == (1, "run-finished", "failed")
    assert [each["state"] for each in ended.result["variants"]] == ["failed"]


def test_a_run_that_never_began_ends_with_its_report(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    project.edit("[packages.libsmall]", "[package.libsmall]")
    ended = project.build("--json")
    assert (ended.code, ended.events, ended.result["exit_code"]) == (2, [], 2)
    assert ended.result["problems"][0]["line"]


def test_a_run_that_we_broke_ends_with_its_report(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", files={"fault/sitecustomize.py": FAULT})
    ended = project.having(PYTHONPATH=str(project.folder / "fault")).build("--json")
    assert (ended.code, ended.result["exit_code"]) == (1, 1)
    assert ended.result["problems"][0]["message"] == "ZeroDivisionError: division by zero"
    assert "Traceback" in ended.err


def test_a_run_that_has_nothing_left_to_do_ends_with_its_report(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    assert project.build().code == 0
    ended = project.build("--remaining", "--json")
    assert (ended.code, ended.events, ended.result["status"], ended.err) == (0, [], "done", "")


def test_a_run_that_is_cancelled_ends_with_its_report(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    running = project.start("build", "small.toml", "--out", "dist", "--json")
    until(lambda: b"stage-started" in running.said.read_bytes(), running.process)
    running.process.send_signal(signal.SIGTERM)
    ended = running.end(60)
    assert (ended.code, ended.result["status"], ended.result["exit_code"]) == (130, "cancelled", 130)
