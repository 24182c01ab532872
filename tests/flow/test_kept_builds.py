"""Kept build folders of a project in the shape of PyTorch, by each of its build systems: they save work, no more."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import psutil
import pytest

from support.proof import proof_only
from support.tiny import need_pythons
from support.tug import CORE, PARTS, TOOLS, Compiled, from_nothing, make_tug, paths_of
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.tug import Kind

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]

LIBRARIES = {"cmake": "lib", "setup.py": "tug/lib", "scikit-build-core": "tug/lib"}


@pytest.mark.parametrize("kind", [each if each == "cmake" else proof_only(each) for each in CORE])
def test_changes_compile_what_they_touch_and_the_result_is_that_of_a_fresh_build(kind: Kind, tmp_path: Path) -> None:
    tug = make_tug(tmp_path, kind, CORE[kind], versions=need_pythons(1))
    compiled = Compiled(tug)
    first = tug.built()
    assert compiled.since() == sorted([*PARTS, "solve"])
    assert f"{LIBRARIES[kind]}/libtug_core.so" in paths_of(tug, first, "core")
    tug.change('USE_MAGMA = "OFF"', 'USE_MAGMA = "ON", USE_FACTOR = "3"')
    tug.built()
    assert compiled.since() == ["beta", "solve"]
    (tug.source / "core" / "epsilon.cpp").write_text("int epsilon() { return 5; }\n")  # by a pattern of CMake's
    (tug.source / "core" / "delta.cpp").unlink()
    tug.edit("src/core/alpha.cpp", "TUG_BASE", "1 + TUG_BASE")
    changed = tug.built()
    assert compiled.since() == ["alpha", "epsilon"]
    (tug.source / "core" / "epsilon.cpp").unlink()
    (tug.source / "core" / "delta.cpp").write_text('#include "tug/tug.h"\nint delta() { return TUG_BASE + 3; }\n')
    tug.edit("src/core/alpha.cpp", "1 + TUG_BASE", "TUG_BASE")
    tug.change(', USE_FACTOR = "3"', ', USE_NOTHING = "1"')
    tug.change('USE_MAGMA = "ON"', 'USE_MAGMA = "0"')
    back = tug.built()
    assert compiled.since() == ["alpha", "beta", "delta", "solve"]
    assert back.trees["core"] == first.trees["core"] != changed.trees["core"]
    assert from_nothing(tug).trees["core"] == first.trees["core"]


BIND = """\
[stages.bind]
action = "build"
axes = ["python"]
environment = "bind"
inputs = ["core"]
continues = "core"
tools = ["c++", "cmake", "ninja"]
"""
BINDS = {
    "setup.py": f'{BIND}env = {{ USE_MAGMA = "OFF" }}\n',
    "scikit-build-core": f'{BIND}config = {{ "cmake.define.USE_MAGMA" = "OFF" }}\n',
}


@pytest.mark.parametrize("kind", ["setup.py", proof_only("scikit-build-core")])
def test_each_python_goes_on_in_the_folder_of_the_library(kind: Kind, tmp_path: Path) -> None:
    versions = need_pythons(2)
    first, second = (f"py{version.replace('.', '')}" for version in versions)
    tug = make_tug(tmp_path, kind, CORE[kind] + BINDS[kind], versions=versions)
    compiled = Compiled(tug)
    tug.built("-v", f"{first}-*")
    assert compiled.since() == sorted([*PARTS, "solve", "module"])
    going_on = tug.built()
    assert compiled.since() == ["module"]
    assert len(list((tug.store / "workspaces").iterdir())) == 1
    tug.edit("src/core/beta.cpp", "1 *", "7 *")
    tug.edit("src/python/module.cpp", "alpha())", "alpha() + 1)")
    tug.built("-v", f"{second}-*")
    assert compiled.since() == ["beta", "module"]
    tug.edit("src/core/beta.cpp", "7 *", "1 *")
    tug.edit("src/python/module.cpp", "alpha() + 1)", "alpha())")
    tug.change('continues = "core"\n', "")
    alone = from_nothing(tug)
    for python, letter in ((first, "A"), (second, "B")):
        stage = f"install:bind[{letter}]"
        assert alone.trees[stage] == going_on.trees[stage]
        modules = [path for path in paths_of(tug, alone, stage) if "/_C." in path]
        assert len(modules) == 1
        assert python.removeprefix("py") in modules[0]


LESS = """\
[stages.bind]
action = "build"
axes = ["python"]
environment = "bind"
inputs = ["core"]
continues = "core"
tools = ["c++", "cmake", "ninja"]
workspace = true
env = { BUILD_PYTHON_ONLY = "1", USE_MAGMA = "OFF" }
commands = ["mkdir -p tug/lib", "cp $AXLETREE_IN_CORE/tug/lib/* tug/lib/", "sed -i s/alpha/beta/ python/module.cpp"]
"""


def test_a_binding_against_the_librarys_tree_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """BUILD_PYTHON_ONLY configures the library's targets away, and ninja would forget what their objects depend on."""
    (version,) = need_pythons(1)
    tug = make_tug(tmp_path, "setup.py", CORE["setup.py"] + LESS, versions=(version,))
    compiled = Compiled(tug)
    first = tug.built()
    assert compiled.since() == sorted([*PARTS, "solve", "module"])
    assert not any(path.startswith("tug/lib") for path in paths_of(tug, first, "install:bind[A]"))
    tug.edit("src/linalg/solve.cpp", "return 1", "return 3")
    tug.built()
    assert compiled.since() == ["solve"]  # what the commands wrote as before kept its time: no module
    tug.edit("src/linalg/solve.cpp", "return 3", "return 1")
    assert from_nothing(tug).trees["install:bind[A]"] == first.trees["install:bind[A]"]


