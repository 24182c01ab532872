"""The event stream of a build: what it says of publishing, and that it ends with its closing event."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from support.faulty import make_project

if TYPE_CHECKING:
    from pathlib import Path


def test_the_closing_event_comes_after_what_was_published(tmp_path: Path) -> None:
    ended = make_project(tmp_path / "project").build("--json")
    assert ended.code == 0, ended.err
    assert [event["event"] for event in ended.events][-2:] == ["published", "run-finished"]
    assert ended.events[-1]["status"] == "done"


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
