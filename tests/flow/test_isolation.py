"""What isolation stages had is recorded, shown in the report, and said where the system grants less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.records import StageRecord
from support.faulty import make_project, without_namespaces

if TYPE_CHECKING:
    from pathlib import Path

    from support.faulty import Project


def granted(project: Project, stage: str) -> dict[str, bool]:
    return msgspec.json.decode(project.records()[stage].read_bytes(), type=StageRecord).isolation


def test_isolation_that_a_system_does_not_grant_is_said_once_and_recorded(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    ended = project.build(prefix=without_namespaces())
    assert ended.code == 0, ended.err
    assert ended.out.count("warning: 4 stages could access the network: better isolation is not available here") == 1
    assert granted(project, "lib")["network"] is False
    assert "network" not in granted(project, "fetch")  # it is to have it
    assert "stages not isolated: mounts, network, paths, processes" in (project.out / "report.html").read_text(
        encoding="utf-8"
    )


def test_the_isolation_of_a_stage_is_no_part_of_its_key(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    assert project.build(prefix=without_namespaces()).code == 0
    ended = project.build("--json")
    assert set(ended.statuses().values()) == {"cached"}
    assert not any(event.get("lacks") for event in ended.events)
