"""Small things done to files that every part of the store needs: errors with advice, durable writes, removal."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, StoreError
from axletree.core.units import format_bytes
from axletree.store.layout import STORE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from axletree.core.errors import AxletreeError
    from axletree.store.layout import Layout

_FULL = (errno.ENOSPC, errno.EDQUOT)
_HINTS = dict.fromkeys((errno.EMFILE, errno.ENFILE), "allow more open files: ulimit -n 65536")
_HINTS |= {
    errno.EIO: "the disk reports an error: see the kernel log (dmesg)",
    errno.EROFS: "the disk is read-only, possibly because of an error: see the kernel log (dmesg)",
}
"""Advice where rights are not what is wrong."""


@contextlib.contextmanager
def disk_errors(
    layout: Layout, *, target: Path | None = None, needs: Callable[[], int] | None = None
) -> Iterator[None]:
    """Turn an ``OSError`` into an error that says which path and what to do.

    Args:
        layout: the store that is used.
        target: where is written to, when that is not the store.
        needs: how many bytes were to be written; asked only when the disk is full.

    Raises:
        StoreError: something in the store cannot be read or written, or its disk is full.
        HostError: the same for a path outside of it.
    """
    try:
        yield
    except OSError as error:
        raise _explain(
            layout, error, target or layout.root, needs() if needs and error.errno in _FULL else None
        ) from error


def _explain(layout: Layout, error: OSError, target: Path, needs: int | None) -> AxletreeError:
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        room = "" if needs is None else f": needs {format_bytes(needs)}, has {format_bytes(_free(target))} free"
        message = f"no space left on {mount_point(target)}{room}"
        if target.is_relative_to(layout.root):
            return StoreError(
                message, hint=f"set {STORE_VARIABLE} to a folder on a larger disk, or run `axletree store gc`"
            )
        return HostError(message, hint="free some space there, or choose another folder")
    hint = _HINTS.get(error.errno or 0)
    path = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else str(target)
    if Path(path).is_relative_to(layout.root):
        return StoreError(
            f"cannot use the store: {reason}: {path}",
            hint=hint or f"make it your own and writable, or set {STORE_VARIABLE} to a folder that is",
        )
    return HostError(f"{reason}: {path}", hint=hint or "check that it exists, and its permissions")


def mount_point(path: Path) -> Path:
    """The root of the file system that holds a path."""
    path = path.absolute()
    return next((folder for folder in (path, *path.parents) if folder.is_mount()), Path("/"))


def _free(path: Path) -> int:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(existing).free


def write_new(path: str, data: bytes | memoryview, *, mode: int, durable: bool) -> None:
    """Write a file that does not exist yet; durable: on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of it, however many calls that takes."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def sync_folders(folders: Iterable[str | Path]) -> None:
    """Make the names in these folders survive a loss of power."""
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_files(folder: str, files: Iterable[str]) -> None:
    """Make the content of many files on the file system of a folder survive a loss of power.

    One ``syncfs`` (Linux) instead of an ``fsync`` a file: each of those would wait for a journal commit of its own.
    """
    import ctypes  # noqa: PLC0415 (start-up time: every command imports the store)

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is not None and syncfs(descriptor) == 0:
            return
        if syncfs is not None and ctypes.get_errno() in (errno.EIO, *_FULL):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
    finally:
        os.close(descriptor)
    for file in files:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_tree(folder: str | Path) -> None:
    """Remove a folder with all that is in it, also where a build made parts of it read-only. Absent is fine."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        if os.path.lexists(folder):
            shutil.rmtree(folder, ignore_errors=True)
    except PermissionError:
        for parent, names, _ in os.walk(folder):
            for name in (".", *names):
                path = Path(parent, name)
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(folder)
