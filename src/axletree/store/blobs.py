"""Content by its SHA-256: written once, read-only, checked whenever it is read.

A blob gets its final name only when all of it is written, by a rename. Two writers of the same content may both do so:
the second rename puts equal bytes in the place of equal bytes. A blob that is used again is touched, which is what
``gc`` goes by.
"""

# Plain strings and os: with thousands of files, a Path object each would be a large part of the work.
# ruff: noqa: PTH103, PTH104, PTH108, PTH116

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem
from axletree.core.values import Digest, digest_of
from axletree.disk import clone, sync_files, sync_path, write_all, write_new
from axletree.store.errors import disk_errors
from axletree.store.locks import using
from axletree.store.scratch import work_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from axletree.store.layout import StoreLayout

CHUNK = 1 << 18
"""Bytes read at a time. Files up to this size are looked up before anything is written; it also fits into L2 caches."""
BLOB_MODE = 0o444
_FEW = 16
"""Up to so many files each get an ``fsync``; more share one ``syncfs``."""


class CorruptBlob(IntegrityError):  # noqa: N818 (says what is, as the messages do)
    """Content in the store is missing or is not what its name says; what was found is in quarantine (exit 2)."""

    def __init__(self, digests: Sequence[Digest], problems: Sequence[Problem]) -> None:
        """Name all the blobs that are lost."""
        super().__init__(*problems)
        self.digests = tuple(digests)

    @property
    def digest(self) -> Digest:
        """The first of them."""
        return self.digests[0]


class Intake:
    """Files on their way into the store: hashed and brought beside it one by one, then given their names at once.

    Use it inside :func:`axletree.store.locks.using`, and with a private folder on the store's file system.
    """

    def __init__(self, layout: StoreLayout, work: Path, *, expected: int) -> None:
        """Prepare for about ``expected`` files."""
        self._blobs = str(layout.blobs)
        self._work = str(work)
        self._device = os.stat(self._work).st_dev
        self._each = expected <= _FEW
        self._fresh: dict[str, str] = {}
        self._known: set[str] = set()
        self._buffer = memoryview(bytearray(CHUNK))
        self._clone = True

    def copy(self, path: str) -> tuple[Digest, int, int]:
        """Take a copy of a file: its digest, its size in bytes, its mode."""
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self._copy(source)
        finally:
            os.close(source)

    def adopt(self, path: str) -> tuple[Digest, int, int]:
        """Take the file itself; where that can't be done (another disk, other names for it), a copy."""
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            status = os.fstat(source)
            mine = status.st_nlink == 1 and status.st_dev == self._device and status.st_uid == os.geteuid()
            if not mine:
                return self._copy(source)
            digest, size = hash_descriptor(source, self._buffer)
            if not self._has(digest, size):
                os.fchmod(source, BLOB_MODE)
                if self._each:
                    os.fsync(source)
                self._fresh[digest] = path
            return Digest(digest), size, status.st_mode
        finally:
            os.close(source)

    def publish(self) -> None:
        """Give all that was taken its final names, durably."""
        if not self._each and self._fresh:
            sync_files(self._work, self._fresh.values())
        folders: set[str] = set()
        for digest, path in self._fresh.items():
            folder = f"{self._blobs}/{digest[:2]}"
            try:
                os.rename(path, f"{folder}/{digest[2:]}")
            except FileNotFoundError:
                os.makedirs(folder, exist_ok=True)
                folders.add(self._blobs)
                os.rename(path, f"{folder}/{digest[2:]}")
            folders.add(folder)
        for folder in folders:
            sync_path(folder)
        for digest in self._known:
            with contextlib.suppress(OSError):  # another user's blob in a shared store, a blob just quarantined
                os.utime(f"{self._blobs}/{digest[:2]}/{digest[2:]}")

    def _copy(self, source: int) -> tuple[Digest, int, int]:
        status = os.fstat(source)
        if status.st_size > CHUNK:
            digest, size = self._copy_large(source)
            return digest, size, status.st_mode
        size = read_small(source, self._buffer)
        if size == CHUNK and status.st_size != CHUNK:  # it grew
            os.lseek(source, 0, os.SEEK_SET)
            digest, size = self._copy_large(source)
            return digest, size, status.st_mode
        data = self._buffer[:size]
        name = hashlib.sha256(data).hexdigest()
        if not self._has(name, size):
            path = f"{self._work}/{name}"
            write_new(path, data, mode=BLOB_MODE, durable=self._each)
            self._fresh[name] = path
        return Digest(name), size, status.st_mode

    def _copy_large(self, source: int) -> tuple[Digest, int]:
        path = f"{self._work}/{os.urandom(8).hex()}"
        target = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, BLOB_MODE)
        try:
            self._clone = self._clone and clone(source, target)
            if self._clone:
                digest, size = hash_descriptor(target, self._buffer)
            else:
                digest, size = hash_descriptor(source, self._buffer, copy=target)
            if self._has(digest, size):
                os.unlink(path)
            else:
                if self._each:
                    os.fsync(target)
                self._fresh[digest] = path
            return Digest(digest), size
        finally:
            os.close(target)

    def _has(self, digest: str, size: int) -> bool:
        """Whether the content is here already; a blob of another size is damaged, and will be replaced."""
        if digest in self._fresh or digest in self._known:
            return True
        try:
            found = os.stat(f"{self._blobs}/{digest[:2]}/{digest[2:]}").st_size == size
        except FileNotFoundError:
            return False
        if found:
            self._known.add(digest)
        return found


