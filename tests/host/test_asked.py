"""What real CMake made of what was asked for: an option turned off, a name misspelt, a variable that never arrives."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree.buildsystem.cmake.asked import asked_of, compare
from axletree.buildsystem.cmake.cache import parse_cache

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from axletree.buildsystem.cmake.asked import Unlike
    from axletree.buildsystem.pytorch.forwarding import Era

LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(it NONE)
include(forward.cmake OPTIONAL)
option(USE_CUDNN "Use cuDNN" ON)
option(USE_MAGMA "Use MAGMA" ON)
option(USE_GLOO "Use gloo" ON)
option(USE_MPI "Use MPI" ON)
option(USE_NUMA "Use NUMA" ON)
set(USE_FACTOR 1 CACHE STRING "A number")
set(TORCH_ROOT "" CACHE PATH "A folder")
if(USE_CUDNN)
  find_library(CUDNN_LIBRARY no_such_cudnn)
  if(NOT CUDNN_LIBRARY)
    message(WARNING "Cannot find cuDNN library. Turning the option off")
    set(USE_CUDNN OFF CACHE BOOL "Use cuDNN" FORCE)
  endif()
endif()
message(STATUS "${USE_MAGMA} ${USE_GLOO} ${USE_MPI} ${USE_NUMA} ${TORCH_ROOT}")
if(FIXED)
  set(USE_FACTOR 7 CACHE STRING "A number" FORCE)
endif()
"""
FORWARD = """\
execute_process(COMMAND "${CMAKE_COMMAND}" -E environment OUTPUT_VARIABLE all OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "\\n" ";" lines "${all}")
foreach(line IN LISTS lines)
  if(line MATCHES "^((BUILD_|USE_)[A-Za-z_0-9]+)=(.*)")
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_3}" CACHE STRING "From environment" FORCE)
  endif()
endforeach()
"""
"""How PyTorch 2.12 and 2.13 read the environment, in short."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(LISTS)
    return folder


def configure(source: Path, *options: str, env: Mapping[str, str] | None = None) -> tuple[Unlike, ...]:
    """Configure with ``NAME=VALUE``, or with variables as PyTorch 2.12; what is otherwise."""
    given = dict(each.split("=", 1) for each in options)
    build = source.parent / "build"
    command = ["cmake", "-S", str(source), "-B", str(build), *(f"-D{each}" for each in options)]
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", **(env or {})}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, cwd=source)
    cache = parse_cache((build / "CMakeCache.txt").read_text(), file="CMakeCache.txt")
    rules: Era | None = "setup.py and CMake" if env is not None else None
    asked = asked_of(options=given, config={}, env=env or {}, driver="setup.py", rules=rules)
    return compare(asked, cache, (done.stderr + done.stdout).splitlines(), env=environ)


def test_what_is_as_asked_for_is_silent(source: Path) -> None:
    given = ("USE_CUDNN=OFF", "USE_MAGMA=1", "USE_GLOO:BOOL=no", "USE_FACTOR=2", "TORCH_ROOT:PATH=lib/x")
    assert configure(source, *given) == ()


def test_an_option_that_a_missing_library_turns_off(source: Path) -> None:
    (one,) = configure(source, "USE_CUDNN=ON", "USE_MAGMA=ON")
    assert (one.name, one.fate, one.found, one.place) == ("USE_CUDNN", "off", "OFF", "options.USE_CUDNN")
    assert one.where.startswith("CMakeCache.txt:")
    assert one.why == ("Cannot find cuDNN library. Turning the option off",)
    assert "CUDNN_ROOT" in one.hint


def test_a_name_that_the_project_does_not_have(source: Path) -> None:
    found = {one.name: one for one in configure(source, "USE_MAGNA=ON", "NOBODYS=1", "USE_MPI=OFF", "USE_CUDNN=OFF")}
    assert {name: one.fate for name, one in found.items()} == {"USE_MAGNA": "unused", "NOBODYS": "unused"}
    assert found["USE_MAGNA"].hint == "use USE_MAGMA, which the project defines"
    assert found["NOBODYS"].hint == ""


def test_a_value_that_the_project_replaces(source: Path) -> None:
    (one,) = configure(source, "USE_FACTOR=2", "FIXED=1", "USE_CUDNN=OFF")
    assert (one.name, one.fate, one.wanted, one.found) == ("USE_FACTOR", "different", "2", "7")


VARIABLES = {"USE_CUDNN": "0", "USE_GLOO": "0", "USE_MAGMA": "0", "USE_MPI": "0", "USE_NUMA": "0"}


def test_an_unbalanced_bracket_hides_the_variables_behind_it(source: Path) -> None:
    (source / "forward.cmake").write_text(FORWARD)
    found = configure(source, env={"USE_CUDNN": "0", "A_PROMPT": "[1;32m", **VARIABLES})
    lost = {one.name for one in found}
    assert lost  # which ones, the order of the environment decides
    assert lost < set(VARIABLES)
    for one in found:
        assert (one.fate, one.place, one.wanted) == ("lost", f"env.{one.name}", "0")
        assert "brackets in the value of A_PROMPT" in one.hint


def test_the_same_variables_without_the_bracket(source: Path) -> None:
    (source / "forward.cmake").write_text(FORWARD)
    assert configure(source, env={"A_PROMPT": "[1;32m]", **VARIABLES}) == ()
