"""Editable trees of each build system: what changed is compiled, nothing else; what is imported is what was edited."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from axletree.app.build import find_ccache
from support.envelopes import result_of
from support.proof import proof_only
from support.repositories import git
from support.tiny import need_pythons
from support.tug import make_tug
from support.waiting import until

if TYPE_CHECKING:
    from support.tiny import Tiny
    from support.tug import Kind

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]

TOOLS = 'tools = ["c++", "cmake", "ninja"]\n'
STAGES: dict[Kind, str] = {
    "cmake": f"""\
[stages.core]
action = "compile"
environment = "tools"
{TOOLS}options = {{ USE_MAGMA = "OFF" }}
""",
    "setup.py": f"""\
[stages.core]
action = "compile"
environment = "tools"
{TOOLS}env = {{ BUILD_LIBTORCH_WHL = "1", USE_MAGMA = "OFF" }}
[stages.bind]
action = "build"
axes = ["python"]
environment = "bind"
inputs = ["core"]
{TOOLS}env = {{ BUILD_PYTHON_ONLY = "1" }}
commands = ["mkdir -p tug/lib; cp $AXLETREE_IN_CORE/tug/lib/* tug/lib/"]
""",
    "scikit-build-core": f"""\
[stages.bind]
action = "build"
axes = ["python"]
environment = "bind"
{TOOLS}config = {{ "cmake.define.USE_MAGMA" = "OFF" }}
""",
}
OFF: dict[Kind, str] = {
    "cmake": 'USE_MAGMA = "OFF"',
    "setup.py": 'USE_MAGMA = "OFF"',
    "scikit-build-core": 'USE_MAGMA" = "OFF"',
}
MODULES: dict[Kind, str] = {"cmake": "_C", "setup.py": "tug", "scikit-build-core": "tug"}


@dataclass
class Tree:
    """A project and how `axletree dev` is called for it."""

    tug: Tiny
    module: str

    @property
    def source(self) -> Path:
        return self.tug.source

    def dev(self, *args: str) -> dict[str, Any]:
        return self._json("dev", str(self.tug.recipe), "-v", "py*-nomagma", "--json", *args)

    def rebuild(self) -> dict[str, Any]:
        return self._json("rebuild", str(self.source), "--json")

    def _json(self, *args: str) -> dict[str, Any]:
        done = self.tug.call(*args)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = result_of(done.stdout)
        return answer

    def answer(self, venv: str | Path | None = None) -> int:
        """What the extension says, in a process of its own, started somewhere else."""
        python = Path(venv or self.source / ".axletree" / "venv") / "bin" / "python"
        command = [str(python), "-B", "-c", f"import {self.module}; print({self.module}.answer())"]
        return int(subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.source / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


def tree_of(kind: Kind, root: Path) -> Tree:
    return Tree(make_tug(root, kind, STAGES[kind], versions=need_pythons(1)), MODULES[kind])


@pytest.mark.parametrize("kind", [proof_only(each) if each == "setup.py" else each for each in STAGES])
def test_what_is_edited_and_rebuilt_is_imported(kind: Kind, tmp_path: Path) -> None:
    tree = tree_of(kind, tmp_path)
    first = tree.dev()
    assert first["way"] == kind
    assert first["ran"] == first["steps"] > 8
    assert first["modules"] == [tree.module]
    assert tree.answer() == 41
    assert tree.rebuild()["state"] == "current"
    tree.edit("core/alpha.cpp", "TUG_BASE", "1 + TUG_BASE")
    done = tree.rebuild()
    assert (done["state"], done["ran"], done["steps"]) == ("built", 3, first["steps"])  # an object, two links
    assert tree.answer() == 42
    tree.edit("include/tug/tug.h", "41", "51")
    assert tree.rebuild()["ran"] > 5
    assert tree.answer() == 52
    (tree.source / "core" / "epsilon.cpp").write_text("int epsilon() { return 5; }\n")  # by a pattern of CMake's
    done = tree.rebuild()
    assert done["reasons"] == ["added or removed: core/epsilon.cpp"]
    assert done["steps"] == first["steps"] + 1
    assert tree.rebuild()["state"] == "current"
    tree.tug.change(OFF[kind], OFF[kind].replace("OFF", "ON"))
    done = tree.rebuild()
    assert [reason.rpartition("USE_MAGMA")[2] for reason in done["reasons"]] == [": OFF -> ON"]
    assert (done["ran"], done["steps"]) == (2, first["steps"] + 1)
    (cache,) = [path for path in tree.source.rglob("CMakeCache.txt") if "venv" not in path.parts]
    assert re.search("^USE_MAGMA:[A-Z]+=ON$", cache.read_text(), re.MULTILINE)
    tree.edit("linalg/solve.cpp", "return 2", "return nothing")
    failed = tree.tug.call("rebuild", str(tree.source))
    assert failed.returncode == 1
    assert "linalg/solve.cpp:2:" in failed.stderr
    assert str(tree.source / ".axletree" / "build.log") in failed.stderr
    tree.edit("linalg/solve.cpp", "return nothing", "return 2")
    assert tree.rebuild()["ran"] == 2
    assert tree.rebuild()["state"] == "current"


def test_a_build_that_is_killed_while_it_configures_is_configured_again(tmp_path: Path) -> None:
    tree = tree_of("cmake", tmp_path)
    tree.dev()
    gate, reached = tmp_path / "gate.cmake", tmp_path / "reached"
    wait = f'file(WRITE "{reached}" "")\n  execute_process(COMMAND sleep 60)'
    gate.write_text(f'if(NOT EXISTS "{tmp_path}/open")\n  {wait}\nendif()\n')
    tree.tug.change('"OFF" }', f'"ON", CMAKE_PROJECT_INCLUDE = "{gate}" }}')
    command = [*tree.tug.program, "rebuild", str(tree.source)]
    running = subprocess.Popen(command, env=tree.tug.variables(), stderr=subprocess.DEVNULL, start_new_session=True)
    until(reached.exists, running)
    other = tree.tug.call("rebuild", str(tree.source))
    assert (other.returncode, "is already running in this tree" in other.stderr) == (3, True)
    children = psutil.Process(running.pid).children(recursive=True)
    running.kill()  # it first: else it would see that they were
    for child in children:
        child.kill()
    running.wait()
    (tmp_path / "open").touch()
    done = tree.rebuild()
    assert "the last build was killed" in done["reasons"]
    cache = (tree.source / ".axletree" / "build" / "CMakeCache.txt").read_text()
    assert "USE_MAGMA:BOOL=ON" in cache
    assert tree.rebuild()["state"] == "current"


SETUP = """\
from setuptools import Extension, setup
setup(
    name="pair", version="1", py_modules=["pair"],
    ext_modules=[Extension("_one", ["one.cpp"]), Extension("_two", ["two.cpp", "more.cpp"])],
)
"""
EXTENSION = """\
#include <Python.h>
#include "value.h"
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
static PyObject* get(PyObject*, PyObject*) { return PyLong_FromLong(VALUE + BONUS); }
static PyMethodDef methods[] = {{"get", get, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "NAME", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_NAME() { return PyModule_Create(&module); }
"""


def pair_of(root: Path) -> Tree:
    """A project of setuptools: two extensions, a header that it does not name."""
    stages = '[stages.bind]\naction = "build"\naxes = ["python"]\nenvironment = "bind"\ntools = ["c++"]\n'
    tug = make_tug(root, "setup.py", f'{stages}env = {{ CXXFLAGS = "-DBONUS=0" }}\n', versions=need_pythons(1))
    shutil.rmtree(tug.source)
    tug.source.mkdir()
    texts = {
        "setup.py": SETUP,
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n',
        "value.h": "#define VALUE 1\n",
        "one.cpp": EXTENSION.replace("NAME", "_one"),
        "two.cpp": EXTENSION.replace("NAME", "_two"),
        "more.cpp": "int more() { return 1; }\n",
        "pair.py": "import _one, _two\ndef answer(): return 100 * _one.get() + _two.get()\n",
        ".gitignore": "build/\n*.so\n*.egg-info/\n",
    }
    for name, text in texts.items():
        (tug.source / name).write_text(text)
    git(tug.source, "init", "-q")
    git(tug.source, "add", "-A")
    git(tug.source, "commit", "-q", "-m", "c")
    return Tree(tug, "pair")


def test_an_extension_of_setuptools(tmp_path: Path) -> None:
    tree = pair_of(tmp_path)
    first = tree.dev()
    assert (first["way"], first["ran"], first["steps"], first["distribution"]) == ("setuptools", 3, 3, "pair")
    assert tree.answer() == 101
    assert git(tree.source, "status", "--short") == ""
    assert tree.rebuild()["state"] == "current"
    (tree.source / "pair.py").write_text((tree.source / "pair.py").read_text().replace("100", "1000"))
    assert tree.answer() == 1001
    assert tree.rebuild()["state"] == "current"  # a module is imported from where it lies
    tree.edit("one.cpp", "VALUE + BONUS", "VALUE + 1")
    done = tree.rebuild()
    assert (done["ran"], done["reasons"]) == (1, ["changed: one.cpp"])
    assert tree.answer() == 2001
    tree.edit("value.h", "1", "3")  # setuptools does not know who includes it
    assert tree.rebuild()["ran"] == 3
    assert tree.answer() == 4003
    tree.tug.change("BONUS=0", "BONUS=5")
    done = tree.rebuild()
    assert (done["ran"], done["reasons"]) == (3, ["CXXFLAGS: -DBONUS=0 -> -DBONUS=5"])
    assert tree.answer() == 4008
    tree.edit("setup.py", 'version="1"', 'version="2"')
    tree.rebuild()
    assert list((tree.source / ".axletree" / "venv").glob("lib/python*/site-packages/pair-2.dist-info"))


@pytest.mark.proof
def test_extensions_that_a_build_has_compiled_come_from_the_compiler_cache(tmp_path: Path) -> None:
    """By ccache's own statistics, of the cache that both use."""
    ccache = find_ccache()
    if ccache is None:
        pytest.skip("needs ccache")
    tree = pair_of(tmp_path)

    def counts() -> tuple[int, int]:
        command = [ccache, "--print-stats"]
        env = {"CCACHE_DIR": str(tree.tug.store / "cache" / "ccache")}
        lines = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
        found = {name: int(count) for name, _, count in (line.partition("\t") for line in lines)}
        return found["direct_cache_hit"] + found["preprocessed_cache_hit"], found["cache_miss"]

    tree.tug.built()
    assert counts() == (0, 3)
    tree.dev()
    hits, misses = counts()
    assert (hits >= 3, misses) == (True, 3), "nothing was compiled a second time"
    tree.edit("more.cpp", "return 1", "return 2")
    tree.rebuild()
    assert counts()[1] == 4


@pytest.mark.parametrize("name", ["setuptools", "mine"])
def test_extensions_are_compiled_with_the_interpreters_own_flags(name: str, tmp_path: Path) -> None:
    """By setuptools directly, and by a backend that nothing is known of."""
    tree = pair_of(tmp_path)
    tree.tug.change("CXXFLAGS", "CPPFLAGS")
    if name == "mine":
        (tree.source / "mine.py").write_text("from setuptools.build_meta import *\n")
        text = (tree.source / "pyproject.toml").read_text()
        (tree.source / "pyproject.toml").write_text(
            text.replace('"setuptools.build_meta"', '"mine"\nbackend-path = ["."]')
        )
    assert tree.dev()["way"] == {"setuptools": "setuptools", "mine": "backend"}[name]
    log = (tree.source / ".axletree" / "build.log").read_text()
    commands = [line.split() for line in log.splitlines() if " -c " in line and "one.cpp" in line]
    python = tree.source / ".axletree" / "venv" / "bin" / "python"
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_config_var('CFLAGS'))"]
    own = {flag for flag in subprocess.check_output(asked, text=True).split() if flag.startswith("-O")}
    assert own
    assert commands
    for command in commands:
        assert own <= set(command)
        assert f"-ffile-prefix-map={tree.source}=." in command


def test_environments_are_somebodys(tmp_path: Path) -> None:
    tree = pair_of(tmp_path)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "notes").write_text("mine")
    refused = tree.tug.call("dev", str(tree.tug.recipe), "-v", "py*-nomagma", "--venv", str(theirs))
    assert refused.returncode == 2
    assert "the folder was not created by `axletree dev`" in refused.stderr
    assert [path.name for path in theirs.iterdir()] == ["notes"]
    ours = tmp_path / "ours"
    assert tree.dev("--venv", str(ours))["venv"] == str(ours)
    (site,) = ours.glob("lib/python*/site-packages")
    (site / "extra.py").write_text("x = 1\n")
    assert tree.dev("--venv", str(ours))["state"] == "current"
    assert tree.answer(ours) == 101
    shutil.rmtree(ours)
    assert tree.rebuild()["venv"] == str(ours)  # made again, and installed into
    assert tree.answer(ours) == 101


