"""Small recipes for tests, as text that a test can change, and as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import Problem, RecipeError
from axletree.recipe.axes import expand
from axletree.recipe.defaults import DEFAULTS_LOCK, parse_defaults
from axletree.recipe.parse import parse_recipe
from axletree.recipe.target import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.recipe.defaults import Defaults
    from axletree.recipe.model import Recipe
    from axletree.recipe.target import Target

SMALL = """\
name = "small"
version = "1.0"
source = { path = "src" }

[axes]
python = ["3.11", "3.12"]
gpu = ["cpu", "cu130"]

[environments.build]
axes = ["python"]
requires = ["setuptools"]

[stages.lib]
action = "run"
axes = ["gpu"]
commands = ["make GPU={gpu} DESTDIR=$AXLETREE_OUT"]

[stages.bind]
action = "build"
axes = ["python", "gpu"]
environment = "build"
inputs = ["lib"]

[packages.small-lib]
from = "lib"
local = "{gpu}"

[packages.small]
from = "bind"
local = "{gpu}"
requires = ["small-lib=={version}+{gpu}"]

[tests.smoke]
packages = ["small", "small-lib"]
environment = "build"
imports = ["small"]
"""
"""One library for all Pythons, bound to each of them."""


def recipe_of(text: str = SMALL) -> Recipe:
    """The recipe of a text."""
    return parse_recipe(text, filename="recipe.toml")


def shipped_defaults(path: Path) -> Defaults | None:
    """The defaults of a recipe that ships; none where it states its stages."""
    lock = path.parent / path.stem / DEFAULTS_LOCK
    return parse_defaults(lock.read_text(encoding="utf-8"), filename=lock.name) if lock.exists() else None


def problems_of(text: str) -> tuple[Problem, ...]:
    """What is wrong with a text; nothing for a valid recipe."""
    try:
        parse_recipe(text, filename="recipe.toml")
    except RecipeError as error:
        return error.problems
    return ()


def targets_of(text: str = SMALL) -> dict[str, Target]:
    """The targets of a text by the ids of their variants."""
    recipe = recipe_of(text)
    return {variant.id: resolve(recipe, variant) for variant in expand(recipe)}
