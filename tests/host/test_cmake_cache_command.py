"""``axletree cmake-cache`` on trees that a real CMake configured and builds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.cmake_cache import work_on_cache
from axletree.buildsystem.cmake.cache import is_true, parse_cache
from axletree.buildsystem.cmake.python_switch import configured_python
from axletree.buildsystem.ninja import read_ninja_log, rebuilt
from axletree.cli.main import cli
from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.host.pythons import python_facts
from support.elfs import need
from support.envelopes import result_of
from support.inputs import wheel
from support.tiny import another_python

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
    return CliRunner().invoke(cli, ["cmake-cache", *map(str, words)], catch_exceptions=False, standalone_mode=False)


def test_an_option_is_switched_and_only_its_objects_are_compiled(tree: Path) -> None:
    before = read_ninja_log((tree / ".ninja_log").read_text())
    shown = call(tree, "--set", "USE_EXTRA=ON")
    assert shown.output.splitlines()[:2] == ["-USE_EXTRA:BOOL=OFF", "+USE_EXTRA:BOOL=ON"]
    assert "USE_EXTRA : ON" in run("cmake", "--build", tree)
    after = read_ninja_log((tree / ".ninja_log").read_text())
    assert [path for path in rebuilt(before, after) if path.endswith(".o")] == ["CMakeFiles/core.dir/extra.c.o"]
    assert call(tree, "USE_*").output == "USE_EXTRA:BOOL=ON\n"


def test_a_name_that_no_entry_has_is_told(tree: Path) -> None:
    result = call(tree, "USE_*", "USE_EXTAR", "NO*")
    assert result.return_value == 1
    assert result.stdout == "USE_EXTRA:BOOL=OFF\n"
    assert result.stderr.splitlines() == [
        f"{tree / 'CMakeCache.txt'} has no entry called {name}" for name in ("USE_EXTAR", "NO*")
    ]


def test_a_folder_that_was_not_configured_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no CMakeCache\.txt found"):
        call(tmp_path)


def test_another_python_compiles_what_depends_on_python(tree: Path) -> None:
    other = another_python()
    before = read_ninja_log((tree / ".ninja_log").read_text())
    dry = call(tree, "--python", other.path, "--dry-run")
    assert "not written to" in dry.output
    assert call(tree, "--python", other.path).return_value == 0
    run("cmake", "--build", tree)
    after = read_ninja_log((tree / ".ninja_log").read_text())
    assert "CMakeFiles/core.dir/core.c.o" not in rebuilt(before, after)
    assert "CMakeFiles/_twice.dir/twice.c.o" in rebuilt(before, after)
    (module,) = tree.glob(f"_twice.{other.soabi}.so")
    code = f"import sys; sys.path.insert(0, {str(module.parent)!r}); import _twice; print(_twice.twice(21))"
    assert run(other.path, "-c", code) == "42\n"


def test_leftovers_of_the_old_python_are_refused(tree: Path) -> None:
    other = another_python()
    call(tree, "--set", f"MY_TOOL:STRING={sys.prefix}/lib/mytool")
    call(tree, "--set", f"MY_SUFFIX:STRING={sysconfig.get_config_var('EXT_SUFFIX')}")
    content = (tree / "CMakeCache.txt").read_bytes()
    with pytest.raises(
        IntegrityError, match=rf"MY_SUFFIX: the entry still refers to Python 3\.{sys.version_info.minor}"
    ):
        call(tree, "--python", other.path)
    assert (tree / "CMakeCache.txt").read_bytes() == content


def test_expectations(tree: Path, tmp_path: Path) -> None:
    log = tmp_path / "configure.log"
    log.write_text("--   USE_EXTRA : OFF\n")
    result = call(tree, "--expect", "USE_EXTRA=ON", "--log", log, "--json")
    assert (result.return_value, result_of(result.output)["mismatches"][0]["where"]) == (
        1,
        f"CMakeCache.txt:{_line(tree)}",
    )
    assert call(tree, "--expect", "USE_EXTRA=OFF").return_value == 0
    with pytest.raises(UsageError, match="is not of the form NAME=VALUE"):
        call(tree, "--expect", "USE_EXTRA")


def test_what_can_not_be_read_is_told_before_anything_is_written(tree: Path, tmp_path: Path) -> None:
    content = (tree / "CMakeCache.txt").read_bytes()
    with pytest.raises(HostError, match=r"cannot be read: Is a directory$"):
        work_on_cache(tree, {"USE_EXTRA": "ON"}, log=tmp_path)
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho Usage: none >&2; exit 3\n")
    other.chmod(0o755)
    with pytest.raises(HostError, match=r"python: the file is not a working Python: exit code 3: Usage: none$"):
        work_on_cache(tree, {"USE_EXTRA": "ON"}, python=other)
    assert (tree / "CMakeCache.txt").read_bytes() == content


def test_what_was_before_stays_beside_and_bytes_of_any_encoding_stay(tree: Path) -> None:
    cache = tree / "CMakeCache.txt"
    content = cache.read_bytes().replace(b"\n//", b"\nODD:STRING=caf\xe9\n//", 1)
    cache.write_bytes(content)
    shown = call(tree, "--set", "USE_EXTRA:BOOL=ON")
    assert f"backup: {cache}~" in shown.output
    assert (tree / "CMakeCache.txt~").read_bytes() == content
    assert b"\nODD:STRING=caf\xe9\n" in cache.read_bytes()
    assert call(tree, "ODD").output == "ODD:STRING=caf\\udce9\n"
    assert result_of(call(tree, "ODD", "--json").output)["entries"][0]["value"] == "caf\udce9"
    assert "nothing to change" in call(tree, "--set", "USE_EXTRA:BOOL=ON").output


def test_an_edited_cache_is_what_cmake_reads(tree: Path) -> None:
    odd = {"A_PATH": "/a b/c", "QUOTED": "'q'", "BLANKS": "  x ", "LIST": "a;b", "HASH": "#no//comment", "EMPTY": ""}
    call(tree, *(word for name, value in odd.items() for word in ("--set", f"{name}:STRING={value}")))
    call(tree, "--unset", "USE_EXTRA")
    seen = run("cmake", "-N", "-LA", tree)
    assert {f"{name}:STRING={value}" for name, value in odd.items()} <= set(seen.splitlines())
    assert "USE_EXTRA" not in seen
    run("cmake", tree)
    cache = parse_cache((tree / "CMakeCache.txt").read_text(), file="C")
    odd["QUOTED"] = "q"  # CMake takes the quotes off when it reads, and writes none
    assert {name: cache.get(name) for name in odd} == odd
    assert cache.get("USE_EXTRA") == "OFF"


def test_truth_is_cmakes(tmp_path: Path) -> None:
    need("cmake")
    words = "ON on 1 0 0.0 00 2 -1 y YES true OFF off n No FALSE IGNORE ignore NOTFOUND notfound X-NOTFOUND x-notfound"
    values = [*words.split(), "", "word", "/usr/lib", "ON ", "1 2"]
    script = tmp_path / "truth.cmake"
    lines = (f'set(V "{value}")\nif(V)\nmessage(1)\nelse()\nmessage(0)\nendif()\n' for value in values)
    script.write_text("".join(lines))
    done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    assert [line == "1" for line in done.stderr.split()] == [is_true(value) for value in values]


def _line(tree: Path) -> int:
    lines = (tree / "CMakeCache.txt").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith("USE_EXTRA:"))


FULL = """\
cmake_minimum_required(VERSION 3.18)
project(tags C)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module NumPy)
find_package(pybind11 CONFIG REQUIRED)
add_library(core SHARED core.c)
Python_add_library(_tags MODULE WITH_SOABI tags.c)
target_link_libraries(_tags PRIVATE core Python::NumPy)
target_include_directories(_tags PRIVATE ${pybind11_INCLUDE_DIRS})
"""
TAGS = """\
#include <Python.h>
#include <numpy/tag.h>
static PyObject *tag(PyObject *self, PyObject *none) { return PyUnicode_FromString(NUMPY_IS_FOR); }
static PyMethodDef methods[] = {{"tag", tag, METH_NOARGS, ""}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_tags", "", -1, methods};
PyMODINIT_FUNC PyInit__tags(void) { return PyModule_Create(&module); }
"""


def environment(folder: Path, python: str | Path) -> Path:
    """The interpreter of an environment with the real pybind11, and a numpy that only says where its headers are."""
    run(python, "-m", "venv", "--without-pip", folder)
    facts = python_facts(folder / "bin/python")
    site = folder / os.path.relpath(facts.purelib, folder)
    (site / "numpy/include/numpy").mkdir(parents=True)
    (site / "numpy/__init__.py").write_text(
        "import os\n__version__ = '2.0'\ndef get_include():\n    return os.path.dirname(__file__) + '/include'\n"
    )
    (site / "numpy/include/numpy/numpyconfig.h").write_text("")
    (site / "numpy/include/numpy/arrayobject.h").write_text("")
    (site / "numpy/include/numpy/tag.h").write_text(f'#define NUMPY_IS_FOR "{facts.version}"\n')
    with zipfile.ZipFile(wheel("pybind11==2.13.6")) as archive:
        archive.extractall(site)
    return folder / "bin/python"


@pytest.fixture
def switched(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A tree that was built for one environment, found on PATH and not named, and the interpreters of two."""
    need("cmake", "ninja", "cc")
    other = another_python().path
    old, new = environment(tmp_path / "old", sys.executable), environment(tmp_path / "new", other)
    for name, text in (("CMakeLists.txt", FULL), ("core.c", "int core;\n"), ("tags.c", TAGS)):
        (tmp_path / name).write_text(text)
    build, prefix = tmp_path / "build", python_facts(old).purelib
    path = f"PATH={old.parent}{os.pathsep}{os.environ['PATH']}"
    llvm = tmp_path / "llvm/3.11/lib"
    llvm.mkdir(parents=True)
    options = [f"-DCMAKE_PREFIX_PATH={prefix}/pybind11", f"-DLLVM_DIR:PATH={llvm}", f"-DTOOLS:STRING=-I{prefix}/numpy"]
    run("env", path, "cmake", "-G", "Ninja", "-S", tmp_path, "-B", build, *options)
    run("cmake", "--build", build)
    return build, old, new


def test_an_environment_with_numpy_and_pybind11_is_switched_whole(switched: tuple[Path, Path, Path]) -> None:
    build, old, new = switched
    before = read_ninja_log((build / ".ninja_log").read_text())
    assert configured_python(parse_cache((build / "CMakeCache.txt").read_text(), file="C")) is not None
    call(build, "--python", new)
    run("env", f"PATH={old.parent}{os.pathsep}{os.environ['PATH']}", "cmake", "--build", build)
    after = read_ninja_log((build / ".ninja_log").read_text())
    assert [path for path in rebuilt(before, after) if path.endswith(".o")] == ["CMakeFiles/_tags.dir/tags.c.o"]
    cache = parse_cache((build / "CMakeCache.txt").read_text(), file="C")
    found, facts = configured_python(cache), python_facts(new)
    assert found is not None
    assert (found.executable, found.version, found.soabi) == (str(new), facts.version, facts.soabi)
    assert (found.purelib, found.numpy_include) == (facts.purelib, facts.numpy_include)
    assert cache.get("LLVM_DIR") == str(build.parent / "llvm/3.11/lib")
    assert cache.get("TOOLS") == f"-I{facts.purelib}/numpy"
    code = f"import sys; sys.path.insert(0, {str(build)!r}); import _tags; print(_tags.tag())"
    assert run(new, "-c", code).strip() == facts.version
    assert not [line for line in (build / "build.ninja").read_text().splitlines() if f"{old.parents[1]}/" in line]


def test_what_the_new_environment_lacks_is_told_and_nothing_is_written(switched: tuple[Path, Path, Path]) -> None:
    build, _, new = switched
    site = build.parent / os.path.relpath(python_facts(new).purelib, build.parent)
    shutil.rmtree(site / "pybind11")
    content = (build / "CMakeCache.txt").read_bytes()
    with pytest.raises(IntegrityError, match=r"pybind11_DIR: the entry would change from .* does not exist"):
        call(build, "--python", new)
    assert (build / "CMakeCache.txt").read_bytes() == content
    assert not (build / "CMakeCache.txt~").exists()
