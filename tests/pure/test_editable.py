"""What an editable tree is, and what a change asks for, decided from values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.buildsystem.code import is_code, is_compiled, is_header
from axletree.buildsystem.editable import (
    Changes,
    changed_settings,
    compare_files,
    count_steps,
    redirect_target,
    settings_of,
    way_of,
)
from axletree.buildsystem.era import detect_era
from axletree.buildsystem.ninja import NinjaStep

if TYPE_CHECKING:
    from axletree.buildsystem.editable import Way

SETUPTOOLS = '[build-system]\nbuild-backend = "setuptools.build_meta:__legacy__"\n'


@pytest.mark.parametrize(
    ("texts", "way"),
    [
        ({"setup.py": "setup()"}, "setuptools"),
        ({"setup.py": "setup()", "pyproject.toml": SETUPTOOLS}, "setuptools"),
        ({"pyproject.toml": '[build-system]\nbuild-backend = "hatchling.build"\n'}, "backend"),
        ({"pyproject.toml": '[build-system]\nbuild-backend = "mesonpy"\n', "setup.py": "setup()"}, "backend"),
        ({"pyproject.toml": '[build-system]\nbuild-backend = "scikit_build_core.build"\n'}, "scikit-build-core"),
        ({"CMakeLists.txt": "project(x)"}, "cmake"),
        (
            {
                "CMakeLists.txt": "project(x)",
                "setup.py": "from tools.setup_helpers.cmake import CMake  # --cmake-only",
                "pyproject.toml": SETUPTOOLS,
            },
            "setup.py",
        ),
        ({"pyproject.toml": "no = toml = at all"}, "setuptools"),
        ({"pyproject.toml": "number = " + "1" * 5000}, "setuptools"),
        ({"pyproject.toml": "build-system = 1"}, "setuptools"),
    ],
)
def test_the_way_follows_from_the_tree(texts: dict[str, str], way: Way) -> None:
    assert way_of(detect_era(texts), texts) == way


def test_settings_have_one_name_each() -> None:
    settings = settings_of(
        environ={"CC": "gcc", "UNSET": None},
        config={"cmake.define.X": "1"},
        options={"USE_CUDA:BOOL": "OFF"},
        tools={"c++": {"version": "12", "target": "x86_64"}},
    )
    assert settings == {"$CC": "gcc", "-DUSE_CUDA": "OFF", "config.cmake.define.X": "1", "tool c++": "12 x86_64"}


@pytest.mark.parametrize(
    ("before", "now", "shown", "afresh"),
    [
        ({"$USE_CUDA": "0"}, {"$USE_CUDA": "1"}, "USE_CUDA: 0 -> 1", False),
        ({}, {"$CFLAGS": ""}, "CFLAGS: unset -> empty", False),
        ({"$CC": "gcc"}, {}, "CC: gcc -> unset", True),
        ({"$CPATH": "/a"}, {"$CPATH": "/b"}, "CPATH: /a -> /b", True),
        ({"-DCMAKE_CXX_COMPILER": "g++"}, {"-DCMAKE_CXX_COMPILER": "clang++"}, "", True),
        ({"-DUSE_X": "1"}, {"-DUSE_X": "0"}, "-DUSE_X: 1 -> 0", False),
        ({"tool c++": "12"}, {"tool c++": "13"}, "tool c++: 12 -> 13", True),
        ({"environment 0": "a"}, {"environment 0": "b"}, "environment 0: a -> b", False),
    ],
)
def test_what_a_changed_setting_leaves_of_use(
    before: dict[str, str], now: dict[str, str], shown: str, *, afresh: bool
) -> None:
    (change,) = changed_settings(before, now, pytorch=False)
    assert change.afresh is afresh
    assert str(change) == shown or not shown


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=5))
def test_what_is_the_same_is_no_change(settings: dict[str, str]) -> None:
    assert changed_settings(settings, dict(settings), pytorch=True) == ()


def test_files_that_are_code() -> None:
    assert [name for name in ("a.cpp", "b.cuh", "CMakeLists.txt", "x.cmake", "c.S", "d.pyx") if not is_code(name)] == []
    assert [name for name in ("a.py", "README.md", "c.o", "lib.so", "build.ninja", "cpp") if is_code(name)] == []
    assert [name for name in ("a.cpp", "b/c.cuh", "x.S") if not is_compiled(name)] == []
    assert [name for name in ("x.cmake", "a.h.in", "CMakeLists.txt", "d.pyx", "a.py") if is_compiled(name)] == []
    assert is_header("a/b.h")
    assert not is_header("a/b.cpp")


def test_files_that_changed() -> None:
    before = {"a.cpp": (1, 2), "b.cpp": (1, 2), "gone.cpp": (1, 2)}
    now = {"a.cpp": (1, 2), "b.cpp": (3, 2), "new.cpp": (1, 2)}
    assert compare_files(before, now) == Changes(edited=("b.cpp",), moved=("gone.cpp", "new.cpp"))
    assert not compare_files(now, now)


def step(path: str, *, start: int = 0, command: str | None = None) -> NinjaStep:
    return NinjaStep(path=path, milliseconds=1, command=command or path, start=start)


def test_a_step_that_makes_several_files_is_one() -> None:
    before = {"a.o": step("a.o"), "b.o": step("b.o")}
    after = {
        **before,
        "b.o": step("b.o", start=5),
        "lib.so": step("lib.so", command="link"),
        "lib.a": step("lib.a", command="link"),
    }
    count = count_steps(before, after)
    assert (count.ran, count.total) == (2, 3)
    assert count_steps(after, after).ran == 0
    run = {**after, "./CMakeFiles/install.util": step("install"), "./build.ninja": step("cmake")}
    assert (count_steps(after, run).ran, count_steps(after, run).total) == (0, 3)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("def install(*a): ...\n\ninstall({'a': 'b'}, {}, None, False, True, [], [], '')\n", ""),
        ("install({}, {}, {}, [], '/b', False, False, [], [], 'inner')", "inner"),
        ("def entrypoint() -> None:\n    install({}, {}, [], '/abs')\n", "/abs"),
        ("install({}, {}, None)", None),
        ("install()", None),
        ("install_inplace(['a'], ['b'])", None),
        ("x = 1", None),
        ("install(open('/etc/passwd'))", None),
        ("install('", None),
        ("", None),
    ],
)
def test_where_a_redirect_looks(text: str, target: str | None) -> None:
    assert redirect_target(text) == target