def test_an_environment_that_was_left_half_made_or_broken_is_made_whole(tmp_path: Path) -> None:
    tree = tree_of("cmake", tmp_path)
    (tree.source / os.fsdecode(b"\xe9.cpp")).write_text("a name that is no text\n")
    tree.dev()
    ours = tree.source / ".axletree"
    (ours / "dev.json").unlink()
    (ours / "venv" / "axletree-dev.json").unlink()  # as where the first `dev` was killed
    tree.dev()
    assert tree.answer() == 41
    (ours / "venv" / "bin" / "python").unlink()
    tree.rebuild()
    assert tree.answer() == 41


def test_a_tree_that_was_moved_is_set_up_anew(tmp_path: Path) -> None:
    tree = pair_of(tmp_path)
    tree.dev()
    there = tmp_path / "moved"
    tree.source.rename(there)
    refused = tree.tug.call("rebuild", str(there))
    assert refused.returncode == 2
    assert f"--source {there}" in refused.stderr
    tree.dev("--source", str(there))
    assert tree.answer(there / ".axletree" / "venv") == 101
    (there / "sub").mkdir()
    inside = tree.tug.call("rebuild", str(there / "sub"))
    assert inside.stdout.startswith("nothing to do: all 3 steps are up to date")


BAD = [
    (["rebuild", "HERE"], 2, "'dev rebuild' is now a separate command: axletree rebuild HERE"),
    (["RECIPE"], 2, "the recipe has 2 variants: "),
    (["RECIPE", "-v", "nothing"], 2, "no variant matches 'nothing'"),
    (["RECIPE", "-v", "*-nomagma", "--stage", "bond"], 2, "did you mean 'bind'"),
    (["RECIPE", "-v", "*-nomagma", "--source", "HERE/none"], 2, "source folder does not exist"),
    (["RECIPE", "HERE"], 2, "unexpected extra argument (HERE)"),
]


def test_bad_usage(tmp_path: Path) -> None:
    tree = pair_of(tmp_path)
    for args, code, said in BAD:
        words = [word.replace("HERE", str(tmp_path)).replace("RECIPE", str(tree.tug.recipe)) for word in args]
        done = tree.tug.call("dev", *words)
        assert (done.returncode, said.replace("HERE", str(tmp_path)) in done.stderr) == (code, True), done.stderr
    stranger = tree.tug.call("rebuild", str(tmp_path))
    assert (stranger.returncode, "the folder is not inside an editable tree" in stranger.stderr) == (2, True)
    assert git(tree.source, "status", "--short") == ""
