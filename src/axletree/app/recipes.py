"""Find and read recipes: files of the user, and those that ship with Axletree."""

from __future__ import annotations

import difflib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.app.shipped import recipes_folder
from axletree.core.errors import AxletreeError, HostError, Problem, RecipeError, UsageError
from axletree.recipe import faults
from axletree.recipe.axes import expand
from axletree.recipe.locate import line_of, locate, source_lines
from axletree.recipe.model import Recipe, Source
from axletree.recipe.parse import parse_recipe
from axletree.recipe.properties import DataFile, data_names

if TYPE_CHECKING:
    from axletree.recipe.presets import Preset

_LARGEST = 1 << 20
"""Bytes of a recipe or data file. Real ones have a few thousand; this keeps a wrong file from being read whole."""


class LoadedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe and where it lies. Paths in a recipe are relative to ``path.parent``."""

    recipe: Recipe
    path: Path
    companion: Path
    """Folder for what belongs to the recipe, its locks first of all: beside the file, with its stem. May not exist."""


class CheckedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """What checking one recipe gave; ``problems`` is empty where it is valid."""

    asked: str
    """Name or path as the user gave it."""
    name: str | None = None
    version: str | None = None
    variants: int = 0
    stages: int = 0
    problems: tuple[Problem, ...] = ()


class CheckedRecipes(msgspec.Struct, frozen=True, kw_only=True):
    """What checking recipes gave: report of ``check``."""

    recipes: tuple[CheckedRecipe, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Those of all recipes."""
        return tuple(problem for each in self.recipes for problem in each.problems)


class ShippedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe that ships with Axletree."""

    name: str
    version: str
    summary: str
    variants: int


class ShippedRecipes(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name: report of ``recipes``."""

    recipes: tuple[ShippedRecipe, ...]


def load_recipe(name_or_path: str | Path) -> LoadedRecipe:
    """Read a recipe: a path to a ``.toml`` file, or the name of one that ships with Axletree.

    Raises:
        UsageError: there is no such recipe; the nearest names are given.
        RecipeError: it has faults, all of which are given.
        HostError: the file cannot be read.
    """
    path = _find(name_or_path)
    text = _read(path)
    data = [_data_file(path.parent, name) for name in data_names(text, str(path))]
    recipe = parse_recipe(text, filename=str(path), data=data)
    return LoadedRecipe(recipe=recipe, path=path, companion=path.parent / path.stem)


def _data_file(folder: Path, name: str) -> DataFile:
    """A data file of a recipe, with its content or why it has none."""
    path = folder / name
    try:
        return DataFile(name=name, filename=str(path), text=_read(path))
    except AxletreeError as error:
        problem = error.problems[0]
        where = f" (line {problem.line})" if problem.line is not None else ""
        return DataFile(name=name, filename=str(path), trouble=problem.message.removeprefix("cannot be read: ") + where)


def with_source(loaded: LoadedRecipe, folder: Path) -> LoadedRecipe:
    """The recipe with a folder, such as a checkout of your own, instead of its source; patches still apply.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(
            f"source folder does not exist: {folder}", hint="run `axletree source sync` to create one from the recipe"
        )
    source = Source(path=str(folder.absolute()), exclude=loaded.recipe.source.exclude)
    return msgspec.structs.replace(loaded, recipe=msgspec.structs.replace(loaded.recipe, source=source))


def problem_at(loaded: LoadedRecipe, path: faults.Path, message: str, *, hint: str | None = None) -> Problem:
    """A problem of what a valid recipe asks for, with the place in the file that asks for it."""
    text = _read(loaded.path)
    line = line_of(_places(text), path)
    return Problem(
        message=message,
        file=str(loaded.path),
        line=line,
        key=faults.dotted(path),
        excerpt=source_lines(text)[line - 1].strip() if line is not None else None,
        hint=hint,
    )


@lru_cache(maxsize=4)
def _places(text: str) -> dict[faults.Path, int]:
    return locate(text)


def preset_of(recipe: Recipe, name: str) -> Preset:
    """A preset of a recipe.

    Raises:
        UsageError: it has no such preset; its own are given.
    """
    if name not in recipe.presets:
        hint = (
            faults.suggestion(name, recipe.presets, "its presets")
            or "the recipe has no presets; a data file can add them"
        )
        raise UsageError(f"recipe {recipe.name} has no preset {name!r}", hint=hint)
    return recipe.presets[name]


def list_recipes() -> ShippedRecipes:
    """All recipes that ship with Axletree, by name."""
    loaded = [load_recipe(path) for path in _shipped().values()]
    return ShippedRecipes(
        recipes=tuple(
            ShippedRecipe(
                name=each.path.stem,
                version=each.recipe.version,
                summary=each.recipe.summary,
                variants=len(expand(each.recipe)),
            )
            for each in loaded
        )
    )


def check_recipe(name_or_path: str) -> CheckedRecipe:
    """Read a recipe and count what it describes; trouble is a part of the result."""
    try:
        recipe = load_recipe(name_or_path).recipe
    except AxletreeError as error:
        return CheckedRecipe(asked=name_or_path, problems=error.problems)
    return CheckedRecipe(
        asked=name_or_path,
        name=recipe.name,
        version=recipe.version,
        variants=len(expand(recipe)),
        stages=len(recipe.stages),
    )


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text:
        path = Path(name_or_path)
        if path.is_dir():
            raise UsageError(f"{text} is a folder", hint="specify the recipe's .toml file, not its folder")
        if not path.exists():
            raise UsageError(f"recipe file {text} does not exist", hint=_nearest_file(path))
        return path
    shipped = _shipped()
    if text not in shipped:
        hint = (
            f"`axletree recipes` lists the shipped recipes: {', '.join(shipped)}; to use your own file, "
            "include the .toml suffix"
        )
        near = difflib.get_close_matches(text, shipped, n=1)
        if near:
            hint = f"did you mean {near[0]!r}?"
        elif Path(f"{text}.toml").is_file():
            hint = f"to use the file in this folder, write {text}.toml"
        raise UsageError(f"recipe {text!r} does not exist", hint=hint)
    return shipped[text]


def _nearest_file(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"folder {path.parent} does not exist"
    near = difflib.get_close_matches(path.name, [each.name for each in path.parent.glob("*.toml")], n=1)
    return f"did you mean {path.parent / near[0]}?" if near else None


def _shipped() -> dict[str, Path]:
    """Name -> file."""
    folder = recipes_folder()
    return {path.stem: path for path in sorted(folder.glob("*.toml"))} if folder else {}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise HostError(Problem(message=f"cannot be read: {error.strerror}", file=str(path))) from error
    if len(data) > _LARGEST:
        raise RecipeError(
            Problem(message=f"is larger than {_LARGEST >> 20} MiB, too large for a recipe or its data", file=str(path))
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8: byte 0x{data[error.start]:02x}"
        raise RecipeError(Problem(message=message, file=str(path), line=line)) from error
