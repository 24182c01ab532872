"""Patterns of paths, the same for every key of a recipe, a manifest or a rules file that selects files.

A pattern is compared with the whole path, from the root of the tree. What each sign means is in :data:`EXAMPLES`, which
is both a test and a section of the reference. The standard library has no such dialect: in ``fnmatch`` a ``*`` crosses
``/``, and ``pathlib`` has known ``**`` only since Python 3.13.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from axletree.core.trees import is_safe_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ALTERNATIVES = re.compile(r"\{[^{}]*,[^{}]*\}")
_SIGN = re.compile(r"\[!?+.[^\]]*\]|.", re.DOTALL)
"""A set of characters in brackets, or one character."""
_RANGE = re.compile(r".-.|.", re.DOTALL)
_FOLDERS = "(?:[^/]+/)*?"


class Example(NamedTuple):
    """A pattern, what it means, and paths that it takes and leaves."""

    pattern: str
    meaning: str
    takes: tuple[str, ...]
    leaves: tuple[str, ...]


EXAMPLES = (
    Example("README.md", "one file, at the root", ("README.md",), ("docs/README.md",)),
    Example("*.so", "`*`: any characters in a name", ("a.so", ".so"), ("lib/a.so", "a.so.1")),
    Example("**/*.so", "`**/`: in any folder, or at the root", ("a.so", "lib/a.so", "x/y/a.so"), ("a.so/x",)),
    Example("lib/*", "files in `lib`, but not in its subfolders", ("lib/a", "lib/.a"), ("lib/x/a", "lib", "x/lib/a")),
    Example("lib/**", "`/**`: `lib` and everything below it", ("lib", "lib/a", "lib/x/y"), ("lib64/a", "x/lib/a")),
    Example("**/cmake/**", "the same for folders anywhere", ("cmake", "lib/cmake/hip/a"), ("cmakes/a", "xcmake/a")),
    Example("lib/**/a", "any number of folders between, or none", ("lib/a", "lib/x/y/a"), ("lib/xa", "lib/a/b")),
    Example("**", "everything", ("a", "x/y/a"), ()),
    Example("lib?.so", "`?`: one character in a name", ("libz.so",), ("lib.so", "libxy.so", "lib/.so")),
    Example("lib[a-cz].so", "`[...]`: one of these characters", ("libb.so", "libz.so"), ("libd.so", "lib-.so")),
    Example("lib[!a-c].so", "`[!...]`: one character other than these", ("libd.so",), ("libb.so", "lib.so", "lib/.so")),
    Example("a[[]1][*].c", "in brackets, `[`, `*` and `?` are literal", ("a[1]*.c",), ("a1*.c", "a[1]x.c")),
    Example("a.(x)+{y}", "all other characters are literal", ("a.(x)+{y}",), ("abxxy",)),
)  # fmt: skip
"""One for each thing that a pattern can say."""


def glob_fault(pattern: str) -> str | None:
    """What is wrong with a pattern, to be said after it; ``None`` where nothing is."""
    if pattern.startswith("/"):
        return "starts with '/', but patterns are relative to the root of the tree"
    if pattern.endswith("/"):
        return "ends with '/': write '/**' for a folder and everything in it"
    if not is_safe_path(pattern):
        return "cannot match a path: paths have no empty parts, '.', '..' or backslashes"
    for part in pattern.split("/"):
        if "**" in part and part != "**":
            return f"has '**' in {part!r}: '**' matches whole folders; put a '/' before and after it"
        signs = _SIGN.findall(part)
        if "[" in signs:
            return f"has an unclosed '[' in {part!r}: write '[[]' for a literal '['"
        if (empty := next((each for sign in signs for each in _ranges(sign) if each[0] > each[-1]), None)) is not None:
            return f"has the empty range {empty!r} in {part!r}"
    if _ALTERNATIVES.search(pattern):
        return "has alternatives in braces, which are not supported: write one pattern for each"
    return None


def glob_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """What says whether a path matches one of several patterns, in which :func:`glob_fault` found nothing."""
    found = _compiled(tuple(patterns))
    return lambda path: found(path) is not None


def glob_expression(pattern: str) -> str:
    """A pattern as a regular expression without groups that are counted, for the whole path and with ``re.DOTALL``.

    Matching takes at most as many steps as the pattern has signs times the characters of the path: what stands between
    two ``*``, or two ``**``, is found once (``(?>...)`` is never entered again), as its first place is the best one.
    """
    first, *others = _runs(pattern.split("/"))
    start = "/".join(map(_name, first))
    if not others:
        return start
    end = ""
    if not others[-1]:
        others.pop()
        end = "(?:/.*)?"
    if not others:  # lib/** takes lib itself
        return f"{start}{end}" if first else ".*"
    *between, last = ("/".join(map(_name, run)) for run in others)
    start += "/" if first else ""
    return start + "".join(f"(?>{_FOLDERS}{run}/)" for run in between) + f"{_FOLDERS}{last}{end}"


@lru_cache(maxsize=1024)
def _compiled(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    return re.compile("|".join(map(glob_expression, patterns)) or "(?!)", re.DOTALL).fullmatch


def _runs(parts: Sequence[str]) -> list[list[str]]:
    """The names before, between and after each ``**``; only the first and the last run can be empty."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part != "**":
            runs[-1].append(part)
        elif len(runs) == 1 or runs[-1]:
            runs.append([])
    return runs


def _name(part: str) -> str:
    """The expression of a name, from what stands before, between and after each ``*``."""
    texts = [""]
    for sign in _SIGN.findall(part):
        if sign == "*":
            texts.append("")
        else:
            texts[-1] += _character(sign)
    first, *others = texts
    if not others:
        return first
    *between, last = others
    return first + "".join(f"(?>[^/]*?{text})" for text in between) + f"[^/]*{last}"


def _character(sign: str) -> str:
    if sign == "?":
        return "[^/]"
    if len(sign) == 1:
        return re.escape(sign)
    inside = "".join(f"{re.escape(each[0])}-{re.escape(each[-1])}" for each in _ranges(sign))
    return f"(?!/)[{'^' if sign[1] == '!' else ''}{inside}]"


def _ranges(sign: str) -> list[str]:
    """What a set in brackets lists: characters, and ranges such as ``a-z``."""
    return _RANGE.findall(sign[2 if sign[1] == "!" else 1 : -1]) if len(sign) > 1 else []
