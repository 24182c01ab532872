"""One process at a time changes a devel tree; the others wait for it, then look again."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PAUSE = 0.05


@contextmanager
def locked(folder: Path, spare: Path, note: str = "") -> Iterator[None]:
    """Hold the lock of a folder: its own (``flock``), so that no file is left, whoever is killed.

    Args:
        folder: what is locked. If it is replaced meanwhile, the new one is locked instead.
        spare: file to lock where folders can't be (NFS, Windows). It stays.
        note: for stderr, when somebody else holds the lock.

    Raises:
        SdkError: the file system has no locks.
    """
    file = _acquire(folder, spare, note)
    try:
        yield
    finally:
        os.close(file)


def _acquire(folder: Path, spare: Path, note: str) -> int:
    while True:
        place = folder
        file = _try(folder, os.O_RDONLY, note) if os.name != "nt" else None
        if file is None:
            place = spare
            spare.parent.mkdir(exist_ok=True)
            file = _try(spare, os.O_RDWR | os.O_CREAT, note)
        if file is None:
            raise SdkError(f"{spare} cannot be locked: its file system does not support locks")
        try:
            found, held = place.stat(), os.fstat(file)
            if (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino):
                return file
        except FileNotFoundError:
            pass
        os.close(file)
        if place == folder and not folder.exists():
            raise SdkError(f"{folder} was removed by another process")


def _try(place: Path, flags: int, note: str) -> int | None:
    """An open file that holds the lock; None where this can't be locked at all."""
    try:
        file = os.open(place, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError:
        return None
    try:
        if not _lock(file, wait=False):
            if note:
                sys.stderr.write(f"{note}\n")
            _lock(file, wait=True)
    except OSError:
        os.close(file)
        return None
    return file


def _lock(file: int, *, wait: bool) -> bool:
    """Take the lock; False where somebody else holds it and this must not wait."""
    if sys.platform == "win32":
        import msvcrt

        while not _lock_byte(file, msvcrt):
            if not wait:
                return False
            time.sleep(_PAUSE)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _lock_byte(file: int, msvcrt: Any) -> bool:
    """Windows: whether the first byte of a file could be locked at once."""
    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True
