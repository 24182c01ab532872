"""The recipes that `init` writes for small projects of each backend: valid, and what their authors would read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.package.project.read import read_project
from axletree.package.project.recipe import Choices, render_recipe
from axletree.recipe.parse import parse_recipe
from support.projects import ALL, info, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable


def choices(name: str) -> Choices:
    return Choices(
        source=(("path", "."),),
        origin="the folder gizmo",
        pythons=("3.11", "3.12"),
        torch="2.13.0" if name == "torch" else None,
        programs=frozenset({"ninja"}),
    )


@pytest.mark.parametrize("name", ALL)
def test_recipe(name: str, golden: Callable[[str, str], None]) -> None:
    text = render_recipe(read_project(tree_of(ALL[name]), fallback="x"), choices(name))
    parse_recipe(text, filename=name)
    golden(f"started/{name}.toml", text)


def test_a_gpu_turns_the_other_switches() -> None:
    project = read_project(tree_of(ALL["torch"]), fallback="x")
    text = render_recipe(
        project,
        Choices(source=(("path", "."),), origin="x", pythons=("3.12",), torch="2.13.0", gpu="cu130", world="cuda"),
    )
    recipe = parse_recipe(text, filename="x")
    assert recipe.stages["build"].env == {"FORCE_CUDA": "1"}
    assert "nvcc" in recipe.stages["build"].tools
    assert "# not known: for which GPUs" in text


def test_an_sdist_tells_its_version_by_itself() -> None:
    sdist = ALL["hatchling"] | {"PKG-INFO": info("gizmo-tools", "1.5")}
    text = render_recipe(read_project(tree_of(sdist), fallback="x"), choices("x"))
    recipe = parse_recipe(text, filename="x")
    assert (recipe.version, recipe.stages["build"].env) == ("1.5", {})


def test_a_stage_finds_the_rust_of_rustup() -> None:
    found = read_project(tree_of(ALL["maturin"]), fallback="x")
    text = render_recipe(
        found, Choices(source=(("path", "."),), origin="x", pythons=("3.12",), rustup="/home/me/.rustup")
    )
    stage = parse_recipe(text, filename="x").stages["build"]
    assert (stage.env, stage.tools) == ({"RUSTUP_HOME": "/home/me/.rustup"}, ("cargo", "rustc"))


def test_hostile_texts_stay_texts() -> None:
    evil = (
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["a{b}; python_version > \'3\'", "q\\n[stages.evil]"]\n'
    )
    text = render_recipe(read_project(tree_of({"pyproject.toml": evil}), fallback="x"), choices("x"))
    assert "\n[stages.evil]" not in text
