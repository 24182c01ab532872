"""A small project that CMake builds in PyTorch's shape, for each of the ways in which PyTorch was and is built.

``libtug_core`` is for every Python, ``libtug_linalg`` is opened by name and alone depends on the option USE_MAGMA,
``tug._C`` is for one Python. USE_CUDNN is turned off where nothing is found, as PyTorch does it: without a word in the
exit code. ``setup.py`` behaves as upstream's: what it forwards, that it does not configure where a cache is, that it
installs into the source.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from axletree.buildsystem.ninja import NinjaStep, read_ninja_log, rebuilt
from axletree.core.values import Digest, digest_of
from axletree.recipe.locks import LockedWheel, make_lock, render_lock
from axletree.store.store import Store
from support.inputs import wheel
from support.tiny import Tiny, pythons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.tiny import Run

Kind = Literal["cmake", "setup.py", "scikit-build-core"]
PARTS = ("alpha", "beta", "gamma", "delta")

_CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(tug CXX)
option(BUILD_PYTHON "Build the extension for one Python" ON)
option(BUILD_LIBTORCHLESS "Link against libraries that are there" OFF)
option(USE_MAGMA "Use MAGMA" ON)
option(USE_CUDNN "Use cuDNN" ON)
set(USE_FACTOR 1 CACHE STRING "Used by beta only")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
if(USE_CUDNN)
  find_library(CUDNN_LIBRARY tug_cudnn HINTS $ENV{CUDNN_ROOT})
  if(NOT CUDNN_LIBRARY)
    message(WARNING "cuDNN cannot be found. Turning the option off")
    set(USE_CUDNN OFF CACHE BOOL "Use cuDNN" FORCE)
  endif()
endif()
if(BUILD_LIBTORCHLESS)
  find_library(CORE_LIB tug_core PATHS $ENV{LIBTUG_LIB_PATH} NO_DEFAULT_PATH REQUIRED)
else()
  file(GLOB parts core/*.cpp)
  add_library(tug_core SHARED ${parts})
  target_include_directories(tug_core PRIVATE include)
  set_source_files_properties(core/beta.cpp PROPERTIES COMPILE_DEFINITIONS FACTOR=${USE_FACTOR})
  add_library(tug_linalg SHARED linalg/solve.cpp)
  if(USE_MAGMA)
    target_compile_definitions(tug_linalg PRIVATE USE_MAGMA)
  endif()
  set(CORE_LIB tug_core)
  install(TARGETS tug_core tug_linalg LIBRARY DESTINATION @lib@)
  install(DIRECTORY include/ DESTINATION @include@)
endif()
if(BUILD_PYTHON)
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
  add_library(_C MODULE python/module.cpp)
  set_target_properties(_C PROPERTIES PREFIX "" SUFFIX ".${Python_SOABI}.so" INSTALL_RPATH "$ORIGIN/lib")
  target_include_directories(_C PRIVATE ${Python_INCLUDE_DIRS})
  target_link_libraries(_C PRIVATE ${CORE_LIB})
  install(TARGETS _C LIBRARY DESTINATION @module@)
endif()
message(STATUS "  USE_MAGMA             : ${USE_MAGMA}")
message(STATUS "  USE_CUDNN             : ${USE_CUDNN}")
"""
_MODULE = """\
#include <Python.h>
int alpha();
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(alpha()); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, "The answer."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
"""
_SETUP = '''\
"""Configures and builds by CMake, in the folder build, as PyTorch's setup.py did."""
import os
import sys
from glob import glob

from setuptools import setup
from tools.setup_helpers.cmake import CMake

LIBTORCH_WHL = os.environ.get("BUILD_LIBTORCH_WHL") == "1"
if os.environ.get("BUILD_PYTHON_ONLY") == "1":
    os.environ["BUILD_LIBTORCHLESS"] = "ON"
    os.environ["LIBTUG_LIB_PATH"] = os.path.abspath("tug/lib")
cmake = CMake()
only = "--cmake-only" in sys.argv
rerun = "--cmake" in sys.argv
sys.argv = [word for word in sys.argv if word not in ("--cmake-only", "--cmake")]
if not {"egg_info", "dist_info", "sdist"} & set(sys.argv):
    cmake.generate(rerun=rerun, python=not LIBTORCH_WHL)
    if only:
        sys.exit()
    cmake.build()
    for module in glob("build/installed/*.so"):
        os.replace(module, os.path.join("tug", os.path.basename(module)))
setup(
    name="tug",
    version="1.0",
    packages=["tug"],
    package_data={"tug": ["*.so"] if os.environ.get("BUILD_PYTHON_ONLY") == "1" else ["*.so", "lib/*.so"]},
    has_ext_modules=lambda: True,
)
'''
_HELPER = """\
import os
import subprocess
import sys


class CMake:
    def generate(self, *, rerun, python):
        cache = os.path.join("build", "CMakeCache.txt")
        if rerun and os.path.isfile(cache):
            os.remove(cache)
        if os.path.exists(cache) and os.path.exists(os.path.join("build", "build.ninja")):
            return
        os.makedirs("build", exist_ok=True)
        args = ["-GNinja", "-DCMAKE_INSTALL_PREFIX=" + os.path.abspath("tug"), "-DPython_EXECUTABLE=" + sys.executable]
        options = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("BUILD_", "USE_", "CMAKE_"))
        }
        options["BUILD_PYTHON"] = "ON" if python else "OFF"
        args += [f"-D{name}={value}" for name, value in sorted(options.items())]
        subprocess.check_call(["cmake", *args, os.getcwd()], cwd="build")

    def build(self):
        jobs = os.environ.get("MAX_JOBS")
        more = ["--", "-j", jobs, "-v"] if jobs else []
        subprocess.check_call(["cmake", "--build", ".", "--target", "install", *more], cwd="build")
"""
_PROJECT = """\
[build-system]
requires = [REQUIRES]
build-backend = "BACKEND"
[project]
name = "tug"
version = "1.0"
"""
_FOLDERS: dict[Kind, tuple[str, str, str]] = {
    "cmake": ("lib", "include", "."),
    "setup.py": ("lib", "include", "../build/installed"),
    "scikit-build-core": ("tug/lib", "tug/include", "tug"),
}
"""Where libraries, headers and the extension are installed."""
_BACKENDS = {
    "setup.py": ('"setuptools>=70"', "setuptools.build_meta:__legacy__"),
    "scikit-build-core": ('"scikit-build-core>=0.10"', "scikit_build_core.build"),
}
_WHEELS: dict[Kind, tuple[str, ...]] = {
    "cmake": (),
    "setup.py": ("setuptools==80.9.0",),
    "scikit-build-core": ("scikit-build-core==1.1.2", "pathspec==1.1.1", "packaging==26.0"),
}

