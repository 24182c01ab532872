"""What a kill costs: compiled again is at most what was being compiled when it came."""

from __future__ import annotations

import errno
import json
import random
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from support.counting import Counting
from support.faults import faults_in_stages
from support.kept import compiled, make_kept, without_workspace
from support.tiny import need_pythons
from support.tug import CORE, PARTS, Compiled, from_nothing, make_tug
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.tiny import Run, Tiny
    from support.tug import Kind

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]


def changed_while_stopped(kind: Kind, folder: Path, moments: list[int], error: int) -> None:
    """Edit a source, stop builds while they lay it out, and see what the one that is left alone compiles."""
    tug = make_tug(folder, kind, CORE[kind], versions=need_pythons(1))
    count = Compiled(tug)
    tug.built()
    assert count.since() == sorted([*PARTS, "solve"])
    tug.edit("src/core/alpha.cpp", "TUG_BASE", "1 + TUG_BASE")
    (tug.source / "core" / "delta.cpp").unlink()
    (tug.source / "core" / "epsilon.cpp").write_text("int epsilon() { return 5; }\n")
    for at in moments:
        stopped = faulty(tug, folder, at, error)
        if error and stopped.code == 0:  # a folder that stays where it is may do so: then all went well
            assert at > 4
            break
        assert stopped.code == (3 if error else 1), at
        assert not error or "no space left on" in stopped.why()
    last = tug.built()
    assert count.since() == ["alpha", "epsilon"]
    assert from_nothing(tug).trees["core"] == last.trees["core"]


def faulty(tug: Tiny, folder: Path, at: int, error: int) -> Run:
    return tug.with_environ(**faults_in_stages(folder / "faults", "/store/workspaces", at, error)).build()


def test_a_kill_while_the_source_is_laid_out_costs_nothing(tmp_path: Path) -> None:
    changed_while_stopped("cmake", tmp_path, [1, 4, 6], 0)


@pytest.mark.proof
@pytest.mark.parametrize("error", [0, errno.ENOSPC])
@pytest.mark.parametrize("kind", list(CORE))
def test_nor_does_any_other_stop(kind: Kind, error: int, tmp_path: Path) -> None:
    changed_while_stopped(kind, tmp_path, list(range(1, 8)), error)


HANGING = """\
$(STATE)/two.o: two.cpp
	echo half > $@
	while [ -e hang ]; do sleep 0.1; done
	c++ $(CXXFLAGS) $(DEFINES) -fPIC -g -c $< -o $@
"""
"""A rule that is killed with its output half written."""


def test_make_keeps_what_earlier_builds_made_and_the_cache_has_the_rest(tmp_path: Path) -> None:
    kept = make_kept(tmp_path, "make")
    count = Counting(tmp_path)
    kept = kept.with_environ(PATH=f"{count.bin}:{kept.variables()['PATH']}")
    with (kept.source / "Makefile").open("a") as makefile:
        makefile.write(HANGING)
    kept.built()
    assert sorted(count.since()) == ["one", "three", "two"]
    kept.edit("src/one.cpp", "NAME", 'NAME "!"')
    kept.edit("src/two.cpp", "return 2", "return 4")
    (kept.source / "hang").touch()

    def reached() -> bool:
        half = any(path.read_bytes() == b"half\n" for path in kept.store.glob("workspaces/*/state/two.o"))
        return half and any("cache_miss" in path.read_text() for path in kept.store.glob("work/*/ccache.log"))

    command = [*kept.program, "build", str(kept.recipe), "--json", "--out", str(kept.out)]
    build = subprocess.Popen(command, env=kept.variables(), stdout=subprocess.DEVNULL)
    until(reached, build)
    build.kill()
    build.wait()
    (kept.source / "hang").unlink()
    run = kept.built()
    assert compiled(run) == {"one", "two"}  # make has the object of the first build
    assert count.since() == {"one": 1, "two": 1}  # and the compiler cache that of the killed one
    record = next(
        record
        for path in (kept.store / "results").rglob("*.json")
        for record in [json.loads(path.read_bytes())]
        if record["stage"] == "build" and record["tree"] == run.trees["build"]
    )
    assert record["compiler_cache"]["hits"] == 1
    assert run.trees["build"] == without_workspace(kept)


SETUP = """\
from setuptools import Extension, setup

setup(
    name="many",
    version="1.0",
    py_modules=[],
    ext_modules=[Extension(f"many{n:02}", [f"src{n:02}.c", f"more{n:02}.c"]) for n in range(12)],
)
"""
PROJECT = '[build-system]\nrequires = ["setuptools>=70"]\nbuild-backend = "setuptools.build_meta"\n'
BUILD = """\
[stages.build]
action = "build"
axes = ["python"]
environment = "bind"
tools = ["cc", "c++"]
workspace = true
env = { CC = "cc", CXX = "c++", LDSHARED = "cc -shared" }
resources = { cores = 1 }
"""


@pytest.mark.proof
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(3))
def test_setuptools_compiles_nothing_twice_but_what_was_being_compiled(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    tug = make_tug(tmp_path, "setup.py", BUILD, versions=need_pythons(1))
    count = Counting(tmp_path)
    tug = tug.with_environ(PATH=f"{count.bin}:{tug.variables()['PATH']}")
    for path in ("CMakeLists.txt", "setup.py", "pyproject.toml"):
        (tug.source / path).unlink()
    (tug.source / "setup.py").write_text(SETUP)
    (tug.source / "pyproject.toml").write_text(PROJECT)
    for number in range(12):
        init = f"#include <Python.h>\nPyMODINIT_FUNC PyInit_many{number:02}(void) {{ return NULL; }}\n"
        (tug.source / f"src{number:02}.c").write_text(init)
        (tug.source / f"more{number:02}.c").write_text(f"int more{number}(void) {{ return {number}; }}\n")
    kills = 0
    for _ in range(5):
        command = [*tug.program, "build", str(tug.recipe), "--json", "--out", str(tug.out)]
        build = subprocess.Popen(command, env=tug.variables(), stdout=subprocess.DEVNULL)
        time.sleep(choose.uniform(1, 4))
        kills += build.poll() is None
        build.kill()
        build.wait()
    run = tug.built()
    again = count.since()
    assert len(again) >= 24
    assert sum(again.values()) - len(again) <= kills
    assert from_nothing(tug).trees["install:build[A]"] == run.trees["install:build[A]"]
