"""A project of three C++ files that is built by make, by ninja or by CMake in a workspace that is kept."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.tiny import Tiny

if TYPE_CHECKING:
    from support.tiny import Run

TOOLS = {"make": ("make",), "ninja": ("ninja",), "cmake": ("cmake", "ninja")}

RECIPE = """\
name = "kept"
version = "1.0"
source = { path = "src" }
[stages.head]
action = "run"
commands = ["cp names.h $AXLETREE_OUT/"]
[stages.build]
action = "run"
workspace = true
inputs = ["head"]
tools = ["c++", TOOLS]
env = { DEFINES = "-DFACTOR=1" }
commands = ["bash build.sh", "cp $AXLETREE_WORKSPACE/libkept.so $AXLETREE_OUT/"]
"""

_PARTS = {
    "one": '#include "names.h"\nconst char* one() { return NAME; }\n',
    "two": "#include <cassert>\nint two(int x) { assert(x); return 2 * FACTOR; }\n",
    "three": "const char* three() { return __FILE__; }\n",
}

_MAKE = {
    "Makefile": """\
$(STATE)/libkept.so: $(PARTS:%.cpp=$(STATE)/%.o)
	c++ -shared -Wl,-soname,libkept.so -o $@ $^
$(STATE)/%.o: %.cpp
	c++ $(CXXFLAGS) $(DEFINES) -fPIC -I$(HEAD) -g -MMD -c $< -o $@
-include $(PARTS:%.cpp=$(STATE)/%.d)
""",
    "build.sh": 'make STATE="$AXLETREE_WORKSPACE" HEAD="$AXLETREE_IN_HEAD" PARTS="$(echo *.cpp)"\n',
}

_NINJA = {
    "rules.ninja": """\
rule compile
  command = c++ $flags -fPIC -g -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = c++ -shared -Wl,-soname,libkept.so -o $out $in
""",
    "build.sh": """\
set -eu
{
  echo "flags = $CXXFLAGS $DEFINES -I$AXLETREE_IN_HEAD"
  cat rules.ninja
  for part in *.cpp; do echo "build ${part%.cpp}.o: compile $AXLETREE_SOURCE/$part"; done
  echo "build libkept.so: link $(echo *.cpp | sed 's/[.]cpp/.o/g')"
} > "$AXLETREE_WORKSPACE/build.ninja"
ninja -v -C "$AXLETREE_WORKSPACE" libkept.so
""",
}

_CMAKE = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18)
project(kept CXX)
file(GLOB parts CONFIGURE_DEPENDS *.cpp)
add_library(kept SHARED ${parts})
target_include_directories(kept PRIVATE ${HEAD})
separate_arguments(defines UNIX_COMMAND "$ENV{DEFINES}")
target_compile_options(kept PRIVATE -g ${defines})
""",
    "build.sh": """\
set -eu
cmake -G Ninja -S . -B "$AXLETREE_WORKSPACE" -DHEAD="$AXLETREE_IN_HEAD"
cmake --build "$AXLETREE_WORKSPACE" --verbose
""",
}

_FILES = {"make": _MAKE, "ninja": _NINJA, "cmake": _CMAKE}


def make_kept(root: Path, tool: str) -> Tiny:
    """Write the project into a new folder; skips the test where a tool is missing."""
    missing = [name for name in ("c++", *TOOLS[tool]) if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)}")
    kept = Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=())
    kept.source.mkdir(parents=True)
    kept.home.mkdir()
    kept.recipe.write_text(RECIPE.replace("TOOLS", ", ".join(f'"{name}"' for name in TOOLS[tool])))
    parts = {f"{name}.cpp": text for name, text in _PARTS.items()}
    for name, text in {**parts, "names.h": '#define NAME "kept"\n', **_FILES[tool]}.items():
        (kept.source / name).write_text(text)
    return kept


def compiled(run: Run) -> set[str]:
    """Sources that the build stage compiled, by its log."""
    (log,) = (event["log"] for event in run.events if event["event"] == "stage-started" and event["stage"] == "build")
    return set(re.findall(r"^.*c\+\+ .* -c .*?(\w+)\.cpp\b", Path(log).read_text(), re.MULTILINE))


def without_workspace(kept: Tiny) -> str:
    """The tree of the build stage, made anew: with no workspace, no earlier result and nothing in a compiler cache."""
    for folder in ("workspaces", "results", "cache"):
        shutil.rmtree(kept.store / folder)
    run = kept.built()
    assert "build" in run.stages("done")
    return run.trees["build"]
