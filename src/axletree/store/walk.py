"""Going through all that a store holds."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.records import StageRecord
from axletree.core.trees import is_digest
from axletree.core.values import Digest
from axletree.store.results import read_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.store.layout import StoreLayout


def each_blob(layout: StoreLayout) -> Iterator[tuple[Digest, os.stat_result]]:
    """Every content with its status, in the order of digests."""
    for path, status in sorted(each_file(layout.blobs)):
        digest = "".join(path.rsplit("/", 2)[-2:])
        if is_digest(digest):
            yield Digest(digest), status


def each_record(layout: StoreLayout) -> Iterator[tuple[Path, StageRecord | None]]:
    """Every file of a record, in the order of keys; ``None`` where it can't be read."""
    for path in files_in(layout.results):
        yield path, read_json(path, StageRecord)


def files_in(folder: Path) -> tuple[Path, ...]:
    """All that is no folder under a folder, sorted."""
    return tuple(sorted(Path(path) for path, _ in each_file(folder)))


def each_file(folder: str | Path) -> Iterator[tuple[str, os.stat_result]]:
    """All that is no folder under a folder, with its status.

    What vanishes meanwhile is left out, and what is in a folder of another user's image that only its owner may read.
    """
    pending = [str(folder)]
    while pending:
        with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(pending.pop()) as listing:
            for child in listing:
                if child.is_dir(follow_symlinks=False):
                    pending.append(child.path)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    yield child.path, child.stat(follow_symlinks=False)


def touched(path: Path) -> float:
    """When a file was written, linked or touched last, in seconds since the epoch.

    The change time, not the modification time: a file that was adopted may be years old.
    """
    return path.lstat().st_ctime


def record_title(path: Path, record: StageRecord | None) -> str:
    """What to call a record in a report: ``stage (key)``."""
    return f"{record.stage if record else 'unreadable'} ({path.stem})"
