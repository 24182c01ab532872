"""What `--portable` writes into a recipe, and which projects it refuses."""

from __future__ import annotations

import pytest

from axletree.package.project.portable import why_not
from axletree.package.project.read import read_project
from axletree.package.project.recipe import Choices, render_defaults
from axletree.package.project.start import render_recipe
from axletree.recipe.defaults import Defaults
from axletree.recipe.parse import parse_recipe
from axletree.recipe.toml import decode_toml
from support.projects import ALL, tree_of

POSSIBLE = {"setuptools": (), "scikit-build-core": ("cmake", "ninja"), "meson-python": ("ninja",)}
"""Project -> programs of the host that its build still calls."""
REFUSED = {
    "torch": "the project compiles against PyTorch (setup.py:",
    "maturin": "the project contains Rust (",
    "linked": "the project links to libffi (",
    "flit": "the project compiles nothing",
}
FORTRAN = {
    "pyproject.toml": '[build-system]\nrequires = ["meson-python"]\nbuild-backend = "mesonpy"\n',
    "meson.build": "project('gizmo', 'c', 'fortran')\n",
    "solve.f90": "",
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_zig_takes_the_place_of_the_hosts_compilers(name: str) -> None:
    project = read_project(tree_of(ALL[name]), fallback="x")
    assert why_not(project, "x86_64") is None
    choices = Choices(
        source=(("path", "."),),
        origin="x",
        pythons=("3.11",),
        programs=frozenset({"ninja", "cmake"}),
        portable="x86_64",
    )
    defaults = Defaults(tables=decode_toml(render_defaults(project, choices), "defaults"))
    recipe = parse_recipe(render_recipe(project, choices), filename="x", defaults=defaults)
    stage = recipe.stages["build"]
    assert stage.env["CC"] == "python-zig cc -target x86_64-linux-gnu.2.17"
    assert stage.env["CXX"] == "python-zig c++ -target x86_64-linux-gnu.2.17"
    assert stage.env.get("PKG_CONFIG_LIBDIR") == ("/none" if name == "meson-python" else None)
    assert set(stage.tools) == set(POSSIBLE[name])
    assert "ziglang" in recipe.environments["build"].requires
    assert [package.glibc for package in recipe.packages.values()] == ["2.17"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_project_that_zig_cannot_make_portable(name: str) -> None:
    assert REFUSED[name] in (why_not(read_project(tree_of(ALL[name]), fallback="x"), "x86_64") or "")


def test_fortran_and_another_machine() -> None:
    fortran = why_not(read_project(tree_of(FORTRAN), fallback="x"), "x86_64") or ""
    assert fortran.startswith("the project contains Fortran (")
    assert fortran.endswith(", but Zig compiles only C and C++")
    other = why_not(read_project(tree_of(ALL["setuptools"]), fallback="x"), "aarch64")
    assert other == "portable wheels are supported only on x86_64, but this machine is aarch64"
