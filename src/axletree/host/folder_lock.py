"""One writer at a time in a folder that several commands write into: an index root, an output folder.

The lock is a file in the folder, ``.axletree.lock``, that stays there and means nothing by itself; what counts is
whether somebody holds it (``flock``), so nobody has to clean up after a killed process. While it is held it says by
whom, for people.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from axletree.core.errors import HostError, Problem
from axletree.disk import NO_LOCKS, is_same, lock_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Note = Callable[[str], object]

LOCK = ".axletree.lock"


class _Lock(NamedTuple):
    path: Path
    descriptor: int

    @property
    def identity(self) -> tuple[int, int]:
        """The same however the folder was spelled, and through links and bind mounts."""
        status = os.fstat(self.descriptor)
        return status.st_dev, status.st_ino


@contextmanager
def folder_locks(folders: Iterable[Path], note: Note) -> Iterator[None]:
    """Be alone in some folders as long as the block runs. Not reentrant: take all that are needed at once.

    They are locked in an order that is the same for everybody, so nobody waits in a circle. Two paths to one folder are
    one lock.

    Args:
        folders: made where they are missing.
        note: told whom this waits for, when it has to.

    Raises:
        OSError: a folder can't be made or written to.
        HostError: a file system has no locks.
    """
    wanted = tuple(folders)
    held: list[_Lock] = []
    try:
        while not _take(wanted, held, note):
            _free(held)
        for each in held:
            _sign(each.descriptor, f"process {os.getpid()} on {os.uname().nodename}")
        try:
            yield
        finally:
            for each in held:
                _sign(each.descriptor, "")
    finally:
        _free(held)


def _take(folders: Iterable[Path], held: list[_Lock], note: Note) -> bool:
    """Lock all; whether they are still what lies in the folders then, which somebody may have made anew meanwhile."""
    known: dict[tuple[int, int], _Lock] = {}
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / LOCK
        lock = _Lock(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666))
        held.append(lock)
        known.setdefault(lock.identity, lock)
    for identity in sorted(known):
        _lock(known[identity], note)
    return all(is_same(lock.path, lock.descriptor) for lock in held)


def _lock(lock: _Lock, note: Note) -> None:
    try:
        if not lock_now(lock.descriptor):
            holder = os.pread(lock.descriptor, 200, 0).decode(errors="replace").strip()
            who = f" ({holder})" if holder else ""
            note(f"waiting for another axletree process that is writing to {lock.path.parent}{who}")
            fcntl.flock(lock.descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        message = (
            "the folder cannot be locked because its file system does not support locks; two processes would "
            "overwrite each other's pages"
        )
        hint = "write to a folder on a local disk and copy that, or mount this file system with support for locks"
        raise HostError(Problem(file=str(lock.path.parent), message=message, hint=hint)) from error


def _free(held: list[_Lock]) -> None:
    while held:
        os.close(held.pop().descriptor)


def _sign(descriptor: int, text: str) -> None:
    """Say who holds the lock; a full disk must not matter here."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