def put_bytes(layout: StoreLayout, data: bytes) -> Digest:
    """Store content; nothing happens when it is there already.

    Raises:
        StoreError: the store cannot be written or is full.
    """
    digest = digest_of(data)
    path = layout.blob_path(digest)
    with disk_errors(layout, needs=lambda: len(data)), using(layout):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_size == len(data):
                with contextlib.suppress(PermissionError):
                    os.utime(path)
                return digest
        with work_folder(layout, "put") as work:
            write_new(f"{work}/{digest}", data, mode=BLOB_MODE, durable=True)
            path.parent.mkdir(exist_ok=True)
            os.rename(f"{work}/{digest}", path)
        sync_path(path.parent)
    return digest


def put_file(layout: StoreLayout, path: Path, *, adopt: bool = False) -> tuple[Digest, int]:
    """Store a file's content: its digest and size. With ``adopt`` the file itself moves in and is gone afterwards.

    Raises:
        StoreError: the store cannot be written or is full.
        HostError: the file cannot be read.
    """
    with (
        disk_errors(layout, needs=lambda: path.stat().st_size),
        using(layout),
        work_folder(layout, "put") as work,
    ):
        intake = Intake(layout, work, expected=1)
        digest, size, _ = intake.adopt(str(path)) if adopt else intake.copy(str(path))
        intake.publish()
        if adopt:
            path.unlink(missing_ok=True)
    return digest, size


def has_blob(layout: StoreLayout, digest: Digest) -> bool:
    """Whether there is content by this name; says nothing of what it is."""
    return layout.blob_path(digest).exists()


def blob_ok(layout: StoreLayout, digest: Digest) -> bool:
    """Whether the content is there and is what its name says. What is not goes into quarantine."""
    path = layout.blob_path(digest)
    with disk_errors(layout):
        try:
            with path.open("rb", buffering=0) as file:
                found, _ = hash_descriptor(file.fileno(), memoryview(bytearray(CHUNK)))
        except FileNotFoundError:
            return False
    if found != digest:
        set_aside(layout, digest)
    return found == digest


def read_blob(layout: StoreLayout, digest: Digest) -> bytes:
    """Content, checked.

    Raises:
        CorruptBlob: it is missing or is not what its name says.
        StoreError: it cannot be read.
    """
    path = layout.blob_path(digest)
    with disk_errors(layout):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise lost_blobs(layout, (digest,)) from None
    if digest_of(data) != digest:
        set_aside(layout, digest)
        raise lost_blobs(layout, (digest,))
    return data


def set_aside(layout: StoreLayout, digest: Digest) -> None:
    """Move what is no longer what its name says into quarantine, so that it can be made anew and looked at."""
    with disk_errors(layout), contextlib.suppress(FileNotFoundError):
        layout.blob_path(digest).rename(layout.quarantine / f"{digest}.{os.urandom(4).hex()}")


def lost_blobs(layout: StoreLayout, digests: Sequence[Digest]) -> CorruptBlob:
    """The error for blobs that are missing or were set aside; not raised here."""
    hint = "run the same command again: it rebuilds the missing content"
    problems: list[Problem] = []
    for digest in digests:
        kept = sorted(layout.quarantine.glob(f"{digest}.*"))
        state = "corrupt" if kept else "missing"
        where = str(kept[-1] if kept else layout.blob_path(digest))
        problems.append(Problem(message=f"content {digest[:16]} in the store is {state}", file=where, hint=hint))
    return CorruptBlob(digests, problems)


def read_small(descriptor: int, buffer: memoryview) -> int:
    """Read a file that fits into a buffer; bytes read."""
    size = 0
    while size < len(buffer) and (count := os.readv(descriptor, [buffer[size:]])):
        size += count
    return size


def hash_descriptor(descriptor: int, buffer: memoryview, *, copy: int | None = None) -> tuple[str, int]:
    """SHA-256 and size of what is left to read of an open file, which is written to another one if there is one."""
    state = hashlib.sha256()
    size = 0
    while count := os.readv(descriptor, [buffer]):
        piece = buffer[:count]
        state.update(piece)
        if copy is not None:
            write_all(copy, piece)
        size += count
    return state.hexdigest(), size
