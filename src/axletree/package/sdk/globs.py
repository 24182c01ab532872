"""Globs of paths below a prefix, as TheRock's descriptors and an SDK's manifest write them (a part of Ant's patterns).

``*`` and ``?`` stand for what a name may hold, never for a ``/``. ``**`` is a whole segment and stands for any number
of folders, none included: ``**/cmake/**`` takes ``cmake``, ``cmake/x`` and ``lib/cmake/hip/x``; ``lib/**`` takes
``lib`` itself as well. Every other character stands for itself, brackets too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from axletree.core.trees import is_safe_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WORDS = {"*": "[^/]*", "?": "[^/]"}


def glob_fault(pattern: str) -> str | None:
    """What is wrong with a glob, in words; ``None`` where nothing is."""
    if not is_safe_path(pattern):
        return (
            "is not a glob of paths below the prefix: it cannot start or end with '/', or contain '..', an empty part "
            "or a backslash"
        )
    stuck = next((part for part in pattern.split("/") if "**" in part and part != "**"), None)
    if stuck is not None:
        return f"has '**' inside {stuck!r}: '**' matches whole folders, so write '**/' before it or '/**' after it"
    return None


def glob_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """What says whether a path matches one of several globs, all of which :func:`glob_fault` found right."""
    found = _compiled(tuple(patterns))
    return lambda path: found(path) is not None


@lru_cache(maxsize=1024)
def _compiled(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(map(_expression, patterns)) or "(?!)", re.DOTALL).fullmatch


def _expression(pattern: str) -> str:
    """A glob as a regular expression without groups."""
    parts = pattern.split("/")
    parts = [part for at, part in enumerate(parts) if part != "**" or parts[at - 1 : at] != ["**"]]
    if parts == ["**"]:
        return ".*"
    text = ""
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            text += "(?:/.*)?" if last else "(?:.*/)?"
        else:
            text += "".join(_WORDS.get(piece, re.escape(piece)) for piece in re.split(r"([*?])", part))
            text += "" if last or parts[at + 1 :] == ["**"] else "/"
    return text
