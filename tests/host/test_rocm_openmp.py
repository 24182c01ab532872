"""CMake finds the OpenMP that the ROCm variants of PyTorch's recipe name, and not another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from axletree.buildsystem.cmake.cache import parse_cache
from axletree.buildsystem.cmake.features import check_features

RECIPE = Path(__file__).parents[2] / "recipes" / "pytorch.toml"
PROJECT = """\
cmake_minimum_required(VERSION 3.18)
project(libtorch LANGUAGES NONE)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_SOURCE_DIR})
option(USE_OPENMP "Use OpenMP" ON)
find_package(OpenMP)
if(NOT OpenMP_FOUND)
  message(WARNING "Not compiling with OpenMP")
  set(USE_OPENMP OFF CACHE BOOL "Use OpenMP" FORCE)
endif()
"""
MODULE = """\
find_library(OpenMP_libomp_LIBRARY NAMES omp gomp iomp5 HINTS ${HINTED})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenMP REQUIRED_VARS OpenMP_libomp_LIBRARY)
"""
"""As PyTorch's own module looks for the library, at 2.6 and 2.13."""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
@pytest.mark.parametrize(
    ("asked", "chosen"), [("rocm", "llvm/lib/libomp.so"), ("gcc", "gcc/libgomp.so"), ("none", None)]
)
def test_rocms_own_openmp_comes_first(asked: str, chosen: str | None, tmp_path: Path) -> None:
    source, found = tmp_path / "source", tmp_path / "found"
    for path, text in (("CMakeLists.txt", PROJECT), ("FindOpenMP.cmake", MODULE)):
        (source / path).parent.mkdir(exist_ok=True)
        (source / path).write_text(text)
    for name in ("llvm/lib/libomp.so", "gcc/libgomp.so"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text("")
    overrides = tomllib.loads(RECIPE.read_text("utf-8"))["override"]
    (variable,) = {
        name for each in overrides for name, text in each.get("env", {}).items() if text == "{gpu.openmp-root}"
    }
    env = {**os.environ, **({variable: str(found / "llvm")} if asked == "rocm" else {})}
    nowhere = ["-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY", "-DCMAKE_FIND_ROOT_PATH=/nowhere"]
    options = nowhere if asked == "none" else [f"-DHINTED={found / 'gcc'}"]
    command = ["cmake", "-S", str(source), "-B", str(tmp_path / "build"), *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    text = (tmp_path / "build" / "CMakeCache.txt").read_text()
    cache = parse_cache(text, file="CMakeCache.txt")
    library = cache.get("OpenMP_libomp_LIBRARY")
    expected = next(each["expect"] for each in overrides if "USE_OPENMP" in each.get("expect", {}))
    unlike = check_features(expected, cache, (done.stdout + done.stderr).splitlines())
    if chosen is None:
        assert [each.feature for each in unlike] == ["USE_OPENMP"]
        assert any("Not compiling with OpenMP" in line for line in unlike[0].why)
    else:
        assert unlike == ()
        assert library == str(found / chosen)
