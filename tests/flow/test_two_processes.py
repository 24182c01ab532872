"""Two builds of one recipe at once: on one store, into one output folder or two, and each stage runs once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from axletree.disk import PART
from support.faulty import BOUND, make_project
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("outs", [("dist", "dist"), ("dist", "other")])
def test_two_builds_at_once(outs: tuple[str, str], tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", BOUND)
    both = [project.start("build", "small.toml", "--out", out, "--json") for out in outs]
    ended = [running.end(300) for running in both]
    assert [each.code for each in ended] == [0, 0], [each.out[-2000:] + each.err for each in ended]
    ran = Counter(stage for each in ended for stage, status in each.statuses().items() if status == "done")
    assert ran == Counter(dict.fromkeys(ended[0].statuses(), 1))
    files = [
        {
            path.relative_to(project.folder / out): path.read_bytes()
            for path in (project.folder / out).rglob("*")
            if path.is_file()
            and path.name not in {"report.html", "ledger.json", ".axletree.lock"}
            and path.parent.name != "logs"
        }
        for out in outs
    ]
    assert files[0] == files[1]
    assert len([path for path in files[0] if path.suffix == ".whl"]) == 2
    assert not [path for path in files[0] if path.name.endswith(PART)]
    assert project.sound()
    assert project.processes() == []


def test_two_builds_at_once_of_which_one_is_killed(tmp_path: Path) -> None:
    """Whoever waits for a stage of another run takes it over when that run dies."""
    project = make_project(tmp_path / "project", BOUND)
    first, second = (project.start("build", "small.toml", "--out", out) for out in ("dist", "other"))
    until(lambda: any((project.store / "results").rglob("*.json")), first.process)
    first.process.kill()
    assert first.end(10).code == -9
    assert second.end(300).code == 0
    assert len(list((project.folder / "other").glob("*.whl"))) == 2


def test_two_recipes_share_one_output_folder(tmp_path: Path) -> None:
    """Wheels of both are in the index in the end, whoever comes last."""
    one, two = (make_project(tmp_path / name, BOUND) for name in ("one", "two"))
    two.edit('version = "1.0"', 'version = "1.1"')
    both = [project.start("build", "small.toml", "--out", tmp_path / "dist") for project in (one, two)]
    assert [running.end(300).code for running in both] == [0, 0]
    page = (tmp_path / "dist" / "simple" / "small" / "index.html").read_text(encoding="utf-8")
    assert [version for version in ("1.0", "1.1") if f">small-{version}-" in page] == ["1.0", "1.1"]
