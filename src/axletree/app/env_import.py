"""Environments of other tools as tables of recipes."""

from __future__ import annotations

import os
import posixpath
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.app.recipe_files import read_text
from axletree.core.errors import Problem, RecipeError, UsageError
from axletree.environment.conda_file import MARK, read_explicit
from axletree.environment.environment_yml import read_environment_yml
from axletree.environment.imported import name_from, recipe_table
from axletree.host.files import file_errors, replace_file
from axletree.recipe.documents import read_document
from axletree.recipe.toml import table_of
from axletree.report.environments import ImportedEnvironment

if TYPE_CHECKING:
    from axletree.environment.imported import Entry, Imported

_WHAT = "files of environments"
_SUPPORTED = "import conda's environment.yml, or a list that `conda list --explicit` printed"


def import_environment(file: Path, *, name: str | None, recipe: Path | None) -> ImportedEnvironment:
    """Read an environment of conda, and add it to a recipe if one is named.

    Args:
        file: ``environment.yml``, or the output of ``conda list --explicit``.
        name: of the environment, instead of the one in the file.
        recipe: file to add the table to; created if it does not exist.

    Raises:
        UsageError: the file is of another kind, or the recipe has such an environment.
        RecipeError: with every problem of the file, or of the recipe.
        HostError: a file can't be read or written.
    """
    if name is not None and name_from(name) != name:
        hint = "use lowercase letters, digits, '.', '_' and '-'"
        raise UsageError(f"{name!r} is not a valid name of an environment", hint=hint)
    if file.suffix in {".toml", ".json", ".txt"} and not _is_explicit(file):
        raise UsageError(Problem(file=str(file), message=f"{file.suffix} files are not supported", hint=_SUPPORTED))
    text = read_text(file, what=_WHAT)
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    read = read_explicit if _has_mark(text) else read_environment_yml
    imported = read(text, file=str(file), name=name, own=own)
    imported = _moved(imported, file.parent, recipe.parent if recipe is not None else Path())
    table = recipe_table(imported, source=file.name)
    if recipe is not None:
        _add(recipe, table, imported.name)
    return ImportedEnvironment(
        file=str(file),
        name=imported.name,
        table=table,
        notes=imported.notes,
        recipe=str(recipe) if recipe is not None else None,
    )


def _is_explicit(file: Path) -> bool:
    return file.suffix == ".txt" and file.is_file() and _has_mark(read_text(file, what=_WHAT))


def _has_mark(text: str) -> bool:
    return MARK in (line.strip() for line in text.splitlines())


def _moved(imported: Imported, source: Path, target: Path) -> Imported:
    """An environment whose paths are relative to the recipe's folder instead of the file's."""
    way = os.path.relpath(source.absolute(), target.absolute())

    def path(text: str) -> str:
        return text if posixpath.isabs(text) else posixpath.normpath(posixpath.join(way, text))

    def channel(entry: Entry) -> Entry:
        if not entry.text.startswith(("./", "../")):
            return entry
        moved = path(entry.text)
        return msgspec.structs.replace(entry, text=moved if moved.startswith("../") else f"./{moved}")

    wanted = imported.requires_from
    return msgspec.structs.replace(
        imported,
        channels=tuple(map(channel, imported.channels)),
        requires_from=None if wanted is None else path(wanted),
    )


def _add(recipe: Path, table: str, name: str) -> None:
    """Write a table behind the others of a recipe."""
    before = read_text(recipe) if recipe.exists() else ""
    document = read_document(before, str(recipe))
    if name in table_of(document.values, "environments"):
        place = document.places.get(("environments", name))
        message = f"the recipe already has an environment called {name!r}"
        raise UsageError(
            Problem(
                file=str(recipe),
                line=place.line if place is not None else None,
                key=f"environments.{name}",
                message=message,
                hint="use a different name: --name NAME",
            )
        )
    after = f"{before.rstrip()}\n\n{table}" if before.strip() else table
    try:
        read_document(after, str(recipe))
    except RecipeError:
        place = document.places.get(("environments",))
        message = "the environments are written in braces, so none can be added"
        hint = "write them as tables: [environments.NAME]"
        line = place.line if place is not None else None
        raise UsageError(Problem(file=str(recipe), line=line, key="environments", message=message, hint=hint)) from None
    with file_errors(recipe, "the recipe cannot be written"):
        replace_file(recipe, after.encode())
