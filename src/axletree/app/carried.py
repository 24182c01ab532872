"""Files beside a recipe that its stages use: patches, and files of tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.app.recipes import LoadedRecipe, problem_at
from axletree.core.errors import Problem, RecipeError
from axletree.recipe.overlay import written_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.core.values import Digest
    from axletree.store.store import Store


def carried_files(loaded: LoadedRecipe, paths: Iterable[str], store: Store) -> dict[str, Digest]:
    """Put patches and test files into the store, where stages find them by digest.

    Of a folder, all files are taken under the path that the recipe gives it, such as ``tests/a.txt``;
    hidden ones and what Python compiled are not.

    Raises:
        RecipeError: a file cannot be read, or a folder contains no file. It names all of them.
    """
    found: dict[str, Digest] = {}
    problems: list[Problem] = []
    for path in paths:
        place = loaded.file(path)
        where = _named_in(loaded, path)
        try:
            files = dict(_inside(place, path)) if place.is_dir() and where[:1] == ("tests",) else {path: place}
            found |= {name: store.put_bytes(file.read_bytes()) for name, file in files.items()}
        except OSError as error:
            hint = f"paths are relative to the recipe: {place.absolute()}"
            problems.append(problem_at(loaded, where, f"cannot read {written_path(path)}: {error.strerror}", hint=hint))
            continue
        if not files:
            hint = "name a folder with files, or remove this entry"
            problems.append(problem_at(loaded, where, f"the folder {written_path(path)} contains no files", hint=hint))
    if problems:
        raise RecipeError(*problems)
    return found


def _inside(folder: Path, path: str) -> Iterator[tuple[str, Path]]:
    """Path in terms of the recipe, and place, of each file of a folder."""
    for parent, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if _wanted(each)]
        for name in filter(_wanted, files):
            place = Path(parent, name)
            if place.is_file():
                yield f"{path}/{place.relative_to(folder).as_posix()}", place


def _wanted(name: str) -> bool:
    return not name.startswith(".") and name != "__pycache__"


def _named_in(loaded: LoadedRecipe, file: str) -> tuple[str | int, ...]:
    """The key that names a patch or a test's file."""
    for number, patch in enumerate(loaded.recipe.patches):
        if patch.file == file:
            return ("patches", number, "file")
    for name, test in loaded.recipe.tests.items():
        if file in test.files:
            return ("tests", name, "files", test.files.index(file))
    return ()
