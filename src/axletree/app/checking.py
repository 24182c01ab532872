"""Check recipes, and print all that is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.app.imports import check_imports, load_imports
from axletree.app.recipes import lacking_problems, load_recipe, load_whole
from axletree.core.errors import AxletreeError, Problem
from axletree.recipe.axes import expand
from axletree.recipe.defaults import comments_of
from axletree.recipe.target import resolve
from axletree.recipe.writing import toml_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.app.recipes import LoadedRecipe


class CheckedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking one recipe; ``problems`` is empty if it is valid."""

    asked: str
    """Name or path as the user gave it."""
    name: str | None = None
    version: str | None = None
    variants: int = 0
    stages: int = 0
    expanded: str | None = None
    """The whole recipe as TOML, with its defaults, where that was asked for."""
    lacking: tuple[Problem, ...] = ()
    """Why its stages are not known yet; empty where they are."""
    problems: tuple[Problem, ...] = ()


class CheckedRecipes(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking recipes: report of ``check``."""

    recipes: tuple[CheckedRecipe, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Those of all recipes."""
        return tuple(problem for each in self.recipes for problem in each.problems)


def check_recipe(name_or_path: str, sets: Sequence[str] = (), *, expand_it: bool = False) -> CheckedRecipe:
    """Read a recipe, changed by ``sets``, and count what it describes, or give all of it; trouble is in the result."""
    try:
        loaded = load_whole(name_or_path, sets) if expand_it else load_recipe(name_or_path, sets)
        if loaded.recipe.recipes and not loaded.lacking:
            check_imports(load_imports(loaded), [resolve(loaded.recipe, each) for each in expand(loaded.recipe)])
    except AxletreeError as error:
        return CheckedRecipe(asked=name_or_path, problems=error.problems)
    recipe = loaded.recipe
    return CheckedRecipe(
        asked=name_or_path,
        name=recipe.name if not loaded.lacking or "name" in loaded.stated.values else recipe.source.pypi,
        version=recipe.version if _has_version(loaded) else None,
        variants=len(expand(recipe)),
        stages=0 if loaded.lacking else len(recipe.stages),
        expanded=_expanded(loaded) if expand_it else None,
        lacking=lacking_problems(loaded),
    )


def _has_version(loaded: LoadedRecipe) -> bool:
    return "version" in loaded.stated.values or not (loaded.lacking or loaded.only_environments)


def _expanded(loaded: LoadedRecipe) -> str:
    """All of a recipe: keys that its defaults give say where they come from."""
    values = loaded.stated.values if loaded.only_environments else loaded.document.values
    if loaded.defaults is None:
        return toml_document(values, {})
    head = f"# {loaded.path.name} with its defaults; comments say where a default comes from.\n"
    return head + toml_document(values, comments_of(loaded.defaults, loaded.stated.values))
