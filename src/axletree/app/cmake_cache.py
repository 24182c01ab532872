"""Look into the cache of a configured CMake tree, change entries of it, and compare it with what is expected."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.cache import (
    CACHE_FILE,
    Cache,
    CacheChange,
    CacheEntry,
    EntryType,
    diff_caches,
    edit_cache,
    parse_cache,
    render_cache,
)
from axletree.buildsystem.cmake.features import Mismatch, check_features
from axletree.buildsystem.cmake.python_switch import PythonFacts, configured_python, find_executable, switch_python
from axletree.core.errors import HostError, IntegrityError, Problem, UsageError
from axletree.host.files import file_errors, replace_file
from axletree.host.pythons import python_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BACKUP = "~"


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """A cache after the edits, or as it would be: report of ``cmake-cache``."""

    file: str
    entries: tuple[CacheEntry, ...]
    """The requested entries, by name; without a request, all but CMake's internal ones."""
    unknown: tuple[str, ...]
    """Names and patterns that match no entry."""
    changes: tuple[CacheChange, ...]
    expected: int
    """Number of entries that were compared with the expected values."""
    mismatches: tuple[Mismatch, ...]
    logged: bool
    """Whether the configure log was read too."""
    written: bool
    backup: str | None
    """Path of the backup, if the cache was changed."""


def work_on_cache(
    place: Path,
    changes: Mapping[str, str | tuple[EntryType, str] | None],
    *,
    names: Sequence[str] = (),
    python: Path | None = None,
    expected: Mapping[str, str] | None = None,
    log: Path | None = None,
    dry_run: bool = False,
) -> CacheReport:
    """Read a cache, edit it, and check it.

    Args:
        place: the cache, or the build folder that it lies in.
        changes: as for :func:`~axletree.buildsystem.cmake.cache.edit_cache`.
        names: of the entries to report, or patterns of them; without any, all but CMake's internal ones.
        python: interpreter that the tree is pointed at.
        expected: CMake variable -> value that it must have.
        log: what the last configure printed: summaries and messages in there count for expectations.
        dry_run: write nothing.

    Raises:
        UsageError: a change that can't be made, or no cache there.
        IntegrityError: the cache is damaged, or would be left half of one Python and half of another.
        HostError: a file can't be read or written.
    """
    path = place / CACHE_FILE if place.is_dir() else place
    if not path.exists():
        hint = "specify the build folder that CMake configured"
        raise UsageError(Problem(message=f"no {CACHE_FILE} found", file=str(place), hint=hint))
    text = _read(path)
    lines = _read(log).splitlines() if log is not None else []
    before = parse_cache(text, file=str(path))
    cache = edit_cache(before, changes, file=str(path)) if changes else before
    if python is not None:
        cache = _switched(cache, python, path)
    differences = diff_caches(before, cache)
    written = bool(differences) and not dry_run
    backup = path.with_name(path.name + _BACKUP)
    if written:
        _write(backup, text, like=path)
        _write(path, render_cache(cache), like=path)
    return CacheReport(
        file=str(path),
        entries=_entries(cache, names),
        unknown=tuple(name for name in names if not _entries(cache, (name,))),
        changes=differences,
        expected=len(expected or {}),
        mismatches=check_features(expected or {}, cache, lines),
        logged=log is not None,
        written=written,
        backup=str(backup) if written else None,
    )


def _entries(cache: Cache, names: Sequence[str]) -> tuple[CacheEntry, ...]:
    return tuple(
        entry
        for name, entry in sorted(cache.entries.items())
        if any(fnmatch.fnmatchcase(name, each) for each in names)
        or (not names and entry.type not in {"INTERNAL", "STATIC"})
    )


def _switched(cache: Cache, python: Path, path: Path) -> Cache:
    """The cache for another interpreter, whose environment has what the old one's had."""
    old = configured_python(cache)
    if old is None:
        executable = find_executable(cache)
        if executable is None:
            raise UsageError(Problem(message="the build folder was configured without Python", file=str(path)))
        old = _facts_of_old(executable)
    new = python_facts(python)
    switched = edit_cache(cache, switch_python(cache, old, new, file=str(path)), file=str(path))
    problems = [
        Problem(
            message=f"the entry would change from {change.old} to {change.new}, which does not exist",
            file=str(path),
            line=switched.entries[change.name].line,
            key=change.name,
            hint=f"install the missing file for {new.executable}, or remove the entry with --unset",
        )
        for change in diff_caches(cache, switched)
        if change.old is not None
        and change.new is not None
        and change.type in {"PATH", "FILEPATH"}
        and Path(change.old).is_absolute()
        and not Path(change.new).exists()
    ]
    if problems:
        raise IntegrityError(*problems)
    return switched


def _facts_of_old(executable: str) -> PythonFacts:
    try:
        return python_facts(Path(executable))
    except HostError as error:
        hint = (
            "the build folder was configured for this interpreter; if it no longer exists, configure the folder again"
        )
        raise HostError(*error.problems, hint=hint) from error


def _write(path: Path, text: str, *, like: Path) -> None:
    with file_errors(path, "the file cannot be written"):
        replace_file(path, text.encode("utf-8", "surrogateescape"), mode=like.stat().st_mode & 0o777)


def _read(path: Path) -> str:
    with file_errors(path):
        return path.read_bytes().decode("utf-8", "surrogateescape")
