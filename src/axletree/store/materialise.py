"""Trees in the store -> folders. Every byte is checked on its way."""

# Plain strings and os: with thousands of files, a Path object each would be a large part of the work.
# ruff: noqa: PTH103, PTH211

from __future__ import annotations

import errno
import hashlib
import os
from typing import TYPE_CHECKING

from axletree.core.errors import PublishError
from axletree.disk import clone, part_folder, write_new
from axletree.store.blobs import (
    CHUNK,
    hash_descriptor,
    lost_blobs,
    read_small,
    set_aside,
)
from axletree.store.errors import disk_errors
from axletree.store.ingest import get_tree
from axletree.store.locks import using

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.trees import Entry, Tree
    from axletree.core.values import Digest
    from axletree.store.layout import StoreLayout

_UNLINKABLE = (errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP)
"""Another disk, too many names, or not allowed: then a file is copied instead."""


def materialise(
    layout: StoreLayout, digest: Digest, folder: Path, *, writable: bool = True, link: bool = False
) -> None:
    """Make a folder that holds a tree. It appears under its name complete or not at all.

    Args:
        layout: the store.
        digest: of the tree.
        folder: must not exist, or be empty.
        writable: whether the files can be written (modes 644 and 755, less the umask), or only read (444 and 555).
        link: hard links to the store where that is possible, instead of copies: read-only whatever ``writable`` says,
            and for those only who never write. Executable files are copied, as modes belong to all names of a file.

    Raises:
        CorruptBlob: content is missing or is not what its name says; names all that is lost, which is in quarantine.
        PublishError: the folder holds something already.
        HostError: the folder cannot be written, or its disk is full.
    """
    tree = get_tree(layout, digest)
    folder = folder.absolute()
    with disk_errors(layout, target=folder, needs=lambda: tree.size), using(layout):
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise PublishError(f"{folder} already exists", hint="remove it or choose a different folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with part_folder(folder) as part:
            writer = _Writer(layout, part, writable=writable, link=link)
            _fill(layout, tree, part, writer)
            part.rename(folder)


def _fill(layout: StoreLayout, tree: Tree, part: Path, writer: _Writer) -> None:
    made = {""}
    for entry in tree.entries:
        parent = entry.path if entry.kind == "directory" else entry.path.rpartition("/")[0]
        if parent not in made:
            os.makedirs(f"{part}/{parent}", exist_ok=True)
            made.add(parent)
        match entry.kind:
            case "file":
                writer.write(entry)
            case "link":
                os.symlink(str(entry.target), f"{part}/{entry.path}")
            case "directory":
                pass
    if writer.lost:
        for digest in writer.lost:
            set_aside(layout, digest)
        raise lost_blobs(layout, tuple(writer.lost))


class _Writer:
    """Brings one file after the other out of the store; collects what is lost instead of stopping there."""

    def __init__(self, layout: StoreLayout, part: Path, *, writable: bool, link: bool) -> None:
        self._blobs = str(layout.blobs)
        self._part = str(part)
        self._modes = (0o666, 0o777) if writable and not link else (0o444, 0o555)
        self._link = link
        self._clone = True
        self._checked: set[Digest] = set()
        self._buffer = memoryview(bytearray(CHUNK))
        self.lost: dict[Digest, None] = {}

    def write(self, entry: Entry) -> None:
        """Write one file, or note its content as lost."""
        if entry.blob is None or entry.blob in self.lost:
            return
        path = f"{self._part}/{entry.path}"
        blob = f"{self._blobs}/{entry.blob[:2]}/{entry.blob[2:]}"
        try:
            source = os.open(blob, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self.lost[entry.blob] = None
            return
        try:
            if self._link and not entry.executable:
                found = self._link_checked(source, blob, path, entry)
            else:
                found = self._copy_checked(source, path, entry)
        finally:
            os.close(source)
        if found != entry.blob:
            self.lost[entry.blob] = None

    def _link_checked(self, source: int, blob: str, path: str, entry: Entry) -> str:
        if entry.blob not in self._checked:
            found, _ = hash_descriptor(source, self._buffer)
            if found != entry.blob:
                return found
            self._checked.add(entry.blob)
            os.lseek(source, 0, os.SEEK_SET)
        try:
            os.link(blob, path)
        except OSError as error:
            if error.errno not in _UNLINKABLE:
                raise
            return self._copy_checked(source, path, entry)
        return entry.blob

    def _copy_checked(self, source: int, path: str, entry: Entry) -> str:
        mode = self._modes[entry.executable]
        if entry.size < CHUNK:  # strictly: a full buffer would not tell whether there is more
            data = self._buffer[: read_small(source, self._buffer)]
            found = hashlib.sha256(data).hexdigest()
            if found == entry.blob:
                write_new(path, data, mode=mode, durable=False)
            return found
        target = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            self._clone = self._clone and clone(source, target)
            if self._clone:
                return hash_descriptor(target, self._buffer)[0]
            return hash_descriptor(source, self._buffer, copy=target)[0]
        finally:
            os.close(target)
