"""Put a wheel on disk: written beside its place, read back by the strict reader, then moved there. All or nothing."""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.core.values import Digest
from axletree.package.names import WheelName, render_wheel_name
from axletree.package.wheel import scan_wheel
from axletree.package.writer import EARLIEST, WrittenWheel, write_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.package.metadata import Metadata
    from axletree.package.wheel_info import WheelInfo
    from axletree.package.writer import Member


class WheelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel on disk."""

    path: Path
    size: int
    sha256: Digest
    written: WrittenWheel


def map_file(path: Path) -> memoryview:
    """A file's bytes without reading them into memory.

    Raises:
        HostError: it can't be opened.
        IntegrityError: it is empty.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise IntegrityError(Problem(file=str(path), message="is empty"))
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise HostError(Problem(file=str(path), message=f"can't be read: {error.strerror}")) from error
    # Not closed here: the traceback of an error may still hold views. The mapping goes with the last of them.
    return memoryview(mapped)


def write_wheel_file(
    folder: Path,
    name: WheelName,
    members: Sequence[Member],
    *,
    metadata: Metadata,
    wheel_info: WheelInfo,
    epoch: int = EARLIEST,
    level: int = 6,
    threads: int = 1,
) -> WheelFile:
    """Write a wheel into a folder under its normalised name; what was there under that name is replaced.

    Raises:
        IntegrityError: the members can't make a wheel, or what was written does not read back as such.
        HostError: the folder can't be written, or the disk is full. Nothing is left behind then.
    """
    path = folder / render_wheel_name(name)
    temporary = folder / f".{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as sink:
            written = write_wheel(
                sink, members, metadata=metadata, wheel_info=wheel_info, epoch=epoch, level=level, threads=threads
            )
            sink.flush()
            os.fsync(sink.fileno())
        sha256 = _verify(temporary, path.name, written)
        temporary.replace(path)
        _sync_folder(folder)
    except OSError as error:
        raise HostError(Problem(file=str(path), message=f"can't be written: {error.strerror}")) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return WheelFile(path=path, size=written.size, sha256=sha256, written=written)


def _verify(path: Path, filename: str, written: WrittenWheel) -> Digest:
    """Read the whole wheel back as a stranger would; returns the digest of the file."""
    view = map_file(path)
    wheel = scan_wheel(view, filename=filename).wheel
    trouble = [*wheel.unreadable, *(f"{issue.path} {issue.detail}" for issue in wheel.record_issues)]
    if wheel.record != written.record or wheel.size != written.size or trouble:
        detail = f": {trouble[0]}" if trouble else ""
        raise IntegrityError(Problem(file=filename, message=f"what was written does not read back{detail}"))
    return Digest(hashlib.sha256(view).hexdigest())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
