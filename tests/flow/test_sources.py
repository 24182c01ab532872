"""Several pinned sources in one recipe: fetched once, put into the source or given to stages, and what goes wrong."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from typing import TYPE_CHECKING

import pytest

from axletree.store import Store
from support.elfs import need
from support.faulty import PYTHON, make_project
from support.repositories import Origin

if TYPE_CHECKING:
    from pathlib import Path

    from support.faulty import Ended, Project

RECIPE = """\
name = "small"
version = "1.0"

[source]
path = "src"

[axes]
size = ["s", "l"]

[sources.bind]
url = "file://FOLDER/bind-2.0.tar.gz"
sha256 = "BIND"
into = "third_party/bind"
[sources.model]
url = "file://FOLDER/model.bin"
sha256 = "MODEL"
into = "data/model.bin"
[sources.tables]
git = "file://FOLDER/tables"
ref = "v1"
when = { size = "l" }
[sources.notes]
path = "notes"

[[patches]]
file = "bind.patch"

[stages.lib]
action = "run"
axes = ["size"]
sources = ["tables", "notes"]
commands = [
  "cp third_party/bind/bind.txt data/model.bin $AXLETREE_SOURCE_NOTES/n.txt $AXLETREE_OUT/",
  "cp ${AXLETREE_SOURCE_TABLES:-data}/* $AXLETREE_OUT/",
]
"""
PATCH = "--- a/third_party/bind/bind.txt\n+++ b/third_party/bind/bind.txt\n@@ -1 +1 @@\n-bound\n+patched\n"


def archive(files: dict[str, bytes]) -> bytes:
    """A .tar.gz, the same each time."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return held.getvalue()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path / "project", RECIPE, files={"bind.patch": PATCH, "notes/n.txt": "noted"})
    away = tmp_path / "away"
    Origin(away / "tables").commit("v1", **{"table.txt": "1 2"})
    data = {"BIND": archive({"bind-2.0/bind.txt": b"bound\n"}), "MODEL": b"weights"}
    for name, file in (("BIND", "bind-2.0.tar.gz"), ("MODEL", "model.bin")):
        (away / file).write_bytes(data[name])
        project.edit(name, hashlib.sha256(data[name]).hexdigest())
    project.recipe.write_text(project.recipe.read_text().replace("FOLDER", str(away)))
    return project


def locked(project: Project) -> Project:
    ended = project.run("lock", "small.toml")
    assert ended.code == 0, ended.out + ended.err
    return project


def files(project: Project, ended: Ended, stage: str) -> dict[str, bytes]:
    """The result of a stage: path -> content."""
    store = Store.open(project.store)
    tree = store.get_tree(ended.finished(stage)["tree"])
    return {entry.path: store.read_blob(entry.blob) for entry in tree.entries if entry.blob is not None}


def test_sources_are_fetched_once_and_lie_where_the_recipe_wants_them(project: Project, tmp_path: Path) -> None:
    lock = (locked(project).folder / "small/source.lock.toml").read_text()
    assert [lock.count(each) for each in ("[sources.bind]", "[sources.model]", "[sources.tables]")] == [1, 1, 1]
    assert "notes" not in lock
    ended = project.build("--json", "-v", "sizel")
    assert ended.code == 0, ended.out + ended.err
    fetched = {"fetch", "fetch:bind", "fetch:model", "fetch:notes", "fetch:tables", "place:sources", "patch"}
    assert ended.statuses().keys() == fetched | {"lib[sizel]"}
    assert files(project, ended, "lib[sizel]") == {
        "bind.txt": b"patched\n",
        "model.bin": b"weights",
        "n.txt": b"noted",
        "table.txt": b"1 2",
    }
    shutil.rmtree(tmp_path / "away")
    again = project.build("--json", "-v", "sizel", "--offline")
    assert set(again.statuses().values()) == {"cached"}


def test_a_source_of_another_digest_is_refused_with_its_line(project: Project) -> None:
    text = project.recipe.read_text()
    digest = text.split('sha256 = "')[2][:64]
    project.edit(digest, "0" * 64)
    ended = project.run("lock", "small.toml")
    line = project.recipe.read_text().splitlines().index(f'sha256 = "{"0" * 64}"') + 1
    assert ended.code == 2
    assert f"small.toml:{line}" in ended.err
    assert f"has sha256 {digest}" in ended.err
    assert not (project.folder / "small").exists()


def test_a_lock_that_lacks_a_source_or_has_another_is_one_error(project: Project) -> None:
    locked(project)
    project.edit('ref = "v1"', 'ref = "v2"')
    project.edit(
        "[sources.notes]", '[sources.more]\ngit = "file:///nowhere"\nref = "v1"\ninto = "more"\n[sources.notes]'
    )
    ended = project.build("--locked")
    assert ended.code == 2
    assert "the lock is out of date: ref is v2, was v1" in ended.err
    assert "source 'more' is not locked" in ended.err
    assert "axletree lock small.toml" in ended.err


def test_a_place_that_is_taken_names_both_and_a_folder_of_your_own_may_have_the_source(
    project: Project, tmp_path: Path
) -> None:
    (project.source / "third_party/bind").mkdir(parents=True)
    (project.source / "third_party/bind/old.txt").write_text("old")
    ended = locked(project).build("-v", "sizes")
    assert ended.code == 1
    assert "source 'bind' cannot be put into third_party/bind (sources.bind.into in small.toml, line 13)" in ended.out
    assert "the recipe's source already contains third_party/bind/old.txt" in ended.out
    own = project.run("plan", "small.toml", "--json", "--source", str(project.source))
    stages = {stage["stage"] for stage in own.result["stages"]}
    assert (own.code, "fetch:bind" in stages, "fetch:model" in stages) == (0, False, True)


FETCH_CONTENT = """\
name = "adder"
version = "1.0"
source = { path = "src" }

[sources.nanobind]
pypi = "nanobind"
version = "2.4.0"
into = "third_party/nanobind"

[axes]
python = ["PYTHON"]

[environments.build]

[stages.build]
action = "compile"
axes = ["python"]
environment = "build"
tools = ["c++", "cmake"]
options = { FETCHCONTENT_SOURCE_DIR_NANOBIND = "third_party/nanobind" }

[packages.adder]
from = "build"
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(adder LANGUAGES CXX)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
include(FetchContent)
FetchContent_Declare(nanobind GIT_REPOSITORY https://git.example/nanobind GIT_TAG v2.4.0)
FetchContent_MakeAvailable(nanobind)
nanobind_add_module(adder adder.cpp)
install(TARGETS adder LIBRARY DESTINATION .)
"""
CODE = """\
#include <nanobind/nanobind.h>
NB_MODULE(adder, m) { m.def("add", [](int a, int b) { return a + b; }); }
"""


@pytest.mark.proof
def test_fetch_content_takes_a_real_sdist_from_the_sources(tmp_path: Path) -> None:
    need("cmake", "c++")
    files = {"src/CMakeLists.txt": CMAKE, "src/adder.cpp": CODE}
    project = make_project(tmp_path / "project", FETCH_CONTENT.replace("PYTHON", PYTHON), files=files).online()
    project.edit("\noptions = ", "\nexpect = ")
    failed = locked(project).build()
    assert "CMake's FetchContent nanobind downloads https://git.example/nanobind" in failed.out
    project.edit("\nexpect = ", "\noptions = ")
    ended = project.build()
    assert ended.code == 0, ended.out + ended.err
