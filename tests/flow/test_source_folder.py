"""What of a source folder is the source: not what builds put there, nor the recipe's own locks."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from support.faulty import LIBRARY, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from support.faulty import Ended, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The recipe lies in its source folder, and so do the store and the results."""
    recipe = LIBRARY.replace('path = "src"', 'path = "."')
    files = {"src/small.toml": recipe, "src/examples/pylock.old.toml": "1", "src/small/pylock.old.toml": "1"}
    project = make_project(tmp_path / "project", recipe, files=files)
    return project.having(AXLETREE_STORE=str(project.source / "store"))


def build(project: Project) -> Ended:
    ended = project.run("build", "src/small.toml", "--out", "src/dist", "--json")
    assert ended.code == 0, ended.out + ended.err
    return ended


def test_results_and_store_in_the_source_folder_are_no_part_of_it(project: Project) -> None:
    assert set(build(project).statuses().values()) == {"done"}
    assert set(build(project).statuses().values()) == {"cached"}


@pytest.mark.parametrize(
    ("path", "status"),
    [("small/pylock.old.toml", "cached"), ("examples/pylock.old.toml", "done"), ("examples/dist", "done")],
)
def test_locks_of_the_recipe_are_no_part_of_its_source_and_all_others_are(
    project: Project, path: str, status: str
) -> None:
    build(project)
    (project.source / path).write_text("2", encoding="utf-8")
    assert build(project).statuses()["fetch"] == status


def test_what_an_editable_install_keeps_in_the_source_folder_is_no_part_of_it(project: Project) -> None:
    build(project)
    programs = project.source / ".axletree/venv/bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to("/usr/bin/python3")
    assert set(build(project).statuses().values()) == {"cached"}


def test_hints_name_folders_as_they_are_called(tmp_path: Path) -> None:
    project = make_project(tmp_path / "RECIPE")
    project.edit('path = "src"', 'path = "sources"')
    assert f"paths are relative to the recipe: {project.folder}/sources" in project.build().err


def test_another_folder_is_built_instead(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "checkout"
    shutil.copytree(project.source, other)
    (other / "more.txt").write_text("only here", encoding="utf-8")
    build(project)
    ended = project.run("build", "src/small.toml", "--out", "src/dist", "--json", "--source", str(other))
    assert (ended.code, ended.statuses()["fetch"]) == (0, "done"), ended.out + ended.err
    missing = project.run("plan", "src/small.toml", "--source", str(tmp_path / "nowhere"))
    assert (missing.code, "source folder does not exist" in missing.err) == (2, True)


@pytest.mark.parametrize("extended", [False, True])
def test_the_recipe_is_no_part_of_its_source_and_other_files_beside_it_are(project: Project, *, extended: bool) -> None:
    if extended:
        (project.source / "base.toml").write_text((project.source / "small.toml").read_text(), encoding="utf-8")
        (project.source / "small.toml").write_text('extends = "base.toml"\n', encoding="utf-8")
    build(project)
    for recipe in ("base.toml", "small.toml")[not extended :]:
        with (project.source / recipe).open("a", encoding="utf-8") as file:
            file.write("# why\n")
        assert set(build(project).statuses().values()) == {"cached"}
    (project.source / "more.toml").write_text("a = 1", encoding="utf-8")
    assert build(project).statuses()["fetch"] == "done"