@pytest.mark.parametrize("kind", [proof_only("setup.py"), "scikit-build-core"])
def test_a_backend_is_stopped_where_cmake_turned_a_feature_off(kind: Kind, tmp_path: Path) -> None:
    stages = f"""\
[stages.bind]
action = "build"
axes = ["python"]
environment = "bind"
{TOOLS}expect = {{ USE_CUDNN = "ON", USE_MAGMA = "ON" }}
workspace = true
"""
    tug = make_tug(tmp_path, kind, stages, versions=need_pythons(1))
    compiled = Compiled(tug)
    run = tug.build()
    assert run.code == 1
    assert "USE_CUDNN is OFF (CMakeCache.txt:" in run.why()
    assert "cuDNN cannot be found" in run.why()
    assert "USE_MAGMA is" not in run.why()
    assert compiled.since() == []
    tug.change('USE_CUDNN = "ON"', 'USE_CUDNN = "OFF"')
    tug.built()
    assert compiled.since() == sorted([*PARTS, "solve", "module"])
    tug.edit("src/core/beta.cpp", "1 *", "7 *")  # CMake runs again, with its cache, and is asked again
    tug.built()
    assert compiled.since() == ["beta"]


def compiled_of(count: Path) -> list[str]:
    """Names of the library's sources in the order in which they were compiled, as a compiler launcher wrote them."""
    return re.findall(r"^.* -c \S*/core/(\w+)\.cpp.*$", count.read_text(), re.MULTILINE)


def running(program: str) -> list[int]:
    """Processes that have a program in their command line."""
    found = psutil.process_iter(["cmdline"])
    return [process.pid for process in found if program in (process.info["cmdline"] or ())]


SLOW = 12
"""Files of the project whose build is killed; one of them waits for a gate."""


@pytest.mark.parametrize("generator", ["Ninja", "Unix Makefiles"])
def test_a_killed_build_goes_on_where_it_was(generator: str, tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("needs make")
    stages = f'{CORE["cmake"]}env = {{ CMAKE_GENERATOR = "{generator}", CMAKE_CXX_COMPILER_LAUNCHER = "GATE" }}\n'
    stages += "resources = { cores = 1 }\n"
    gate, count = tmp_path / "gate", tmp_path / "count"
    tug = make_tug(tmp_path, "cmake", stages.replace("GATE", str(gate)), versions=need_pythons(1))
    for number in range(SLOW):
        (tug.source / "core" / f"slow{number:02}.cpp").write_text(f"int slow{number}() {{ return {number}; }}\n")
    gate.write_text(
        f"#!/bin/sh\nif [ ! -e {tmp_path}/open ]; then\n"
        f'  case "$*" in *slow06*) touch {tmp_path}/reached; sleep 600;; esac\nfi\n'
        f'case "$*" in *" -c "*) echo "$*" >> {count};; esac\nexec "$@"\n'
    )
    gate.chmod(0o755)
    command = [*tug.program, "build", str(tug.recipe), "--json", "--out", str(tug.out)]
    build = subprocess.Popen(command, env=tug.variables(), stdout=subprocess.DEVNULL, start_new_session=True)
    until((tmp_path / "reached").exists, build)
    build.kill()
    build.wait()
    until(lambda: not running(str(gate)))  # else the next build would wait for its workspace
    done = compiled_of(count)
    assert done
    (tmp_path / "open").touch()
    run = tug.built()
    again = [name for name, times in Counter(compiled_of(count)).items() if times > 1]
    if generator == "Ninja":
        assert len(again) <= 2  # what was being compiled when it was killed, and ninja had not written down
    else:
        assert sorted(again) == sorted(done)  # make would take half an object for a whole one
    assert from_nothing(tug).trees["core"] == run.trees["core"]
