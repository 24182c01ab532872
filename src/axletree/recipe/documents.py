"""A recipe as a document: its values, and where each of them was written.

A recipe may be made of several texts: the file, the recipes that it extends, and what ``--set`` says. They become one
document, which is parsed as if it had been written as one file; each value keeps its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import Problem
from axletree.recipe.faults import Path, dotted
from axletree.recipe.locate import locate, source_lines
from axletree.recipe.toml import decode_toml, excerpt_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.recipe.faults import Fault


class Place(msgspec.Struct, frozen=True):
    """Where a value was written."""

    file: str
    """The file as messages name it, or the option ``--set KEY``."""
    line: int | None = None
    """``None`` for an option."""
    path: Path | None = None
    """The key that an option sets; ``None`` for a file."""
    there: Path | None = None
    """Its path in the file; ``None`` if it is the same as in the document."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Values of a recipe with their places. Nothing in it is changed: what changes it makes a new one."""

    filename: str
    """The recipe's own file, as messages name it."""
    values: dict[str, Any] = {}
    places: dict[Path, Place] = {}
    texts: dict[str, str] = {}
    """File -> its text, of all files that it is made of."""
    dropped: dict[str, tuple[str, ...]] = {}
    """Axis -> values that it has in a base and no more: conditions on them are no mistakes."""
    asked: tuple[Path, ...] = ()
    """Properties of axis values that ``--set`` names, which something must say already, and axes that it adds.

    Something in the recipe must read both.
    """


def read_document(text: str, filename: str) -> Document:
    """The document of one text.

    Raises:
        RecipeError: it is no TOML; with the line where reading it stopped.
    """
    values = decode_toml(text, filename)
    places = {path: Place(filename, line) for path, line in locate(text).items()}
    return Document(filename=filename, values=values, places=places, texts={filename: text})


def place_of(document: Document, path: Path) -> Place:
    """Where a value was written; of the innermost table around it where it was not written down itself."""
    return _place_around(document, path)[0]


def _place_around(document: Document, path: Path) -> tuple[Place, Path]:
    """Where the innermost part of a path was written that was, and the path in the file."""
    for size in range(len(path), 0, -1):
        place = document.places.get(path[:size])
        if place is not None:
            return place, path if place.there is None else (*place.there, *path[size:])
    return Place(document.filename), path


def problem_of(document: Document, fault: Fault) -> Problem:
    """A fault with the place that it is about."""
    place, path = _place_around(document, fault.path)
    text = document.texts.get(place.file)
    return Problem(
        message=shown(fault.message),
        file=place.file,
        line=place.line,
        key=None if place.path == fault.path else dotted(path),
        excerpt=None if text is None else excerpt_of(source_lines(text), place.line),
        hint=shown(fault.hint) if fault.hint is not None else None,
    )


def problems_of(document: Document, faults: Iterable[Fault]) -> list[Problem]:
    """Faults with their places: options last, the others in the order of the files and their lines."""
    order = {path: number for number, path in enumerate(document.places)}
    files = {file: number for number, file in enumerate(document.texts)}

    def rank(fault: Fault) -> tuple[int, int, int]:
        place = place_of(document, fault.path)
        return files.get(place.file, len(files)), place.line or 0, order.get(fault.path, -1)

    found = sorted(dict.fromkeys(faults), key=rank)
    return list(dict.fromkeys(problem_of(document, fault) for fault in found))
