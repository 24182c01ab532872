"""Wheels on disk: opening one, and unpacking one, checked. What is unpacked is there as a whole or not at all."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

import msgspec

from axletree.binary.zip.directory import ZipEntry, read_directory
from axletree.binary.zip.members import read_member
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import HostError, IntegrityError, Problem, some_problems
from axletree.core.units import format_bytes
from axletree.disk import part_folder
from axletree.host.archive import map_file, read_content, share_out
from axletree.package.wheel.info import WheelInfo, parse_wheel_info
from axletree.package.wheel.metadata import Metadata, parse_metadata
from axletree.package.wheel.names import WheelName, parse_wheel_name
from axletree.package.wheel.record import ReadContent, RecordEntry, RecordIssue, check_record, parse_record
from axletree.package.wheel.scan import MAX_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

_SCHEMES_AT_ROOT = frozenset({"purelib", "platlib"})
_LOCAL_TIME = struct.Struct("<10x2H")


class OpenWheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel on disk with the files that tell of it. Nothing else of it has been read."""

    path: Path
    view: memoryview
    """The archive, mapped."""
    name: WheelName
    """Its file name's parts."""
    entries: tuple[ZipEntry, ...]
    """Its members, folders included."""
    folder: str
    """Its ``.dist-info`` folder."""
    metadata: Metadata
    wheel_info: WheelInfo
    record: tuple[RecordEntry, ...]


def open_wheel(path: Path) -> OpenWheel:
    """Open a wheel and read its metadata folder.

    Raises:
        HostError: the file can't be read.
        IntegrityError: the name is no wheel name, the archive is damaged or unsafe, or it has not one metadata folder
            with METADATA, WHEEL and RECORD in it. Names all that is missing.
    """
    view = map_file(path)
    name = parse_wheel_name(path.name)
    entries = read_directory(view, archive=path.name)
    files = {entry.name: entry for entry in entries}
    folders = {top for file in files if (top := file.partition("/")[0]).endswith(".dist-info")}
    if len(folders) != 1:
        found = (
            f"the wheel has several metadata folders: {', '.join(sorted(folders)[:5])}"
            if folders
            else "the wheel has no metadata folder"
        )
        raise IntegrityError(
            Problem(
                file=path.name,
                message=f"has {found}",
                hint="build the wheel again: it must contain exactly one *.dist-info folder",
            )
        )
    folder = folders.pop()
    problems: list[Problem] = []

    def read(file: str, parse: Callable[..., T]) -> T | None:
        entry = files.get(f"{folder}/{file}")
        if entry is None:
            problems.append(Problem(file=path.name, key=f"{folder}/{file}", message="the file is missing"))
            return None
        try:
            data = read_member(view, entry, archive=path.name, limit=MAX_METADATA)
            return parse(data, file=f"{path.name}: {entry.name}")
        except IntegrityError as error:
            problems.extend(error.problems)
            return None

    metadata = read("METADATA", parse_metadata)
    wheel_info = read("WHEEL", parse_wheel_info)
    record = read("RECORD", parse_record)
    if metadata is None or wheel_info is None or record is None:
        raise IntegrityError(*problems)
    return OpenWheel(
        path=path,
        view=view,
        name=name,
        entries=entries,
        folder=folder,
        metadata=metadata,
        wheel_info=wheel_info,
        record=record,
    )


class Unpacked(msgspec.Struct, frozen=True, kw_only=True):
    """An unpacked wheel."""

    folder: Path
    files: int
    size: int
    """Bytes of the files."""
    unchecked: tuple[str, ...] = ()
    """Files without SHA-256 in RECORD; only their CRC was checked."""


def unpack_wheel(path: Path, folder: Path) -> None:
    """Unpack a wheel into a folder laid out like site-packages; scripts, headers and data stay below ``*.data``.

    Raises:
        HostError: the file can't be read, or the folder not be written.
        IntegrityError: it is no wheel, its RECORD does not hold, or a member would land outside of the folder. What
            was unpacked until then is left in the folder.
    """
    wheel = open_wheel(path)
    issues = _unpack(wheel, folder, _in_site_packages, threads=1)
    if issues:
        raise IntegrityError(*_problems(issues, path.name))


