"""What takes the room in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.values import Digest, Key, StageId
from axletree.store.errors import disk_errors
from axletree.store.layout import FOLDERS
from axletree.store.results import contents_of
from axletree.store.walk import each_blob, each_file, each_record, touched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.core.records import StageRecord
    from axletree.store.layout import StoreLayout


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The space that one part of the store uses."""

    kind: str
    """Folder in the root; for caches, ``cache/ccache`` and so on."""
    files: int
    size: int
    """Bytes on the disk; each file counts once, even if it has several hard links."""


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A result in the store, and the space that it uses."""

    stage: StageId
    key: Key
    tree: Digest
    files: int
    """Different contents."""
    size: int
    """Bytes of all its contents, including shared ones."""
    own: int
    """Bytes that no other record uses, and that removing it would free."""
    used: float
    """When it was last used, in seconds since the epoch."""


class DuReport(msgspec.Struct, frozen=True, kw_only=True):
    """The largest users of space."""

    root: str
    kinds: tuple[Usage, ...]
    records: tuple[StoredRecord, ...]
    """Largest first."""
    unused: int
    """Bytes of contents that no record uses."""

    @property
    def size(self) -> int:
        """Bytes of all parts together."""
        return sum(kind.size for kind in self.kinds)


def du(layout: StoreLayout) -> DuReport:
    """Sum up what takes the room.

    Raises:
        StoreError: the store cannot be read.
    """
    with disk_errors(layout):
        seen: set[tuple[int, int]] = set()
        kinds = tuple(usage for name in FOLDERS for usage in _usages(layout.root / name, seen))
        sizes = {digest: status.st_size for digest, status in each_blob(layout)}
        found: list[tuple[StageRecord, float, set[Digest]]] = []
        users: dict[Digest, int] = {}
        for path, record in each_record(layout):
            contents = None if record is None else contents_of(layout, record.tree)
            if record is None or contents is None:
                continue
            needed = {record.tree, *contents}
            found.append((record, touched(path), needed))
            for digest in needed:
                users[digest] = users.get(digest, 0) + 1
    records = [
        StoredRecord(
            stage=record.stage,
            key=record.key,
            tree=record.tree,
            files=len(needed) - 1,
            size=sum(sizes.get(digest, 0) for digest in needed),
            own=sum(sizes.get(digest, 0) for digest in needed if users[digest] == 1),
            used=used,
        )
        for record, used, needed in found
    ]
    return DuReport(
        root=str(layout.root),
        kinds=kinds,
        records=tuple(sorted(records, key=lambda record: (-record.size, record.key))),
        unused=sum(size for digest, size in sizes.items() if digest not in users),
    )


def _usages(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Usage]:
    """What a folder takes; of the caches, what each tool's own takes."""
    counts = {folder.name: (0, 0)}
    for path, status in each_file(folder):
        identity = (status.st_dev, status.st_ino)
        if status.st_nlink > 1 and identity in seen:
            continue
        seen.add(identity)
        tool, inside, _ = path.removeprefix(f"{folder}/").partition("/")
        kind = f"{folder.name}/{tool}" if inside and folder.name == "cache" else folder.name
        files, size = counts.get(kind, (0, 0))
        counts[kind] = (files + 1, size + status.st_blocks * 512)
    for kind, (files, size) in sorted(counts.items()):
        yield Usage(kind=kind, files=files, size=size)
