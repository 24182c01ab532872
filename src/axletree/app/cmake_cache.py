"""Look into the cache of a configured CMake tree, change entries of it, and compare it with what is expected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.cache import (
    Cache,
    Change,
    EntryType,
    diff_caches,
    edit_cache,
    parse_cache,
    render_cache,
)
from axletree.buildsystem.cmake.features import Mismatch, check_features
from axletree.buildsystem.cmake.python_switch import find_executable, switch_python
from axletree.core.errors import HostError, Problem, UsageError
from axletree.host.files import replace_file
from axletree.host.pythons import python_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_FILE = "CMakeCache.txt"


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """A cache as it is now, or would be."""

    file: str
    cache: Cache
    changes: tuple[Change, ...]
    expected: int
    """How many entries were compared with what is expected."""
    mismatches: tuple[Mismatch, ...]
    written: bool


def work_on_cache(
    place: Path,
    changes: Mapping[str, str | tuple[EntryType, str] | None],
    *,
    python: Path | None = None,
    expected: Mapping[str, str] | None = None,
    log: Path | None = None,
    dry_run: bool = False,
) -> CacheReport:
    """Read a cache, edit it, and check it.

    Args:
        place: the cache, or the build folder that it lies in.
        changes: as for :func:`~axletree.buildsystem.cmake.cache.edit_cache`.
        python: interpreter that the tree is pointed at.
        expected: CMake variable -> value that it must have.
        log: what the last configure printed: summaries and messages in there count for expectations.
        dry_run: write nothing.

    Raises:
        UsageError: a change that can't be made.
        IntegrityError: the cache is damaged, or would be left half of one Python and half of another.
        HostError: a file can't be read or written.
    """
    path = place / CACHE_FILE if place.is_dir() else place
    text = _read(path)
    before = parse_cache(text, file=str(path))
    cache = edit_cache(before, changes, file=str(path)) if changes else before
    if python is not None:
        cache = edit_cache(cache, _switch(cache, python, path), file=str(path))
    differences = diff_caches(before, cache)
    written = bool(differences) and not dry_run
    if written:
        try:
            replace_file(path, render_cache(cache).encode(), mode=path.stat().st_mode & 0o777)
        except OSError as error:
            raise HostError(Problem(message=f"cannot be written: {error.strerror}", file=str(path))) from error
    lines = _read(log).splitlines() if log is not None else []
    return CacheReport(
        file=str(path),
        cache=cache,
        changes=differences,
        expected=len(expected or {}),
        mismatches=check_features(expected or {}, cache, lines),
        written=written,
    )


def _switch(cache: Cache, python: Path, path: Path) -> dict[str, str | None]:
    executable = find_executable(cache)
    if executable is None:
        problem = Problem(message="the tree was not configured with a Python", file=str(path))
        raise UsageError(problem)
    return switch_python(cache, python_facts(Path(executable)), python_facts(python), file=str(path))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        hint = "name a CMakeCache.txt, or the folder that CMake configured"
        raise HostError(Problem(message=f"cannot be read: {error.strerror}", file=str(path), hint=hint)) from error
