"""The folder of an environment: one is made in the place of another, and neither is lost."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from axletree.core.errors import Problem, UsageError
from axletree.disk import remove_tree
from axletree.environment.description import FILE, PREFIX
from axletree.host.files import file_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAKING = ".axletree-making"
"""File that is there while an environment is made: the folder is ours, and not whole."""
_BEFORE = ".axletree-before"
"""Folder for the parts of an environment that is being replaced."""
_PARTS = (PREFIX, "links", "headers")


@contextmanager
def claimed(place: Path) -> Iterator[None]:
    """Have the folder for ourselves. An environment that we made there before is back if the new one can't be made.

    What is installed can't be moved, so the new one must be made in its place, and the old one waits beside it. Where a
    kill came between, the next call puts the old one back before it begins.
    """
    if ":" in str(place):
        hint = "choose a folder without a colon in its path"
        raise UsageError(
            Problem(
                file=str(place), message="the path contains a colon, which separates the entries of PATH", hint=hint
            )
        )
    if place.exists() and not place.is_dir():
        raise UsageError(Problem(file=str(place), message="the path is a file, not a folder"))
    if place.is_dir() and any(place.iterdir()) and not any((place / name).exists() for name in (FILE, _MAKING)):
        hint = "choose a different folder, or remove this folder"
        raise UsageError(
            Problem(file=str(place), message="the folder was not created by `axletree env create`", hint=hint)
        )
    before = place / _BEFORE
    with file_errors(place, "the folder cannot be created"):
        place.mkdir(parents=True, exist_ok=True)
        (place / _MAKING).touch()
        _put_back(place)
        before.mkdir()
        for name in (FILE, *_PARTS):
            if (place / name).exists():
                (place / name).rename(before / name)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            _put_back(place)
            (place / _MAKING).unlink()
        raise
    (before / FILE).unlink(missing_ok=True)
    remove_tree(before)
    (place / _MAKING).unlink()


def _put_back(place: Path) -> None:
    """Undo what was begun in a folder: the environment that was there before is there again, or none.

    Its description goes first and comes back last: while it lies among what was put aside, that is what is wanted.
    """
    before = place / _BEFORE
    aside = (before / FILE).exists()
    for name in _PARTS:
        if aside and (before / name).exists():
            remove_tree(place / name)
            (before / name).rename(place / name)
        elif not aside and not (place / FILE).exists():  # of one that never was complete
            remove_tree(place / name)
    if aside:
        (before / FILE).replace(place / FILE)
    remove_tree(before)
