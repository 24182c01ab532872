"""Tests of a project's own, which its recipe names as files or as a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.faulty import BOUND, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from support.faulty import Project

LISTED = "find . -type f | sort | tr '\\\\n' ' '; python -c 'import small;"


def project_with(folder: Path, name: str) -> Project:
    """A package whose test prints the files that it gets."""
    files = {
        "tests/test_it.py": "",
        "tests/data/deep/a.txt": "1",
        "tests/.cache/b": "",
        "tests/__pycache__/c.pyc": "",
        "more/sub/test_more.py": "",
    }
    project = make_project(folder / "project", BOUND, files=files)
    project.edit("commands = [\"python -c 'import small;", f'files = ["{name}"]\ncommands = ["{LISTED}')
    return project


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("tests", "./pytest.ini ./tests/data/deep/a.txt ./tests/test_it.py"),
        ("tests/data", "./data/deep/a.txt ./pytest.ini"),
        ("more/sub", "./pytest.ini ./sub/test_more.py"),
        ("more/sub/test_more.py", "./pytest.ini ./test_more.py"),
    ],
)
def test_a_folder_keeps_its_places_and_a_file_its_name(name: str, files: str, tmp_path: Path) -> None:
    project = project_with(tmp_path, name)
    ended = project.build()
    assert ended.code == 0, ended.out + ended.err
    logs = [path.read_text() for path in (project.store / "logs").glob("*.log")]
    assert any(files in text for text in logs), logs


def test_what_changes_in_a_folder_is_tested_again(tmp_path: Path) -> None:
    project = project_with(tmp_path, "tests")
    assert project.build().code == 0
    (project.folder / "tests/data/deep/a.txt").write_text("2", encoding="utf-8")
    ended = project.build("--json")
    ran = {stage for stage, status in ended.statuses().items() if status == "done"}
    assert ran
    assert all(stage.startswith("test:") for stage in ran)


@pytest.mark.parametrize(
    ("name", "says"),
    [("nowhere", "cannot read nowhere: No such file"), ("empty", "the folder empty contains no files")],
)
def test_a_folder_with_nothing_to_test_is_an_error(name: str, says: str, tmp_path: Path) -> None:
    project = project_with(tmp_path, name)
    (project.folder / "empty").mkdir()
    ended = project.build()
    assert (ended.code, f"files[0]: {says}" in ended.err) == (2, True), ended.err
