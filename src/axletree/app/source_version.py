"""Whether a source says by itself that it is another version than the recipe's, known as soon as it is pinned."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from axletree.app.stated import expected_of
from axletree.core.errors import ExpectationError, RecipeError
from axletree.execute.agreeing import check_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from axletree.app.recipes import LoadedRecipe
    from axletree.recipe.target import Target


def refuse_other_version(loaded: LoadedRecipe, targets: Iterable[Target], read: Callable[[str], str]) -> None:
    """Compare what is static in ``pyproject.toml`` with the recipe; a build compares the rest, before it compiles.

    Args:
        loaded: the recipe.
        targets: its variants. Those that patch the source are left out: a patch may change its version.
        read: text of a file of the source, empty where there is none.

    Raises:
        RecipeError: the source is called otherwise, or is of another version.
    """
    for target in targets:
        for stage in target.stages:
            own = stage.source and stage.source_from is None and not target.source.patches
            if stage.action == "build" and own:
                text = read(str(PurePosixPath(stage.directory, "pyproject.toml")))
                try:
                    check_project(expected_of(loaded, target, stage.name), text)
                except ExpectationError as error:
                    raise RecipeError(*error.problems) from error
