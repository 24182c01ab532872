"""Records of finished stages, and the requests that led to them. Small JSON files, each written whole."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from axletree.core.errors import StoreError, UsageError
from axletree.core.records import StageRecord, StageRequest
from axletree.core.values import Digest, Key, StageId, canonical_json
from axletree.disk import sync_path, write_new
from axletree.store.blobs import CorruptBlob, read_blob
from axletree.store.errors import disk_errors
from axletree.store.locks import lock, using
from axletree.store.scratch import work_folder

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.store.layout import StoreLayout

_Value = TypeVar("_Value")
_FILE_MODE = 0o644
_WRITING = "results"


class _Content(msgspec.Struct):
    blob: Digest | None = None
    size: int = 0


class _Listing(msgspec.Struct):
    """As much of a tree as it takes to know what it needs: a fraction of the time of reading all of it."""

    entries: list[_Content]


def get_record(layout: StoreLayout, key: Key, facts: type | None = None) -> StageRecord | None:
    """The result of a stage, if all of it is here; marks it as used.

    ``None`` also where the listing of its tree, or any content of it, is missing or of another size: such a stage must
    run again. Content is not read; that happens when it is used.

    Args:
        layout: the store.
        key: the stage's.
        facts: type that the record's facts must have: what another version wrote, that this one can't read, is none.

    Raises:
        StoreError: the store cannot be read.
    """
    path = layout.record_path(key)
    with disk_errors(layout), using(layout):
        record = read_json(path, StageRecord)
        if record is None or record.key != key or not is_complete(layout, record.tree):
            return None
        if facts is not None and not _converts(record.facts, facts):
            return None
        with contextlib.suppress(OSError):  # another user's record in a shared store
            os.utime(path)
    return record


def put_record(layout: StoreLayout, record: StageRecord, facts: type | None = None) -> StageRecord:
    """Store the result of a stage unless there is one; returns the one that is in the store now.

    A record that is there but no longer complete, or whose facts are not of the type ``facts``, gives way.

    Raises:
        StoreError: the store cannot be written or is full, or the record's tree is not in it.
    """
    path = layout.record_path(record.key)
    data = canonical_json(record) + b"\n"
    with (
        disk_errors(layout, needs=lambda: len(data)),
        using(layout),
        lock(layout, _WRITING),
        work_folder(layout, "record") as work,
    ):
        winner = get_record(layout, record.key, facts)
        if winner is not None:
            return winner
        if not is_complete(layout, record.tree):
            raise StoreError(
                f"the result of {record.stage} is incomplete: content of its tree {record.tree[:16]} is missing",
                hint="run the same command again",
            )
        write_new(f"{work}/record", data, mode=_FILE_MODE, durable=True)
        path.parent.mkdir(exist_ok=True)
        (work / "record").replace(path)
        sync_path(path.parent)
        sync_path(layout.results)
    return record


def _converts(facts: object, kind: type) -> bool:
    try:
        msgspec.convert(facts, kind)
    except msgspec.ValidationError:
        return False
    return True


def last_record(layout: StoreLayout, stage: StageId, recipe: str) -> StageRecord | None:
    """What a stage of a recipe was the last time, whether its tree is still here or not."""
    with disk_errors(layout):
        return read_json(layout.last_path(stage, recipe), StageRecord)


def remember_last(layout: StoreLayout, record: StageRecord, recipe: str) -> None:
    """Keep a record as what its stage of this recipe was the last time; also counts as a use of it.

    Raises:
        StoreError: the store cannot be written or is full.
    """
    path, data = layout.last_path(record.stage, recipe), canonical_json(record)
    with disk_errors(layout), contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data + b"\n":
            os.utime(path)  # most often nothing is new, and this is far cheaper
            return
    _replace(layout, path, data)


def put_request(layout: StoreLayout, request: StageRequest) -> Path:
    """Store what ``run-stage`` is to do and return the file.

    Raises:
        StoreError: the store cannot be written or is full.
    """
    path = layout.request_path(request.key)
    _replace(layout, path, canonical_json(request))
    return path


def get_request(layout: StoreLayout, key: Key) -> StageRequest:
    """The request for a key.

    Raises:
        UsageError: there is none, or none that this version can read.
    """
    path = layout.request_path(key)
    with disk_errors(layout):
        request = read_json(path, StageRequest)
    if request is None:
        raise UsageError(
            f"the store has no request for key {key} that this version can read: {path}", hint="run `axletree build`"
        )
    return request


def read_json(path: Path, kind: type[_Value]) -> _Value | None:
    """Decode a file; ``None`` where it is absent, damaged, or of another version."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def is_complete(layout: StoreLayout, tree: Digest) -> bool:
    """Whether a tree's listing is here and right, and each of its contents is here with the right size."""
    contents = contents_of(layout, tree)
    if contents is None:
        return False
    blobs = os.open(layout.blobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return all(
            os.stat(f"{digest[:2]}/{digest[2:]}", dir_fd=blobs).st_size == size for digest, size in contents.items()
        )
    except FileNotFoundError:
        return False
    finally:
        os.close(blobs)


def contents_of(layout: StoreLayout, tree: Digest) -> dict[Digest, int] | None:
    """The contents of a tree with their sizes; ``None`` where its listing is missing or corrupt."""
    try:
        listing = msgspec.json.decode(read_blob(layout, tree), type=_Listing)
    except (CorruptBlob, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return {content.blob: content.size for content in listing.entries if content.blob is not None}


def _replace(layout: StoreLayout, path: Path, data: bytes) -> None:
    """Write a file whole. Not waited for: after a loss of power the old one, or none, is as good."""
    with disk_errors(layout, needs=lambda: len(data)), work_folder(layout, "write") as work:
        write_new(f"{work}/file", data + b"\n", mode=_FILE_MODE, durable=False)
        (work / "file").replace(path)
