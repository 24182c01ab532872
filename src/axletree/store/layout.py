"""Where things lie under the root of a store. Names only; nothing here writes.

=============== ====================================================================================================
``format``      text ``1``
``blobs``       ``ab/cdef...``: content by SHA-256, read-only; listings of trees are blobs too
``results``     ``ab/<key>.json``: the record of a finished stage, written last and only once
``last``        what a stage of a recipe was the last time, for explanations and estimates
``requests``    ``<key>.json``: what ``run-stage`` was asked
``scratch``     private folders of running processes, each with a lock that ends with its owner
``quarantine``  content that was not what its name says
``images``      ``<id>``: the root of an image, its layers as they came, and ``image.json``, written last
``work``        the folder of each stage that runs, or that failed and waits for somebody to look inside
``locks``       a file for each lock that was held lately; what counts is whether it is held (``flock``)
``cache``       ``downloads`` that were cut, ``git`` repositories, and what ``uv``, ``ccache`` and Zig keep
others          ``logs``, ``workspaces``, ``environments``: their owners decide what is in them
=============== ====================================================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError
from axletree.core.trees import is_digest
from axletree.core.values import digest_of

if TYPE_CHECKING:
    from axletree.core.images import ImageId
    from axletree.core.values import Digest, Key, StageId

STORE_FORMAT: Literal[1] = 1
STORE_VARIABLE = "AXLETREE_STORE"


class Folder:
    """A folder right below the root of a store, as an attribute of its layout."""

    def __init__(self, name: str) -> None:
        """Take what it is called on disk."""
        self.name = name

    def __get__(self, layout: StoreLayout, _: object) -> Path:
        """Where it is."""
        return layout.root / self.name


class StoreLayout(msgspec.Struct, frozen=True):
    """The root of a store, and the paths that follow from it."""

    root: Path

    blobs = Folder("blobs")
    """Content by digest."""
    results = Folder("results")
    """Records of finished stages by key."""
    last = Folder("last")
    """Records of stages as they were the last time."""
    requests = Folder("requests")
    """Requests by key."""
    logs = Folder("logs")
    """Logs of stages."""
    scratches = Folder("scratch")
    """Private folders of running processes, and what is being written."""
    work = Folder("work")
    """Folders of stages, by key."""
    workspaces = Folder("workspaces")
    """Build folders that stages keep between runs."""
    environments = Folder("environments")
    """Build environments that stages keep between runs."""
    images = Folder("images")
    """Images, by what identifies them."""
    locks = Folder("locks")
    """Lock files."""
    quarantine = Folder("quarantine")
    """Content that was not what its name says."""
    cache = Folder("cache")
    """Downloads and caches of tools."""

    def blob_path(self, digest: Digest) -> Path:
        """Where the content with this digest lies, whether it is there or not.

        Raises:
            IntegrityError: this is no digest.
        """
        if not is_digest(digest):
            raise IntegrityError(f"not a digest: {digest!r}")
        return self.blobs / digest[:2] / digest[2:]

    def record_path(self, key: Key) -> Path:
        """Where the record of a key lies.

        Raises:
            IntegrityError: this is no key.
        """
        return self.results / _checked(key)[:2] / f"{key}.json"

    def request_path(self, key: Key) -> Path:
        """Where the request for a key lies.

        Raises:
            IntegrityError: this is no key.
        """
        return self.requests / f"{_checked(key)}.json"

    def image_path(self, image: ImageId) -> Path:
        """Where an image lies, whether it is there or not.

        Raises:
            IntegrityError: this is no id of an image.
        """
        if not is_digest(image):
            raise IntegrityError(f"not an image id: {image!r}")
        return self.images / image

    def last_path(self, stage: StageId, recipe: str) -> Path:
        """Where the last record of a stage of a recipe lies."""
        name = digest_of(f"{recipe}\n{stage}".encode())
        return self.last / f"{name}.json"


FOLDERS = tuple(each.name for each in vars(StoreLayout).values() if isinstance(each, Folder))


def _checked(key: Key) -> Key:
    if not is_digest(key):
        raise IntegrityError(f"not a key: {key!r}")
    return key
