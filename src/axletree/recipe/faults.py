"""What is wrong with a recipe, addressed by the path of a key: parsing turns it into a problem with its line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.globs import glob_fault
from axletree.core.near import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Path = tuple[str | int, ...]
"""The way to a value of a TOML document: keys of tables and positions in arrays, ``("override", 0, "when")``."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, at one path."""

    path: Path
    message: str
    """The error, in one sentence without a full stop."""
    hint: str | None = None
    """What to do about it."""
    needs: tuple[Path, ...] = ()
    """Other places that the statement relies on: if one of them is wrong itself, this is only a consequence."""
    absent: tuple[tuple[str, str], ...] = ()
    """Axes, each with a value or pattern that it lacks, where that is what is wrong."""


def glob_faults(patterns: Iterable[str], path: Path) -> Iterator[Fault]:
    """Patterns of files that can match nothing, or not what was meant.

    Args:
        patterns: what a key lists.
        path: the key.
    """
    for place, pattern in enumerate(patterns):
        fault = glob_fault(pattern)
        if fault is not None:
            yield Fault(path=(*path, place), message=f"{pattern!r} {fault}")


def dotted(path: Path) -> str:
    """A path as people write it: ``override[0].when.gpu``; a key that is not bare is quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _BARE.fullmatch(part) else f'"{visible(part)}"'
            text += f".{key}" if text else key
    return text


def related(one: Path, other: Path) -> bool:
    """Whether two paths are the same or one lies inside the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def suggestion(name: str, known: Iterable[str], what: str) -> str | None:
    """A hint for an unknown name: the nearest one, else all of them."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"{what}: {', '.join(names)}" if names else None


def visible(text: str) -> str:
    """Text of a foreign file, fit for a terminal: what is not printable is shown as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
