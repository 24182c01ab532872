"""What can be had: the versions of packages in a conda channel's index, or in a package index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.version import InvalidVersion, Version

from axletree.core.errors import IntegrityError, Problem
from axletree.package.drift.names import look_up, own_version
from axletree.package.drift.ranges import conda_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.package.drift.names import DependencyTable, Kind


class Releases(msgspec.Struct, frozen=True, kw_only=True):
    """The releases of one dependency that can be had; pre-releases are left out."""

    dependency: str
    file: str
    versions: tuple[tuple[Version, str], ...]
    """In the order of versions, each as it is written there."""


class _Line(msgspec.Struct):
    name: str
    version: str
    timestamp: int = 0
    """Milliseconds (older tools: seconds) since 1970; 0 where it is not told."""


class _Repodata(msgspec.Struct):
    packages: dict[str, _Line] = {}
    conda: dict[str, _Line] = msgspec.field(name="packages.conda", default={})
    removed: list[str] = []


_SECONDS = 100_000_000_000  # a time in milliseconds is larger than this from 1973 on


def of_repodata(
    data: bytes | memoryview, wanted: Iterable[str], *, file: str, table: DependencyTable, before: float | None = None
) -> tuple[Releases, ...]:
    """Versions of dependencies in a channel's ``repodata.json`` (CEP 36).

    Args:
        data: the file.
        wanted: dependencies; others are not looked at closely.
        file: its name.
        table: what dependencies are called.
        before: seconds since 1970; only what was there by then. A line that has no time is left out.

    Raises:
        IntegrityError: it is no such index.
    """
    try:
        index = msgspec.json.decode(data, type=_Repodata)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityError(
            Problem(file=file, message=f"the file is not a valid conda channel index: {error}")
        ) from error
    names: dict[str, str] = {}
    texts: dict[str, set[str]] = {}
    gone = set(index.removed)
    for filename, line in (*index.packages.items(), *index.conda.items()):
        if filename in gone or (before is not None and not _was_there(line.timestamp, before)):
            continue
        if line.name not in names:
            names[line.name] = look_up(table, "conda", line.name)
        texts.setdefault(line.name, set()).add(line.version)
    kept = set(wanted)
    found: dict[str, dict[Version, str]] = {}
    for name, versions in texts.items():
        if names[name] in kept:
            found.setdefault(names[name], {}).update(_read(versions, names[name], "conda", table))
    return tuple(_offer(name, versions, file) for name, versions in sorted(found.items()) if versions)


def of_files(project: str, versions: Iterable[str], *, file: str, table: DependencyTable) -> Releases | None:
    """Versions of a project in a package index."""
    name = look_up(table, "pypi", project)
    found = _read(set(versions), name, "pypi", table)
    return _offer(name, found, file) if found else None


def _was_there(timestamp: int, before: float) -> bool:
    seconds = timestamp / 1000 if timestamp > _SECONDS else timestamp
    return 0 < seconds <= before


def _read(versions: Iterable[str], name: str, kind: Kind, table: DependencyTable) -> dict[Version, str]:
    found: dict[Version, str] = {}
    for text in versions:
        own = own_version(table, name, kind, text) if kind == "conda" else None
        try:
            version = conda_version(text) if own is None or own.endswith(".*") else Version(own)
        except (ValueError, InvalidVersion):
            continue
        if not version.is_prerelease:
            found[version] = text
    return found


def _offer(name: str, versions: dict[Version, str], file: str) -> Releases:
    return Releases(dependency=name, file=file, versions=tuple(sorted(versions.items())))
