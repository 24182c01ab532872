"""The store as one value: what the rest of Axletree is given."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from axletree.core.errors import StoreError
from axletree.core.formats import format_problem
from axletree.disk import sync_path, write_new
from axletree.store import blobs, ingest, locks, materialise, results, scratch
from axletree.store.errors import disk_errors
from axletree.store.layout import FOLDERS, STORE_FORMAT, STORE_VARIABLE, StoreLayout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from axletree.core.records import StageRecord, StageRequest
    from axletree.core.trees import Tree
    from axletree.core.values import Digest, Key, StageId


class Store(StoreLayout, frozen=True):
    """A content-addressed store of file trees and of the results that they are.

    It holds no state but its root: any number of processes and threads may use one store at once. Each method is the
    function of that name in ``axletree.store``'s modules, which say what is raised.
    """

    @classmethod
    def open(cls, root: Path) -> Store:
        """Use the store at a root; make it where there is none.

        Raises:
            StoreError: it cannot be made or written, is of a format that this version does not know, or has a path that
                build tools would take apart.
        """
        store = cls(root.absolute())
        _refuse_unfit(store.root)
        marker = store.root / "format"
        with disk_errors(store):
            if not _read_format(store):
                store.root.mkdir(parents=True, exist_ok=True)
                _refuse_foreign(store)
            for name in FOLDERS:
                (store.root / name).mkdir(exist_ok=True)
            if not marker.exists():
                with scratch.work_folder(store, "format") as work, contextlib.suppress(FileExistsError):
                    write_new(f"{work}/format", f"{STORE_FORMAT}\n".encode(), mode=0o644, durable=True)
                    os.link(work / "format", marker)
                sync_path(store.root)
        _read_format(store)
        if not os.access(store.blobs, os.W_OK | os.X_OK):
            raise StoreError(
                f"the store is not writable: {store.root}",
                hint=f"make the folder writable, or set {STORE_VARIABLE} to a folder that you can write to",
            )
        return store

    def put_bytes(self, data: bytes) -> Digest:
        """Store content."""
        return blobs.put_bytes(self, data)

    def put_file(self, path: Path, *, adopt: bool = False) -> tuple[Digest, int]:
        """Store a file's content: its digest and size. ``adopt`` moves a private file in without a copy."""
        return blobs.put_file(self, path, adopt=adopt)

    def has_blob(self, digest: Digest) -> bool:
        """Whether there is content by this name."""
        return blobs.has_blob(self, digest)

    def blob_ok(self, digest: Digest) -> bool:
        """Whether content is here and is what its name says."""
        return blobs.blob_ok(self, digest)

    def read_blob(self, digest: Digest) -> bytes:
        """Content, checked."""
        return blobs.read_blob(self, digest)

    def put_tree(self, tree: Tree) -> Digest:
        """Store a listing whose contents are in the store already."""
        return ingest.put_tree(self, tree)

    def get_tree(self, digest: Digest) -> Tree:
        """Read a listing, checked."""
        return ingest.get_tree(self, digest)

    def ingest(self, folder: Path, *, adopt: bool = False, exclude: Sequence[str] = ()) -> Digest:
        """Store a folder as a tree; ``adopt`` moves its files in, and the folder is gone afterwards."""
        return ingest.ingest(self, folder, adopt=adopt, exclude=exclude)

    def materialise(self, digest: Digest, folder: Path, *, writable: bool = True, link: bool = False) -> None:
        """Make a folder that holds a tree, complete or not at all."""
        materialise.materialise(self, digest, folder, writable=writable, link=link)

    def get_record(self, key: Key, facts: type | None = None) -> StageRecord | None:
        """The result of a stage, if all of it is here."""
        return results.get_record(self, key, facts)

    def put_record(self, record: StageRecord, facts: type | None = None) -> StageRecord:
        """Store a result unless there is one; returns the one that is in the store now."""
        return results.put_record(self, record, facts)

    def last_record(self, stage: StageId, recipe: str) -> StageRecord | None:
        """What a stage of a recipe was the last time."""
        return results.last_record(self, stage, recipe)

    def remember_last(self, record: StageRecord, recipe: str) -> None:
        """Keep a record as what its stage of this recipe was the last time."""
        results.remember_last(self, record, recipe)

    def put_request(self, request: StageRequest) -> Path:
        """Store what ``run-stage`` is to do and return the file."""
        return results.put_request(self, request)

    def get_request(self, key: Key) -> StageRequest:
        """The request for a key."""
        return results.get_request(self, key)

    def lock(self, name: str, *, timeout: float | None = None) -> AbstractContextManager[None]:
        """Hold a named lock between processes; freed when the process dies."""
        return locks.lock(self, name, timeout=timeout)

    def is_locked(self, name: str) -> bool:
        """Whether somebody holds a named lock right now."""
        return locks.is_locked(self, name)

    def scratch(self, label: str) -> Path:
        """Make a new private folder; while it and its process exist, ``gc`` keeps what is used or written."""
        return scratch.scratch(self, label)

    def drop_scratch(self, folder: Path) -> None:
        """Remove a scratch folder of this process."""
        scratch.drop_scratch(folder)

    def lease(self, label: str) -> AbstractContextManager[Path]:
        """A private folder for as long as a block runs; ``gc`` keeps what is used or written meanwhile."""
        return scratch.lease(self, label)

    def clean_scratch(self) -> tuple[Path, ...]:
        """Remove the scratch folders whose owner is gone, and say which."""
        return scratch.clean_scratch(self)


def _refuse_unfit(root: Path) -> None:
    """Stages work below the root, and its path gets into compilers' flags, PATH, and makefiles.

    Raises:
        StoreError: white space or a colon is in it.
    """
    if re.search(r"[\s:]", str(root)):
        raise StoreError(
            f"the store cannot be located at {str(root)!r}: compilers and `make` split paths at whitespace and colons",
            hint=f"set {STORE_VARIABLE} to a folder whose path has neither",
        )


def _read_format(store: StoreLayout) -> bool:
    """Whether the root is marked as a store.

    Raises:
        StoreError: it is one of another format.
    """
    marker = store.root / "format"
    with disk_errors(store):
        try:
            text = marker.read_text(encoding="utf-8", errors="replace").strip()
        except FileNotFoundError:
            return False
    remake = f"use the version of Axletree that created the store, or set {STORE_VARIABLE} to a different folder"
    problem = format_problem(text, str(STORE_FORMAT), file=str(store.root), remake=remake)
    if problem is not None:
        raise StoreError(problem)
    return True


def _refuse_foreign(store: StoreLayout) -> None:
    """A folder that holds something else does not become a store; one that is just being made by another process may.

    Raises:
        StoreError: it holds something else.
    """
    foreign = sorted(path.name for path in store.root.iterdir() if path.name not in {"format", *FOLDERS})
    if foreign:
        raise StoreError(
            f"{store.root} is not an Axletree store and is not empty: it contains {', '.join(foreign[:3])}",
            hint=f"set {STORE_VARIABLE} to a new folder",
        )