RECIPE = """\
name = "tug"
version = "1.0"
[source]
path = "src"
[axes]
python = [PYTHONS]
magma = ["off", "on"]
[environments.tools]
axes = []
python = "FIRST"
[environments.bind]
"""

TOOLS = 'tools = ["c++", "cmake", "ninja"]\n'
CORE: dict[Kind, str] = {
    "cmake": f"""\
[stages.core]
action = "compile"
{TOOLS}options = {{ BUILD_PYTHON = "OFF", USE_MAGMA = "OFF" }}
""",
    "setup.py": f"""\
[stages.core]
action = "compile"
environment = "tools"
{TOOLS}env = {{ BUILD_LIBTORCH_WHL = "1", USE_MAGMA = "OFF" }}
""",
    "scikit-build-core": f"""\
[stages.core]
action = "compile"
environment = "tools"
{TOOLS}options = {{ BUILD_PYTHON = "OFF", USE_MAGMA = "OFF" }}
""",
}
"""Kind -> the stage that compiles its library alone."""


def make_tug(root: Path, kind: Kind, stages: str, *, versions: Sequence[str]) -> Tiny:
    """Write the project and its recipe, which has ``stages``; skips the test where a tool is missing."""
    missing = [name for name in ("c++", "cmake", "ninja") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    tug = Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=tuple(versions))
    tug.home.mkdir(parents=True)
    tug.folder.mkdir()
    quoted = ", ".join(f'"{version}"' for version in versions)
    recipe = RECIPE.replace("PYTHONS", quoted).replace("FIRST", versions[0])
    if _WHEELS[kind]:
        recipe = recipe.replace("[environments.bind]\n", f"requires = {_named(kind)}\n[environments.bind]\n")
        recipe += f"requires = {_named(kind)}\n"
        _lock(tug, kind, versions)
    tug.recipe.write_text(recipe + stages)
    for name, text in _files(kind).items():
        path = tug.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tug


