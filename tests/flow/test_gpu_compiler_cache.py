"""CUDA code goes through the compiler cache: nvcc is not called for what another store has compiled."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from support.cuda import KERNEL
from support.faulty import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from support.faulty import Project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(shutil.which(name) is None for name in ("nvcc", "cmake", "ninja", "c++")),
        reason="needs nvcc, cmake, ninja and a C++ compiler",
    ),
]

HEAD = """\
name = "small"
version = "1.0"
[source]
path = "src"
"""
CMAKE = f"""{HEAD}
[stages.lib]
action = "compile"
workspace = false
tools = ["c++", "cmake", "ninja", "nvcc"]
options = {{ CMAKE_CUDA_ARCHITECTURES = "80;90" }}
"""
LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(small CXX CUDA)
add_library(small SHARED one.cu two.cu host.cpp)
set_target_properties(small PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_compile_options(small PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--threads=2>)
install(TARGETS small LIBRARY DESTINATION lib)
"""
SETUP = f"""{HEAD}
[stages.lib]
action = "run"
tools = ["c++", "nvcc"]
commands = [
  "$NVCC -MD -MF $TMPDIR/one.d -Xcompiler -fPIC -gencode arch=compute_80,code=sm_80 -c $PWD/one.cu -o $TMPDIR/one.o",
  "grep -q one.cu $TMPDIR/one.d",
  "$PYTORCH_NVCC OPTIONS -Xcompiler -fPIC -c $PWD/two.cu -o $TMPDIR/two.o",
  "cp $TMPDIR/*.o $AXLETREE_OUT",
]
"""
SOURCES = {
    "src/CMakeLists.txt": LISTS,
    "src/one.cu": KERNEL.format(name="one", factor=2),
    "src/two.cu": KERNEL.format(name="two", factor=3),
    "src/host.cpp": "int host() { return 1; }\n",
}


NVCC = """\
#!/bin/sh
case " $* " in *.cu\\ *) echo "$*" >> {count};; esac
exec {nvcc} "$@"
"""


def two_stores(folder: Path, recipe: str) -> tuple[Project, Project]:
    """The same project twice: in other folders and other stores, which share the compiler cache alone."""
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text(NVCC.format(count=folder / "count", nvcc=shutil.which("nvcc")))
    nvcc.chmod(0o755)
    path = f"{nvcc.parent}:{os.environ['PATH']}"
    one, other = (make_project(folder / name, recipe, files=SOURCES, PATH=path) for name in ("one", "other"))
    shared = folder / "ccache"
    shared.mkdir()
    for project in (one, other):
        (project.store / "cache").mkdir(parents=True)
        (project.store / "cache" / "ccache").symlink_to(shared)
    return one, other


def compiled(folder: Path) -> list[str]:
    """What nvcc itself has compiled of the project so far."""
    lines = (folder / "count").read_text().splitlines()
    return sorted(
        name for line in lines if " -E " not in line for name in re.findall(r"\b((?:one|two)\.cu)(?= |$)", line)
    )


def built(project: Project) -> dict[str, Any]:
    """Build, and the record of the stage that compiles."""
    ended = project.build()
    assert ended.code == 0, ended.out + ended.err
    record: dict[str, Any] = json.loads(project.records()["lib"].read_bytes())
    return record


@pytest.mark.proof
def test_cmake_has_cuda_code_compiled_once_for_two_stores(tmp_path: Path) -> None:
    one, other = two_stores(tmp_path, CMAKE)
    first = built(one)
    assert compiled(tmp_path) == ["one.cu", "two.cu"]
    assert first["compiler_cache"]["misses"] >= 3
    assert not first.get("findings")
    second = built(other)
    assert compiled(tmp_path) == ["one.cu", "two.cu"]
    assert second["compiler_cache"]["hits"] >= 3


@pytest.mark.parametrize(
    ("options", "refused"),
    [("", {}), pytest.param("-keep", {"unsupported compiler option": 1}, marks=pytest.mark.proof)],
)
def test_other_builds_do_so_by_variables(options: str, refused: dict[str, int], tmp_path: Path) -> None:
    one, other = two_stores(tmp_path, SETUP.replace("OPTIONS", options))
    first = built(one)
    second = built(other) if not refused else first
    assert first["compiler_cache"] == {"hits": 0, "misses": 2 - len(refused), "refused": refused}
    if refused:  # said, not silent
        (finding,) = second["findings"]
        assert finding["rule"] == "build/compiler-cache-refused"
        assert "1 compile of GPU code" in finding["message"]
        assert "unsupported compiler option: two.cu" in finding["message"]
    else:
        assert second["compiler_cache"] == {"hits": 2, "misses": 0, "refused": {}}
        assert first["tree"] == second["tree"]  # nvcc would have made other bytes: the first writer's are taken
        assert compiled(tmp_path) == ["one.cu", "two.cu"]
