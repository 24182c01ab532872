"""Private folders of running processes, and how to tell that their owner is gone.

Beside each folder lies ``<folder>.owner``, which its owner keeps locked (``flock``) as long as it lives: that says
"alive" without a guess, whatever happens to process numbers, in containers and after a restart alike. What the file
says (process, its start) is for people.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.values import canonical_json
from axletree.disk import lock_now, remove_tree
from axletree.store.errors import disk_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.store.layout import StoreLayout

_OWNER = ".owner"
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
_held: dict[Path, int] = {}
"""Descriptors whose only purpose is to stay open as long as this process lives."""


def scratch(layout: StoreLayout, label: str) -> Path:
    """Make a new private folder. It is this process's until :func:`drop_scratch` or its end.

    While it exists, ``gc`` also keeps whatever was used or written since it was made: it is the lease of a run.

    Raises:
        StoreError: the store cannot be written.
    """
    stem = re.sub(r"[^A-Za-z0-9_.+=-]+", "-", label).strip("-.")[:60] or "scratch"
    with disk_errors(layout):
        while True:
            folder = layout.scratches / f"{stem}-{os.urandom(6).hex()}"
            descriptor = claim(_sidecar(folder))
            if descriptor is not None:
                break
        _held[folder] = descriptor
        folder.mkdir(mode=0o700)
    return folder


def drop_scratch(folder: Path) -> None:
    """Remove a scratch folder of this process, and forget it."""
    remove_tree(folder)
    _sidecar(folder).unlink(missing_ok=True)
    descriptor = _held.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)


@contextlib.contextmanager
def work_folder(layout: StoreLayout, label: str) -> Iterator[Path]:
    """A scratch folder for the duration of a ``with`` block."""
    folder = scratch(layout, label)
    try:
        yield folder
    finally:
        drop_scratch(folder)


@contextlib.contextmanager
def lease(layout: StoreLayout, label: str) -> Iterator[Path]:
    """A scratch folder for a run. What killed processes left half-written in the store goes first.

    Raises:
        StoreError: the store cannot be written.
    """
    clean_scratch(layout)
    with work_folder(layout, label) as folder:
        yield folder


def clean_scratch(layout: StoreLayout) -> tuple[Path, ...]:
    """Remove the scratch folders whose owner is gone, and say which.

    Raises:
        StoreError: one of them cannot be removed.
    """
    removed: list[Path] = []
    with disk_errors(layout):
        for sidecar in sorted(layout.scratches.glob(f"*{_OWNER}")):
            with abandoned(sidecar) as is_left:
                if is_left:
                    folder = sidecar.with_name(sidecar.name.removesuffix(_OWNER))
                    remove_tree(folder)
                    sidecar.unlink(missing_ok=True)
                    removed.append(folder)
        # The owner's file is there before the folder and goes after it: a folder without one has no owner.
        for folder in sorted(layout.scratches.iterdir()):
            if not folder.name.endswith(_OWNER) and not _sidecar(folder).exists() and folder.is_dir():
                remove_tree(folder)
                removed.append(folder)
    return tuple(removed)


def oldest_lease(layout: StoreLayout) -> float | None:
    """When the oldest scratch folder with a living owner was made, in seconds since the epoch."""
    started: list[float] = []
    for sidecar in layout.scratches.glob(f"*{_OWNER}"):
        with contextlib.suppress(FileNotFoundError), abandoned(sidecar) as is_left:
            if not is_left:
                started.append(sidecar.stat().st_mtime)
    return min(started, default=None)


def _sidecar(folder: Path) -> Path:
    return folder.with_name(folder.name + _OWNER)


def claim(sidecar: Path) -> int | None:
    """Create and lock an owner's file; ``None`` when a cleaner took it between the two. Closing it ends the lock."""
    descriptor = os.open(sidecar, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        if lock_now(descriptor) and os.fstat(descriptor).st_nlink == 1:
            owner = {"process": os.getpid(), "started": _process_start(), "host": os.uname().nodename}
            os.write(descriptor, canonical_json({**owner, "made": int(time.time())}) + b"\n")
            return descriptor
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _NO_LOCKS:
            return descriptor  # then nobody finds out that its owner is gone
        os.close(descriptor)
        sidecar.unlink(missing_ok=True)
        raise
    os.close(descriptor)
    return None


@contextlib.contextmanager
def abandoned(sidecar: Path) -> Iterator[bool]:
    """Whether the owner of a file is gone; if so, nobody else can find that out while the block runs."""
    try:
        descriptor = os.open(sidecar, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):  # gone, or another user's
        yield False
        return
    try:
        yield lock_now(descriptor) and os.fstat(descriptor).st_nlink == 1
    finally:
        os.close(descriptor)


def _process_start() -> int:
    """When this process started, in clock ticks since the machine did (field 22 of ``/proc/self/stat``); 0: unknown."""
    try:
        return int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