def _named(kind: Kind) -> str:
    return "[" + ", ".join(f'"{requirement}"' for requirement in _WHEELS[kind]) + "]"


def _files(kind: Kind) -> dict[str, str]:
    listing = _CMAKE
    for name, folder in zip(("lib", "include", "module"), _FOLDERS[kind], strict=True):
        listing = listing.replace(f"@{name}@", folder)
    files = {
        "CMakeLists.txt": listing,
        "include/tug/tug.h": "#define TUG_BASE 41\nint alpha();\n",
        "linalg/solve.cpp": "#ifdef USE_MAGMA\nint solve() { return 2; }\n#else\nint solve() { return 1; }\n#endif\n",
        "python/module.cpp": _MODULE,
    }
    for number, part in enumerate(PARTS):
        body = f"{number} * FACTOR" if part == "beta" else f"TUG_BASE + {number}"
        files[f"core/{part}.cpp"] = f'#include "tug/tug.h"\nint {part}() {{ return {body}; }}\n'
    if kind != "cmake":
        requires, backend = _BACKENDS[kind]
        files["pyproject.toml"] = _PROJECT.replace("REQUIRES", requires).replace("BACKEND", backend)
        files["tug/__init__.py"] = "from tug._C import answer\n"
    if kind == "setup.py":
        files |= {"setup.py": _SETUP, "tools/setup_helpers/cmake.py": _HELPER}
    return files


def _lock(tug: Tiny, kind: Kind, versions: Sequence[str]) -> None:
    """Write the locks of the environments; their wheels lie in the folder of links."""
    links = tug.home / "links"
    links.mkdir()
    wheels = []
    for requirement in _WHEELS[kind]:
        path = wheel(requirement)
        shutil.copy(path, links)
        name, _, version = requirement.partition("==")
        data = path.read_bytes()
        wheels.append(
            LockedWheel(name=name, version=version, filename=path.name, size=len(data), sha256=digest_of(data))
        )
    companion = tug.folder / "tiny"
    companion.mkdir()
    for name, version in [("tools", versions[0]), *((f"bind-py{each.replace('.', '')}", each) for each in versions)]:
        lock = make_lock(_WHEELS[kind], python=version, platform=pythons()[version].platform, wheels=wheels)
        (companion / f"pylock.{name}.toml").write_text(render_lock(lock))


def steps(tug: Tiny) -> dict[str, dict[str, NinjaStep]]:
    """Workspace -> what its ninja says is made."""
    return {
        str(path.relative_to(tug.store / "workspaces")).partition("/")[0]: read_ninja_log(path.read_text())
        for path in tug.store.glob("workspaces/**/.ninja_log")
    }


class Compiled:
    """Counts what ninja compiles, from one run to the next."""

    def __init__(self, tug: Tiny) -> None:
        self._tug = tug
        self._before = steps(tug)

    def since(self) -> list[str]:
        """Names of the sources that were compiled since the last call, sorted."""
        now = steps(self._tug)
        fresh = [path for where, found in now.items() for path in rebuilt(self._before.get(where, {}), found)]
        self._before = now
        return sorted(Path(path).name.partition(".")[0] for path in fresh if path.endswith(".o"))


def from_nothing(tug: Tiny, *args: str) -> Run:
    """A build with no workspace, no earlier result and nothing in a compiler cache."""
    for name in ("workspaces", "results", "cache"):
        shutil.rmtree(tug.store / name, ignore_errors=True)
    return tug.built(*args)


def paths_of(tug: Tiny, run: Run, stage: str) -> set[str]:
    """Paths of the files in a stage's result."""
    return {entry.path for entry in Store.open(tug.store).get_tree(Digest(run.trees[stage])).entries}
