"""What the store and the host do to files alike: durable writes, shared extents, removal. They raise ``OSError``."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FULL = (errno.ENOSPC, errno.EDQUOT)
"""How a file system says that it is full."""
_FICLONE = 0x40049409  # linux/fs.h
_FALLOC_FL_KEEP_SIZE = 1  # linux/falloc.h


def set_aside(descriptor: int, size: int) -> None:
    """Take room behind the end of an open file, for what is still to be written to it, where the system can (Linux).

    The file does not get longer by it. Nobody else can use that room, so it is there when the disk is full.
    """
    import ctypes  # noqa: PLC0415 (start-up time: every command imports the store)

    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is not None:
        end = os.fstat(descriptor).st_size
        fallocate(descriptor, _FALLOC_FL_KEEP_SIZE, ctypes.c_long(end), ctypes.c_long(size))


def give_room_back(descriptor: int) -> None:
    """Give back what :func:`set_aside` took."""
    os.ftruncate(descriptor, os.fstat(descriptor).st_size)


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


def sync_path(path: str | Path) -> None:
    """Make the content of a file, or the names in a folder, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
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
        if syncfs is not None and ctypes.get_errno() in (errno.EIO, *FULL):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
    finally:
        os.close(descriptor)
    for file in files:
        sync_path(file)


def clone(source: int, target: int) -> bool:
    """Share a file's extents with an empty one, where the file system can (btrfs, XFS); whether that was done."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


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