def unpack_as_it_is(wheel: OpenWheel, folder: Path, *, threads: int = 1) -> Unpacked:
    """Unpack a wheel into a new folder, each member under its own path, with its date and its execute bit.

    Raises:
        HostError: the folder can't be written, or the disk has no room for it.
        IntegrityError: the folder exists, a member is damaged, or RECORD does not hold. Nothing is left behind then.
    """
    if folder.exists() or folder.is_symlink():
        raise IntegrityError(
            Problem(file=str(folder), message="exists", hint="remove it, or choose a different folder with --out")
        )
    staged = folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _require_room(wheel, folder.parent)
        with part_folder(folder) as staged:
            issues = _unpack(wheel, staged, Path, threads=threads)
            problems = _problems([issue for issue in issues if issue.kind != "unchecked"], wheel.path.name)
            if problems:
                raise IntegrityError(*problems)
            staged.rename(folder)
    except OSError as error:
        where = str(error.filename or folder).replace(str(staged), str(folder))
        raise HostError(Problem(file=where, message=f"the file cannot be written: {error.strerror}")) from error
    files = [entry for entry in wheel.entries if not entry.directory]
    return Unpacked(
        folder=folder,
        files=len(files),
        size=sum(entry.size for entry in files),
        unchecked=tuple(issue.path for issue in issues if issue.kind == "unchecked"),
    )


def _unpack(wheel: OpenWheel, folder: Path, place: Callable[[str], Path], *, threads: int) -> tuple[RecordIssue, ...]:
    """Write all members below a folder; returns what does not agree with RECORD."""
    files = [entry for entry in wheel.entries if not entry.directory]
    targets = {entry.name: folder / place(entry.name) for entry in files}
    for parent in sorted({folder, *(target.parent for target in targets.values())}):
        parent.mkdir(parents=True, exist_ok=True)

    def write(group: list[ZipEntry]) -> list[tuple[str, ReadContent]]:
        return [(entry.name, _write(wheel, entry, targets[entry.name])) for entry in group]

    groups = share_out(files, threads)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        contents = dict(pair for pairs in pool.map(write, groups) for pair in pairs)
    return check_record(wheel.record, contents, dist_info=wheel.folder)


def _write(wheel: OpenWheel, entry: ZipEntry, target: Path) -> ReadContent:
    mode = 0o777 if entry.executable else 0o666
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb", buffering=0) as stream:
        content = read_content(wheel.view, entry, archive=wheel.path.name, write=stream.write)
        date = _date(wheel.view, entry)
        os.utime(stream.fileno(), (date, date))
    return content


def _date(view: memoryview, entry: ZipEntry) -> float:
    """Seconds since 1970; archives hold no time zone, so it is read as UTC, as our writer writes it."""
    time, date = _LOCAL_TIME.unpack_from(view, entry.offset)
    try:
        moment = dt.datetime(
            (date >> 9) + 1980, date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, time % 32 * 2, tzinfo=dt.UTC
        )
    except ValueError:  # month 0, second 62: some writers put nothing there
        return EARLIEST
    return moment.timestamp()


def _in_site_packages(name: str) -> Path:
    parts = PurePosixPath(name).parts
    if len(parts) > 2 and parts[0].endswith(".data") and parts[1] in _SCHEMES_AT_ROOT:
        return Path(*parts[2:])
    return Path(*parts)


def _require_room(wheel: OpenWheel, folder: Path) -> None:
    needed, free = sum(entry.size for entry in wheel.entries), shutil.disk_usage(folder).free
    if needed > free:
        message = f"{wheel.path.name} needs {format_bytes(needed)} to unpack, but only {format_bytes(free)} is free"
        raise HostError(Problem(file=str(folder), message=message))


def _problems(issues: Sequence[RecordIssue], name: str) -> tuple[Problem, ...]:
    found = [Problem(file=name, key=issue.path, message=issue.detail) for issue in issues]
    return some_problems(found, what="file")
