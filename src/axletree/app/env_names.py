"""Environments that somebody names: of a file, of a recipe, or those that ship with Axletree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.app.recipes import load_file, load_whole, require_whole
from axletree.app.shipped import shipped_environments
from axletree.core.errors import UsageError
from axletree.core.near import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.app.recipes import LoadedRecipe


def load_environments(asked: str, sets: Sequence[str] = ()) -> LoadedRecipe:
    """Read what has the environments that a command line names.

    Args:
        asked: a path to a ``.toml`` file, or the name of an environment or of a recipe that ships.
        sets: changes of it for this call, ``KEY=VALUE`` each.

    Raises:
        UsageError: there is no such environment, recipe or key.
        RecipeError: the file has faults, all of which are given.
        LockError: it is a recipe whose stages are not locked.
        HostError: the file can't be read.
    """
    shipped = shipped_environments()
    if asked in shipped:
        return require_whole(load_file(shipped[asked], sets, asked=asked, named=True))
    try:
        return load_whole(asked, sets)
    except UsageError as error:
        near = nearest(asked, shipped)
        if near is None:
            raise
        hint = f"the environment {near!r} ships with Axletree"
        raise UsageError(*error.problems[:-1], msgspec.structs.replace(error.problems[-1], hint=hint)) from None
