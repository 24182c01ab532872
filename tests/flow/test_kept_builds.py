"""Kept build folders of a project in PyTorch's shape, in each way that PyTorch is built: they save work, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.tiny import need_pythons
from support.tug import PARTS, Compiled, from_nothing, make_tug, paths_of

if TYPE_CHECKING:
    from pathlib import Path

    from support.tug import Kind

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]

TOOLS = 'tools = ["c++", "cmake", "ninja"]\n'
CORE = {
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
LIBRARIES = {"cmake": "lib", "setup.py": "tug/lib", "scikit-build-core": "tug/lib"}


@pytest.mark.parametrize("kind", list(CORE))
def test_changes_compile_what_they_touch_and_the_result_is_that_of_a_fresh_build(kind: Kind, tmp_path: Path) -> None:
    tug = make_tug(tmp_path, kind, CORE[kind], versions=need_pythons(1))
    compiled = Compiled(tug)
    first = tug.built()
    assert compiled.since() == sorted([*PARTS, "solve"])
    assert f"{LIBRARIES[kind]}/libtug_core.so" in paths_of(tug, first, "core")
    tug.change('USE_MAGMA = "OFF"', 'USE_MAGMA = "ON", USE_FACTOR = "3"')
    tug.built()
    assert compiled.since() == ["beta", "solve"]
    (tug.source / "core" / "epsilon.cpp").write_text("int epsilon() { return 5; }\n")  # by a pattern of CMake's
    (tug.source / "core" / "delta.cpp").unlink()
    tug.edit("src/core/alpha.cpp", "TUG_BASE", "1 + TUG_BASE")
    changed = tug.built()
    assert compiled.since() == ["alpha", "epsilon"]
    (tug.source / "core" / "epsilon.cpp").unlink()
    (tug.source / "core" / "delta.cpp").write_text('#include "tug/tug.h"\nint delta() { return TUG_BASE + 3; }\n')
    tug.edit("src/core/alpha.cpp", "1 + TUG_BASE", "TUG_BASE")
    tug.change(', USE_FACTOR = "3"', ', USE_NOTHING = "1"')
    tug.change('USE_MAGMA = "ON"', 'USE_MAGMA = "0"')
    back = tug.built()
    assert compiled.since() == ["alpha", "beta", "delta", "solve"]
    assert back.trees["core"] == first.trees["core"] != changed.trees["core"]
    assert from_nothing(tug).trees["core"] == first.trees["core"]


BIND = """\
[stages.bind]
action = "build"
axes = ["python"]
environment = "bind"
inputs = ["core"]
continues = "core"
tools = ["c++", "cmake", "ninja"]
"""
BINDS = {
    "setup.py": f'{BIND}env = {{ USE_MAGMA = "OFF" }}\n',
    "scikit-build-core": f'{BIND}config = {{ "cmake.define.USE_MAGMA" = "OFF" }}\n',
}


@pytest.mark.parametrize("kind", list(BINDS))
def test_each_python_goes_on_in_the_folder_of_the_library(kind: Kind, tmp_path: Path) -> None:
    versions = need_pythons(2)
    first, second = (f"py{version.replace('.', '')}" for version in versions)
    tug = make_tug(tmp_path, kind, CORE[kind] + BINDS[kind], versions=versions)
    compiled = Compiled(tug)
    tug.built("-v", f"{first}-*")
    assert compiled.since() == sorted([*PARTS, "solve", "module"])
    going_on = tug.built()
    assert compiled.since() == ["module"]
    assert len(list((tug.store / "workspaces").iterdir())) == 1
    tug.edit("src/core/beta.cpp", "1 *", "7 *")
    tug.edit("src/python/module.cpp", "alpha())", "alpha() + 1)")
    tug.built("-v", f"{second}-*")
    assert compiled.since() == ["beta", "module"]
    tug.edit("src/core/beta.cpp", "7 *", "1 *")
    tug.edit("src/python/module.cpp", "alpha() + 1)", "alpha())")
    tug.change('continues = "core"\n', "")
    alone = from_nothing(tug)
    for python, letter in ((first, "A"), (second, "B")):
        stage = f"install:bind[{letter}]"
        assert alone.trees[stage] == going_on.trees[stage]
        modules = [path for path in paths_of(tug, alone, stage) if "/_C." in path]
        assert len(modules) == 1
        assert python.removeprefix("py") in modules[0]
