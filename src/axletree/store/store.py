"""The store as one value: what the rest of Axletree is given."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from axletree.core.errors import StoreError
from axletree.core.formats import format_problem
from axletree.disk import sync_path, write_new
from axletree.store import blobs, images, locks, results
from axletree.store import ingest as trees
from axletree.store import materialise as making
from axletree.store import scratch as folders
from axletree.store.errors import disk_errors
from axletree.store.layout import FOLDERS, STORE_FORMAT, STORE_VARIABLE, StoreLayout

if TYPE_CHECKING:
    from pathlib import Path


class Store(StoreLayout, frozen=True):
    """A content-addressed store of file trees and of the results that they are.

    It holds no state but its root: any number of processes and threads may use one store at once. Its methods are
    functions of ``axletree.store``'s modules, with the store as their layout.
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
                with folders.work_folder(store, "format") as work, contextlib.suppress(FileExistsError):
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

    # Contents
    put_bytes = blobs.put_bytes
    put_file = blobs.put_file
    has_blob = blobs.has_blob
    blob_ok = blobs.blob_ok
    read_blob = blobs.read_blob
    # Listings, and folders that they are of
    put_tree = trees.put_tree
    get_tree = trees.get_tree
    ingest = trees.ingest
    materialise = making.materialise
    # Records and requests of stages
    get_record = results.get_record
    put_record = results.put_record
    last_record = results.last_record
    remember_last = results.remember_last
    put_request = results.put_request
    get_request = results.get_request
    # Images
    get_image = images.get_image
    put_image = images.put_image
    list_images = images.list_images
    remove_image = images.remove_image
    # Between processes
    lock = locks.lock
    is_locked = locks.is_locked
    scratch = folders.scratch
    drop_scratch = staticmethod(folders.drop_scratch)
    lease = folders.lease
    clean_scratch = folders.clean_scratch


def _refuse_unfit(root: Path) -> None:
    """Stages work below the root, and its path gets into compilers' flags, PATH, and makefiles.

    Raises:
        StoreError: white space or a colon is in it.
    """
    if re.search(r"[\s:]", str(root)):
        raise StoreError(
            f"the store cannot be located at {str(root)!r}: compilers and `make` split paths at whitespace and colons",
            hint=f"set {STORE_VARIABLE} to a folder whose path contains neither",
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
