"""Projects of PyTorch's shape, small: a library for any Python, one for linear algebra with or without MAGMA."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.tiny import Tiny

if TYPE_CHECKING:
    from support.tiny import Run

LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(ferry C)
option(USE_MAGMA "Linear algebra by MAGMA" OFF)
option(USE_CUDNN "Needs a library that nobody has" OFF)
if(USE_CUDNN)
  message(WARNING "Cannot find cuDNN library. Turning the option off")
  set(USE_CUDNN OFF)
endif()
add_library(ferry SHARED one.c two.c)
add_library(ferry_linalg SHARED linalg.c)
if(USE_MAGMA)
  target_compile_definitions(ferry_linalg PRIVATE USE_MAGMA)
endif()
install(TARGETS ferry ferry_linalg LIBRARY DESTINATION lib)
install(FILES ferry.h DESTINATION include)
message(STATUS "  USE_MAGMA             : ${USE_MAGMA}")
message(STATUS "  USE_CUDNN             : ${USE_CUDNN}")
"""
SOURCES = {
    "one.c": "int one(void) { return 1; }\n",
    "two.c": '#include "ferry.h"\nint two(void) { return TWO; }\n',
    "linalg.c": "#ifdef USE_MAGMA\nint linalg(void) { return 3; }\n#else\nint linalg(void) { return 2; }\n#endif\n",
    "ferry.h": "#define TWO 2\n",
}
RECIPE = """\
name = "ferry"
version = "1.0"
source = { path = "src" }
[axes]
magma = ["off", "on"]
[stages.core]
action = "compile"
tools = ["cc", "cmake", "ninja"]
options = { USE_MAGMA = "OFF" }
files = ["lib/libferry.so", "include/**"]
[stages.linalg]
action = "compile"
axes = ["magma"]
inputs = ["core"]
continues = "core"
tools = ["cc", "cmake", "ninja"]
options = { USE_MAGMA = "{magma}" }
files = ["lib/libferry_linalg.so"]
"""


def make_shaped(root: Path) -> Tiny:
    """Write the project into a new folder; skips the test where a tool is missing."""
    missing = [name for name in ("cc", "cmake", "ninja") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    shaped = Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=())
    shaped.source.mkdir(parents=True)
    shaped.home.mkdir()
    shaped.recipe.write_text(RECIPE)
    (shaped.source / "CMakeLists.txt").write_text(LISTS)
    for name, text in SOURCES.items():
        (shaped.source / name).write_text(text)
    return shaped


def compiled(run: Run, stage: str) -> list[str]:
    """Objects that a stage compiled, by its log."""
    logs = [event["log"] for event in run.events if event["event"] == "stage-started" and event["stage"] == stage]
    return sorted(
        name for log in logs for name in re.findall(r"Building C object \S*?(\w+\.c)\.o", Path(log).read_text())
    )


def trees(run: Run) -> dict[str, str]:
    """Stage, with its variant -> digest of its result."""
    return {event["stage"]: event["tree"] for event in run.events if event["event"] == "stage-finished"}
