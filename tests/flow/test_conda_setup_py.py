"""A tree that PyTorch's setup.py configures, in conda environments: its CMake is told what the environments ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.conda_world import SOURCE, conda_project, make_world
from support.tiny import need_pythons

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """\
name = "tiny"
version = "1.0"
[source]
path = "src"
[axes]
python = ["PYTHON"]
[environments.build]
axes = []
provider = "conda"
channels = ["./channel"]
requires = ["gxx_linux-64"]
[environments.host]
provider = "conda"
channels = ["./channel"]
requires = ["zed 1.3.*", "python {python}.*"]
[stages.lib]
action = "compile"
axes = ["python"]
environment = "build"
host = "host"
tools = ["c++", "cmake", "ninja"]
[packages.tiny]
from = "lib"
formats = ["conda"]
conda = { layout = "prefix" }
"""
SETUP = """\
import os, subprocess, sys
assert sys.argv[1:] == ["build", "--cmake-only"]
args = [f"-D{name}={value}" for name, value in os.environ.items() if name.startswith(("BUILD_", "USE_", "CMAKE_"))]
os.makedirs("build", exist_ok=True)
install = "-DCMAKE_INSTALL_PREFIX=" + os.path.abspath("torch")
subprocess.check_call(["cmake", "-GNinja", *args, install, os.getcwd()], cwd="build")
"""
LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(Caffe2 CXX)
if(NOT CMAKE_INSTALL_LIBDIR STREQUAL "lib-of-conda")
  message(FATAL_ERROR "CMAKE_ARGS did not arrive")
endif()
find_library(ZED zed REQUIRED NO_CMAKE_ENVIRONMENT_PATH NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_SYSTEM_PATH)
add_subdirectory(c10)
"""
C10 = """\
add_library(tiny SHARED ../tiny.cpp)
target_compile_definitions(tiny PRIVATE ARGS_OF_CONDA)
target_link_libraries(tiny ${ZED})
install(TARGETS tiny DESTINATION lib)
"""


def test_cmake_arguments_and_prefixes_of_conda_reach_the_cmake_of_setup_py(tmp_path: Path) -> None:
    pytest.importorskip("rattler")
    make_world(tmp_path / "channel")
    files = [("CMakeLists.txt", LISTS), ("c10/CMakeLists.txt", C10), ("setup.py", SETUP), ("tiny.cpp", SOURCE)]
    tiny = conda_project(
        tmp_path,
        tmp_path / "channel",
        recipe=RECIPE.replace("PYTHON", need_pythons(1)[0]),
        files=[(f"src/{name}", content) for name, content in files],
    )
    locked = tiny.call("lock", str(tiny.recipe))
    assert locked.returncode == 0, locked.stderr
    tiny.built()
    (cache,) = tiny.store.glob("workspaces/*/source/build/CMakeCache.txt")
    assert "/lib/libzed.so" in cache.read_text()
