"""The partition of a tree: each file in exactly one package, or explicitly in none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHOWN = 8


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a package claims of a tree, by glob patterns: ``*`` stays inside a folder, ``**`` does not."""

    files: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    """Of those, what it does not take; what then nobody takes is dropped on purpose."""


def partition(paths: Iterable[str], claims: Mapping[str, Claim]) -> dict[str, tuple[str, ...]]:
    """Package -> its paths, in the order of ``paths``.

    Raises:
        IntegrityError: files that two packages claim, or that nobody claims or excludes; all packages and the first
            paths are named.
    """
    parts: dict[str, list[str]] = {name: [] for name in claims}
    disputed: dict[tuple[str, ...], list[str]] = {}
    orphans: list[str] = []
    for path in paths:
        owners = tuple(name for name, claim in claims.items() if _takes(claim, path))
        if len(owners) == 1:
            parts[owners[0]].append(path)
        elif owners:
            disputed.setdefault(owners, []).append(path)
        elif not any(_matches(claim.exclude, path) for claim in claims.values()):
            orphans.append(path)
    problems = [f"claimed by {' and '.join(owners)}: {_some(found)}" for owners, found in disputed.items()]
    if orphans:
        problems.append(f"belongs to no package: {_some(orphans)}")
    if problems:
        raise IntegrityError(*problems, hint="change files and exclude of the packages so that each file has one place")
    return {name: tuple(found) for name, found in parts.items()}


def _takes(claim: Claim, path: str) -> bool:
    return _matches(claim.files, path) and not _matches(claim.exclude, path)


def _matches(patterns: Iterable[str], path: str) -> bool:
    return any(_compiled(pattern).fullmatch(path) for pattern in patterns)


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(words.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)


def _some(paths: list[str]) -> str:
    more = len(paths) - _SHOWN
    return ", ".join(paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
