"""What is wrong with the source, and with more sources beside it."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from axletree.recipe.addresses import has_login, is_git_address
from axletree.recipe.faults import Fault, glob_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.base import Condition
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe
    from axletree.recipe.source_tables import ExtraSource, Source

KINDS = ("pypi", "url", "git", "path", "wheel")
"""Kinds of source, by their keys."""
_EXTRA_KINDS = ("pypi", "url", "git", "path")
_ADDRESS = re.compile(r"(https?|file)://\S+")
_PROJECT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LOGIN_HINTS = {"git": "store them in git's credential helper or ~/.netrc"}
ONLY_FOR = {"sha256": ("url", "wheel"), "ref": ("git",), "submodules": ("git",), "exclude": ("path",)}
"""Keys of a source -> the kinds that they are for."""
_EXTRA_ONLY_FOR = {**ONLY_FOR, "sha256": ("url",), "version": ("pypi",)}


def source_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of a recipe's sources that hold whatever the variant is."""
    yield from _faults(recipe.source, ("source",), KINDS, ONLY_FOR)
    listed = {name for stage in recipe.stages.values() for name in stage.sources}
    for name, table in recipe.sources.items():
        path: Path = ("sources", name)
        yield from _faults(table, path, _EXTRA_KINDS, _EXTRA_ONLY_FOR)
        yield from _version_faults(table, path)
        if table.into is None and name not in listed:
            message = f"nothing uses source {name!r}: it has no `into`, and no stage lists it in `sources`"
            hint = 'to put it into the recipe\'s source, set into = "FOLDER"'
            yield Fault(path=path, message=message, hint=hint)
    yield from _place_faults(recipe)


def _faults(
    source: Source | ExtraSource, path: Path, kinds: tuple[str, ...], only_for: dict[str, tuple[str, ...]]
) -> Iterator[Fault]:
    yield from glob_faults(source.exclude, (*path, "exclude"))
    given = [kind for kind in kinds if getattr(source, kind) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        yield Fault(path=path, message=f"exactly one of {', '.join(kinds)} is required, found {found}")
        return
    kind = given[0]
    location = getattr(source, kind)
    at = (*path, kind)
    if kind == "pypi" and not _PROJECT.fullmatch(location):
        yield Fault(path=at, message=f"{location!r} is not a valid project name")
    if kind == "url" and not _ADDRESS.fullmatch(location):
        yield Fault(path=at, message="the URL is not valid: it must begin with https://, http:// or file://")
    if kind == "git" and not is_git_address(location):
        message = "the git URL is not supported: it must begin with https:// or file://"
        yield Fault(path=at, message=message)
    elif has_login(location):
        message = "the URL contains a user name or password, which would be stored in locks, keys and records"
        yield Fault(path=at, message=message, hint=_LOGIN_HINTS.get(kind, "put them in ~/.netrc"))
    if source.sha256 is None and (kind == "url" or (kind == "wheel" and "://" in location)):
        yield Fault(path=(*path, "sha256"), message='a source with a URL needs a digest: sha256 = "..."')
    if kind == "git" and source.ref is None:
        yield Fault(path=(*path, "ref"), message="a git source needs a ref (a tag, branch or commit)")
    if source.ref is not None and source.ref.startswith("-"):
        yield Fault(path=(*path, "ref"), message="a ref cannot start with '-'")
    for key, wanted in only_for.items():
        if getattr(source, key) and kind not in wanted:
            yield Fault(
                path=(*path, key), message=f"{key} is only for {' and '.join(wanted)} sources; this is a {kind} source"
            )


def _version_faults(table: ExtraSource, path: Path) -> Iterator[Fault]:
    """What an sdist needs, and only an sdist; and what only an archive has."""
    at = (*path, "version")
    if table.pypi is not None and table.version is None:
        yield Fault(path=at, message="a pypi source needs the version of its sdist")
    if table.version is not None and "{" not in table.version:
        try:
            Version(table.version)
        except InvalidVersion:
            yield Fault(path=at, message=f"{table.version!r} is not a valid version (PEP 440)")
    if table.git is not None and table.unpack is not None:
        yield Fault(path=(*path, "unpack"), message="unpack is only for files; this is a git source")
    if table.strip == 0 and (table.git is not None or table.unpack is False):
        message = "strip is only for archives; " + ("this is a git source" if table.git else "this one is not unpacked")
        yield Fault(path=(*path, "strip"), message=message)


def _place_faults(recipe: Recipe) -> Iterator[Fault]:
    """Two sources of one variant that would be put into the same place, or one into another."""
    placed = [(name, table, table.into) for name, table in recipe.sources.items() if table.into is not None]
    for (name, table, into), (other, further, place) in combinations(placed, 2):
        if _overlap(into, place) and not _exclude_each_other(table.when, further.when):
            same = "the same place as" if into == place else "a place that overlaps that of"
            message = f"source {other!r} would be put into {same} source {name!r}: {into}"
            at: Path = ("sources", other, "into")
            yield Fault(path=at, message=message, hint="give each source a place of its own")
    if recipe.source.wheel is not None and placed:
        message = "the source is a wheel, so no other source can be put into it"
        yield Fault(path=("sources", placed[0][0], "into"), message=message)


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _exclude_each_other(one: Condition, other: Condition) -> bool:
    """Whether no variant matches both conditions, as far as one axis tells."""
    return any(_values(one[axis]).isdisjoint(_values(other[axis])) for axis in one.keys() & other.keys())


def _values(wanted: str | tuple[str, ...]) -> set[str]:
    return {wanted} if isinstance(wanted, str) else set(wanted)
