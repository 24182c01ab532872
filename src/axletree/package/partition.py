"""The partition of a tree: each file in exactly one package, or explicitly in none.

Two ways to say it: packages that each claim files, where two claims on one file are an error (:func:`partition`), and
an ordered list in which the first claim wins (:func:`first_claims`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError
from axletree.core.globs import glob_expression, glob_matcher
from axletree.core.units import some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What is claimed of a tree, by patterns (:mod:`axletree.core.globs`)."""

    files: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    """Of those, what it does not take; in :func:`partition`, what then nobody takes is dropped on purpose."""


def partition(paths: Iterable[str], claims: Mapping[str, Claim]) -> dict[str, tuple[str, ...]]:
    """Package -> its paths, in the order of ``paths``.

    Raises:
        IntegrityError: files that two packages claim, or that nobody claims or excludes; all packages and the first
            paths are named.
    """
    parts: dict[str, list[str]] = {name: [] for name in claims}
    disputed: dict[tuple[str, ...], list[str]] = {}
    orphans: list[str] = []
    dropped = glob_matcher([pattern for claim in claims.values() for pattern in claim.exclude])
    for path in paths:
        owners = tuple(name for name, claim in claims.items() if _takes(claim, path))
        if len(owners) == 1:
            parts[owners[0]].append(path)
        elif owners:
            disputed.setdefault(owners, []).append(path)
        elif not dropped(path):
            orphans.append(path)
    problems = [
        f"packages {' and '.join(owners)} claim the same files: {some_of(found)}" for owners, found in disputed.items()
    ]
    if orphans:
        problems.append(f"no package claims {some_of(orphans)}")
    if problems:
        raise IntegrityError(
            *problems,
            hint="change `files` or `exclude` in the packages so that each file belongs to exactly one package",
        )
    return {name: tuple(found) for name, found in parts.items()}


def first_claims(paths: Iterable[str], claims: Sequence[Claim]) -> tuple[int | None, ...]:
    """For each path the position of the first claim that takes it; ``None`` where none does.

    All claims become one regular expression: a wheel has ten thousands of files, and thirty patterns tried one by one
    for each of them cost more than copying it.
    """
    match = re.compile("|".join(f"({_claim(claim)})" for claim in claims) or "(?!)", re.DOTALL).match
    return tuple(found.lastindex - 1 if (found := match(path)) and found.lastindex else None for path in paths)


def _takes(claim: Claim, path: str) -> bool:
    return _compiled(claim).match(path) is not None


@lru_cache(maxsize=4096)
def _compiled(claim: Claim) -> re.Pattern[str]:
    return re.compile(_claim(claim), re.DOTALL)


def _claim(claim: Claim) -> str:
    """A claim as a regular expression that ends where the path ends."""
    files = "|".join(map(glob_expression, claim.files)) or "(?!)"
    exclude = "|".join(map(glob_expression, claim.exclude)) or "(?!)"
    return rf"(?!(?:{exclude})\Z)(?:{files})\Z"
