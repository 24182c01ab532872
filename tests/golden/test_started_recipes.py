"""What `init` writes for small projects of each backend, and the defaults that fill it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.package.project.read import read_project
from axletree.package.project.recipe import Choices, render_defaults
from axletree.package.project.start import render_recipe
from axletree.recipe.defaults import Defaults
from axletree.recipe.parse import parse_recipe
from axletree.recipe.toml import decode_toml
from support.projects import ALL, info, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.recipe.model import Recipe


def choices(name: str = "", **more: object) -> Choices:
    torch = {"torches": ("2.13.0",), "gpus": ("cpu",), "worlds": {"cpu": "cpu"}} if name == "torch" else {}
    chosen = {
        "source": (("path", "."),),
        "origin": "the folder gizmo",
        "pythons": ("3.11", "3.12"),
        "programs": frozenset({"ninja"}),
    }
    return Choices(**{**chosen, **torch, **more})  # type: ignore[arg-type]


def rendered(files: Mapping[str, str], chosen: Choices) -> tuple[str, str]:
    """The recipe that somebody starts with, and its defaults."""
    project = read_project(tree_of(files), fallback="x")
    return render_recipe(project, chosen), render_defaults(project, chosen)


def filled(files: Mapping[str, str], chosen: Choices) -> Recipe:
    text, defaults = rendered(files, chosen)
    return parse_recipe(text, filename="x", defaults=Defaults(tables=decode_toml(defaults, "defaults"), text=defaults))


@pytest.mark.parametrize("name", ALL)
def test_recipe(name: str, golden: Callable[[str, str], None]) -> None:
    text, defaults = rendered(ALL[name], choices(name))
    filled(ALL[name], choices(name))
    golden(f"started/{name}.toml", text)
    golden(f"started/{name}.defaults.toml", defaults)


@pytest.mark.parametrize("name", ALL)
def test_a_started_recipe_is_short(name: str) -> None:
    """As long as it must be to say what is to be decided, and what is not known."""
    lines = rendered(ALL[name], choices(name))[0].splitlines()
    assert 8 <= len([line for line in lines if not line.startswith("# not known")]) <= 15


def test_a_gpu_turns_the_other_switches() -> None:
    chosen = choices("torch", pythons=("3.12",), gpus=("cu130",), worlds={"cu130": "cuda"}, programs=frozenset[str]())
    stage = filled(ALL["torch"], chosen).stages["build"]
    assert stage.env == {"FORCE_CUDA": "1"}
    assert "nvcc" in stage.tools
    assert "# not known: which GPUs to compile for" in rendered(ALL["torch"], chosen)[0]


def test_gpus_of_two_backends_are_told_apart_by_overrides() -> None:
    worlds = {"cpu": "cpu", "cu126": "cuda", "cu130": "cuda"}
    recipe = filled(ALL["torch"], choices("torch", gpus=tuple(worlds), worlds=worlds))
    assert recipe.stages["build"].env == {}
    cpu, cuda = recipe.override
    assert (cpu.when, cpu.env, cpu.tools) == ({"gpu": ("cpu",)}, {"FORCE_CPU": "1"}, ())
    assert (cuda.when, cuda.env, cuda.tools) == ({"gpu": ("cu126", "cu130")}, {"FORCE_CUDA": "1"}, ("nvcc",))


def test_an_sdist_tells_its_version_by_itself() -> None:
    sdist = ALL["hatchling"] | {"PKG-INFO": info("gizmo-tools", "1.5")}
    recipe = filled(sdist, choices())
    assert (recipe.version, recipe.stages["build"].env) == ("1.5", {})


def test_hostile_texts_stay_texts() -> None:
    evil = (
        '[project]\nname = "x"\nversion = "1"\ndependencies = ["a{b}; python_version > \'3\'", "q\\n[stages.evil]"]\n'
    )
    for text in rendered({"pyproject.toml": evil}, choices()):
        assert "\n[stages.evil]" not in text
        assert "evil" not in decode_toml(text, "x").get("stages", {})
