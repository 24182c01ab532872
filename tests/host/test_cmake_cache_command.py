"""``axletree cmake-cache`` on trees that a real CMake configured and builds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.buildsystem.ninja import read_ninja_log, rebuilt
from axletree.cli.cmake_cache import command
from axletree.core.errors import IntegrityError, UsageError
from axletree.host.interpreters import find_interpreter
from support.elfs import need

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(twice C)
option(USE_EXTRA "Something more" OFF)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
add_library(core SHARED core.c)
if(USE_EXTRA)
  target_sources(core PRIVATE extra.c)
endif()
Python_add_library(_twice MODULE WITH_SOABI twice.c)
target_link_libraries(_twice PRIVATE core)
message(STATUS "  USE_EXTRA : ${USE_EXTRA}")
"""
MODULE = """\
#include <Python.h>
int core(void);
static PyObject *twice(PyObject *self, PyObject *x) { return PyLong_FromLong(core() * PyLong_AsLong(x)); }
static PyMethodDef methods[] = {{"twice", twice, METH_O, ""}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_twice", "", -1, methods};
PyMODINIT_FUNC PyInit__twice(void) { return PyModule_Create(&module); }
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A configured and built tree for this Python."""
    need("cmake", "ninja", "cc")
    (tmp_path / "CMakeLists.txt").write_text(LISTS)
    (tmp_path / "core.c").write_text("int core(void) { return 2; }\n")
    (tmp_path / "extra.c").write_text("int extra(void) { return 3; }\n")
    (tmp_path / "twice.c").write_text(MODULE)
    build = tmp_path / "build"
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", build, f"-DPython_EXECUTABLE={sys.executable}")
    run("cmake", "--build", build)
    return build


def run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False, standalone_mode=False)


def test_an_option_is_switched_and_only_its_objects_are_compiled(tree: Path) -> None:
    before = read_ninja_log((tree / ".ninja_log").read_text())
    shown = call(tree, "--set", "USE_EXTRA=ON")
    assert shown.output.splitlines()[:2] == ["-USE_EXTRA:BOOL=OFF", "+USE_EXTRA:BOOL=ON"]
    assert "USE_EXTRA : ON" in run("cmake", "--build", tree)
    after = read_ninja_log((tree / ".ninja_log").read_text())
    assert {path for path in rebuilt(before, after) if path.endswith(".o")} == set()
    assert "CMakeFiles/core.dir/extra.c.o" in after
    assert call(tree, "USE_*").output == "USE_EXTRA:BOOL=ON\n"


def test_another_python_compiles_what_depends_on_python(tree: Path) -> None:
    other = find_interpreter("3.12", environ=dict(os.environ))
    before = read_ninja_log((tree / ".ninja_log").read_text())
    dry = call(tree, "--python", other.path, "--dry-run")
    assert "not written to" in dry.output
    assert call(tree, "--python", other.path).return_value == 0
    run("cmake", "--build", tree)
    after = read_ninja_log((tree / ".ninja_log").read_text())
    assert "CMakeFiles/core.dir/core.c.o" not in rebuilt(before, after)
    assert "CMakeFiles/_twice.dir/twice.c.o" in rebuilt(before, after)
    (module,) = tree.glob("_twice.cpython-312*.so")
    code = f"import sys; sys.path.insert(0, {str(module.parent)!r}); import _twice; print(_twice.twice(21))"
    assert run(other.path, "-c", code) == "42\n"


def test_leftovers_of_the_old_python_are_refused(tree: Path) -> None:
    other = find_interpreter("3.12", environ=dict(os.environ))
    call(tree, "--set", f"MY_TOOL:STRING={sys.prefix}/lib/mytool")
    call(tree, "--set", "MY_SUFFIX:STRING=.cpython-311-x86_64-linux-gnu.so")
    content = (tree / "CMakeCache.txt").read_bytes()
    with pytest.raises(IntegrityError, match=r"MY_SUFFIX: still names Python 3\.11"):
        call(tree, "--python", other.path)
    assert (tree / "CMakeCache.txt").read_bytes() == content


def test_expectations(tree: Path, tmp_path: Path) -> None:
    log = tmp_path / "configure.log"
    log.write_text("--   USE_EXTRA : OFF\n")
    result = call(tree, "--expect", "USE_EXTRA=ON", "--log", log, "--json")
    assert (result.return_value, json.loads(result.output)["mismatches"][0]["where"]) == (
        1,
        f"CMakeCache.txt:{_line(tree)}",
    )
    assert call(tree, "--expect", "USE_EXTRA=OFF").return_value == 0
    with pytest.raises(UsageError, match="no assignment"):
        call(tree, "--expect", "USE_EXTRA")


def _line(tree: Path) -> int:
    lines = (tree / "CMakeCache.txt").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith("USE_EXTRA:"))
