"""What a project's CMake and meson files download or leave out, as far as they tell it without being run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.package.project.read import read_project
from support.projects import tree_of

if TYPE_CHECKING:
    from axletree.package.project.model import Project

CMAKE = {
    "pyproject.toml": '[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n'
    '[project]\nname = "gizmo"\nversion = "1"\n[tool.scikit-build.cmake.define]\nGIZMO_BUNDLED = "ON"\n',
    "gizmo/__init__.py": "",
}
FETCH = """\
include(FetchContent)
FetchContent_Declare(cogs URL https://example.org/cogs.tar.gz)
FetchContent_MakeAvailable(cogs)
"""
MESON = {
    "pyproject.toml": '[build-system]\nrequires = ["meson-python"]\nbuild-backend = "mesonpy"\n'
    '[project]\nname = "gizmo"\nversion = "1"\n',
    "gizmo/__init__.py": "",
}
WRAP = "[wrap-git]\nurl = https://example.org/cogs.git\nrevision = v1\n[provide]\ncogs-core = cogs_dep\n"


def read(files: dict[str, str], **more: str) -> Project:
    return read_project(tree_of(files | more), fallback="gizmo")


def downloads(project: Project) -> list[str]:
    return [f"{each.value} {each.place}" for each in project.downloads]


@pytest.mark.parametrize(
    ("text", "certain", "possible"),
    [
        (FETCH, True, False),
        (f"if(GIZMO_BUNDLED OR NOT cogs_FOUND)\n{FETCH}endif()\n", True, False),
        (f"if(NOT cogs_FOUND)\n{FETCH}endif()\n", False, True),
        (f"option(GIZMO_TESTS x OFF)\nif(GIZMO_TESTS AND cogs)\n{FETCH}endif()\n", False, False),
        (f"option(GIZMO_OWN x ON)\nif(NOT GIZMO_OWN)\nelse()\n{FETCH}endif()\n", True, False),
        (f"function(get)\n{FETCH}endfunction()\n", False, True),
        (FETCH.replace("https://example.org/cogs.tar.gz", "${HERE}/cogs.tar.gz"), False, False),
        (f"set(AT https://example.org)\n{FETCH.replace('https://example.org', '${AT}')}", True, False),
        (FETCH.replace(".gz)", ".gz FIND_PACKAGE_ARGS 2.0)"), False, True),
        ("ExternalProject_Add(cogs GIT_REPOSITORY https://example.org/cogs.git)\n", True, False),
    ],
)
def test_what_cmake_downloads(text: str, *, certain: bool, possible: bool) -> None:
    project = read(CMAKE, **{"CMakeLists.txt": text})
    assert [each.value for each in project.downloads] == (["cogs"] if certain else [])
    assert any("downloads cogs (CMakeLists.txt:" in notice for notice in project.notices) is possible


def test_a_download_in_a_folder_counts_if_the_folder_is_added() -> None:
    below = {"cogs/CMakeLists.txt": FETCH}
    added = read(CMAKE | below, **{"CMakeLists.txt": "add_subdirectory(cogs)\n"})
    assert downloads(added) == ["cogs cogs/CMakeLists.txt:3"]
    off = "option(COGS x OFF)\nif(COGS)\nadd_subdirectory(${PROJECT_SOURCE_DIR}/cogs)\nendif()\n"
    assert downloads(read(CMAKE | below, **{"CMakeLists.txt": off})) == []
    tests = read(CMAKE | {"tests/CMakeLists.txt": FETCH}, **{"CMakeLists.txt": "add_subdirectory(tests)\n"})
    assert downloads(tests) == []


def test_a_download_whose_source_is_given_is_none() -> None:
    given = CMAKE["pyproject.toml"] + 'FETCHCONTENT_SOURCE_DIR_COGS = "cogs"\n'
    assert downloads(read(CMAKE, **{"CMakeLists.txt": FETCH, "pyproject.toml": given})) == []


def test_languages_of_folders_that_an_option_leaves_out_are_not_compiled() -> None:
    files = CMAKE | {"a.c": "", "for/b.f90": "", "for/CMakeLists.txt": "project(b LANGUAGES Fortran)\n"}
    text = "option(WITH_FORTRAN x {})\nif(NOT TARGET for AND WITH_FORTRAN)\nadd_subdirectory(for)\nendif()\n"
    off = read(files, **{"CMakeLists.txt": text.format("OFF")})
    assert [each.value for each in off.languages] == ["C"]
    on = read(files, **{"CMakeLists.txt": text.format("ON")})
    assert [each.value for each in on.languages] == ["C", "Fortran"]


def test_cmake_as_new_as_the_project_wants_it() -> None:
    project = read(
        CMAKE, **{"CMakeLists.txt": "cmake_minimum_required(VERSION 3.26...4.0)\nproject(x LANGUAGES CXX)\n"}
    )
    assert [(each.requirement, each.program) for each in project.asked] == [
        ("cmake>=3.26", "cmake"),
        ("ninja", "ninja"),
    ]
    assert [each.value for each in project.tools] == ["c++", "cc"]
    stated = CMAKE["pyproject.toml"].replace(
        "cmake.define", 'cmake]\nversion = ">=3.20"\n[tool.scikit-build.cmake.define'
    )
    assert read(CMAKE, **{"pyproject.toml": stated}).asked[0].requirement == "cmake>=3.20"


def test_hatchling_with_a_hook_of_scikit_build() -> None:
    text = '[build-system]\nrequires = ["hatchling", "scikit-build-core"]\nbuild-backend = "hatchling.build"\n'
    files = {"pyproject.toml": f"{text}[tool.hatch.build.targets.wheel.hooks.scikit-build]\nexperimental = true\n"}
    project = read(files, **{"CMakeLists.txt": "project(gizmo LANGUAGES C)\n", "gizmo/__init__.py": ""})
    assert project.compiles
    assert [each.requirement for each in project.asked] == ["cmake", "ninja"]
    assert [each.value for each in project.tools] == ["cc"]


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("dependency('cogs-core', static: true)", True),
        ("subproject('cogs')", True),
        ("dependency('cogs-core', required: false)", False),
        ("dependency('cogs-core', required: get_option('cogs'))", False),
        ("if get_option('cogs')\n  dependency('cogs-core')\nendif", False),
        ("if x\nendif\ndependency('cogs-core', required : true)", True),
        ("dependency('zlib')", False),
    ],
)
def test_subprojects_that_meson_downloads(call: str, *, missing: bool) -> None:
    project = read(MESON, **{"subprojects/cogs.wrap": WRAP, "meson.build": f"project('g', 'c')\n{call}\n"})
    assert bool(project.downloads) is missing
    assert all(each.why == "subprojects/cogs.wrap" for each in project.downloads)


def test_a_subproject_in_the_tree_is_not_downloaded() -> None:
    files = {"meson.build": "project('g', 'c')\nsubproject('cogs')\n", "subprojects/cogs/meson.build": ""}
    assert read(MESON, **files, **{"subprojects/cogs.wrap": WRAP}).downloads == ()
    moved = WRAP.replace("url", "directory = cogs-1.0\nurl")
    assert len(read(MESON, **files, **{"subprojects/cogs.wrap": moved}).downloads) == 1
