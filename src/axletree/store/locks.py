"""Locks between processes: ``flock`` on files in the store. The kernel frees them when their holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from typing import TYPE_CHECKING

from axletree.core.errors import StoreError
from axletree.core.values import digest_of
from axletree.disk import lock_now
from axletree.store.errors import disk_errors
from axletree.store.scratch import abandoned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.store.layout import StoreLayout

_SWEEP = ".sweep"
_POLL = 0.05
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@=-]{0,119}")


@contextlib.contextmanager
def lock(layout: StoreLayout, name: str, *, timeout: float | None = None) -> Iterator[None]:
    """Hold a named lock for the duration of a ``with`` block. Not reentrant.

    Args:
        layout: the store.
        name: any text; the same text is the same lock.
        timeout: seconds to wait for another holder; ``None`` waits as long as it takes, 0 does not wait.

    Raises:
        StoreError: another process still held it when the time was over; says which.
    """
    with _flock(_path(layout, name), layout, name=name, timeout=timeout, operation=fcntl.LOCK_EX):
        yield


def is_locked(layout: StoreLayout, name: str) -> bool:
    """Whether somebody holds a named lock right now."""
    try:
        descriptor = os.open(_path(layout, name), os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # nobody ever held it; what else is wrong, whoever takes it says
        return False
    try:
        return not lock_now(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _path(layout: StoreLayout, name: str) -> Path:
    return layout.locks / f"{name if _NAME.fullmatch(name) else digest_of(name.encode())}.lock"


@contextlib.contextmanager
def using(layout: StoreLayout) -> Iterator[None]:
    """While the block runs nothing is swept out of the store. Many may use it at once."""
    with _flock(layout.locks / _SWEEP, layout, name="the store", timeout=None, operation=fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def sweeping(layout: StoreLayout) -> Iterator[None]:
    """While the block runs nobody else is :func:`using` the store; waits for those who are."""
    with _flock(layout.locks / _SWEEP, layout, name="the store", timeout=None, operation=fcntl.LOCK_EX):
        yield


def remove_free(layout: StoreLayout, path: Path, *, dry_run: bool = False) -> bool:
    """Remove the file of a lock if nobody holds it, and say whether that is so. That of :func:`sweeping` stays."""
    if path == layout.locks / _SWEEP:
        return False
    with abandoned(path) as is_free:
        if is_free and not dry_run:
            path.unlink(missing_ok=True)
    return is_free


@contextlib.contextmanager
def _flock(path: Path, layout: StoreLayout, *, name: str, timeout: float | None, operation: int) -> Iterator[None]:
    with disk_errors(layout):
        descriptor, taken = _open_and_take(path, operation, timeout)
    try:
        if not taken:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            raise StoreError(f"{name} is locked by {holder}", hint="wait until that process ends, or stop it")
        if operation == fcntl.LOCK_EX:
            _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _open_and_take(path: Path, operation: int, timeout: float | None) -> tuple[int, bool]:
    """Descriptor of a lock's file, and whether its lock was taken."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            taken = _take(descriptor, operation, timeout)
        except BaseException:
            os.close(descriptor)
            raise
        if not taken or os.fstat(descriptor).st_nlink:
            return descriptor, taken
        os.close(descriptor)  # removed between the two: whoever comes next would lock another file


def _take(descriptor: int, operation: int, timeout: float | None) -> bool:
    if timeout is None:
        fcntl.flock(descriptor, operation)
        return True
    deadline = time.monotonic() + timeout
    while not lock_now(descriptor, operation):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True


def _sign(descriptor: int) -> None:
    """Say who holds the lock, for the message of whoever waits in vain; a full disk must not matter here."""
    number = os.getpid()
    who = (
        "the first process of a namespace" if number == 1 else f"process {number}"
    )  # each stage is number 1 in its own
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{who} on {os.uname().nodename}\n".encode(), 0)
