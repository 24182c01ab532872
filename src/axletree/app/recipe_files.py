"""The files of recipes: those of the user, and those that ship with Axletree."""

from __future__ import annotations

import os
from pathlib import Path

from axletree.app.shipped import recipes_folder, shipped_environments
from axletree.core.errors import HostError, Problem, RecipeError, UsageError
from axletree.core.near import nearest
from axletree.recipe import faults
from axletree.recipe.overlay import SHIPPED, is_file

_LARGEST = 1 << 20
"""Bytes of a recipe or data file. Real ones have a few thousand; this keeps a wrong file from being read whole."""


def find_recipe(name_or_path: str | Path) -> Path:
    """The file of a recipe; raises what :func:`load_recipe` raises where there is none."""
    text = str(name_or_path)
    if not is_name(name_or_path):
        path = Path(name_or_path)
        if path.is_dir():
            raise UsageError(f"{text} is a folder", hint="specify the recipe's .toml file, not its folder")
        if not path.exists():
            raise UsageError(f"recipe file {text} does not exist", hint=_nearest_file(path))
        return path
    shipped = shipped_recipes()
    if text not in shipped:
        hint = (
            f"`axletree recipes` lists the shipped recipes: {', '.join(shipped)}; to use your own file, "
            "include the .toml suffix"
        )
        near = nearest(text, shipped)
        if text in shipped_environments():
            message = f"{text!r} is an environment, not a recipe, so there is nothing to build"
            raise UsageError(message, hint=f"create it: axletree env create {text}")
        if near:
            hint = f"did you mean {near!r}?"
        elif Path(f"{text}.toml").is_file():
            hint = f"to use the file in this folder, write {text}.toml"
        raise UsageError(f"recipe {text!r} does not exist", hint=hint)
    return shipped[text]


def is_name(name_or_path: str | Path) -> bool:
    """Whether it is the name of a recipe that ships with Axletree, not a path."""
    text = str(name_or_path)
    return not (isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text)


def named_recipe(name: str, folder: Path) -> tuple[Path | None, tuple[str, str | None] | None]:
    """The file of a recipe that another names: one that ships, or a path relative to ``folder``.

    Returns:
        The file, which exists, or why there is none, with a hint.
    """
    if not is_file(name):
        place = shipped_recipes().get(name)
        if place is not None:
            return place, None
        hint = faults.suggestion(name, shipped_recipes(), "shipped recipes")
        if (folder / f"{name}.toml").is_file():
            hint = f"for the file in this folder, write {name}.toml"
        return None, (f"no recipe named {name!r} ships with Axletree", hint)
    place = Path(os.path.normpath(file_beside(folder, name)))
    return place, None if place.is_file() else (f"recipe file {place} does not exist", _nearest_file(place))


def file_beside(folder: Path, name: str) -> Path:
    """A file that a recipe names: in its folder, or beside a recipe that ships."""
    head, _, rest = name.partition("/")
    shipped = recipes_folder() if head == SHIPPED else None
    return folder / name if shipped is None else shipped / rest


def shipped_recipes() -> dict[str, Path]:
    """Files of the recipes that ship with Axletree, by name."""
    folder = recipes_folder()
    return {path.stem: path for path in sorted(folder.glob("*.toml"))} if folder else {}


def _nearest_file(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"folder {path.parent} does not exist"
    near = nearest(path.stem, (each.stem for each in path.parent.glob("*.toml")))
    return f"did you mean {path.parent / near}.toml?" if near else None


def read_text(path: Path, *, what: str = "recipes and their data files") -> str:
    """The text of a file that people write.

    Args:
        path: the file.
        what: what such files are; the message about one that is too large names them.

    Raises:
        HostError: it can't be read.
        RecipeError: it is too large, or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise HostError(Problem(message=f"the file cannot be read: {error.strerror}", file=str(path))) from error
    if len(data) > _LARGEST:
        most = f"{_LARGEST >> 20} MiB"
        message = f"the file is larger than {most}, the limit for {what}"
        raise RecipeError(Problem(message=message, file=str(path)))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the file is not UTF-8: byte 0x{data[error.start]:02x}"
        raise RecipeError(Problem(message=message, file=str(path), line=line)) from error
