"""Where things lie under the root of a store. Names only; nothing here writes.

=============== ====================================================================================================
``format``      text ``1``
``blobs``       ``ab/cdef...``: content by SHA-256, read-only; listings of trees are blobs too
``results``     ``ab/<key>.json``: the record of a finished stage, written last and only once
``last``        what a stage of a recipe was the last time, for explanations and estimates
``requests``    ``<key>.json``: what ``run-stage`` was asked
``scratch``     private folders of running processes, each with a lock that ends with its owner
``quarantine``  content that was not what its name says
``work``        the folder of each stage that runs, or that failed and waits for somebody to look inside
``locks``       a file for each lock that was held lately; what counts is whether it is held (``flock``)
``cache``       ``downloads`` that were cut, ``git`` repositories, and what ``uv`` and ``ccache`` keep
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
    from axletree.core.values import Digest, Key, StageId

STORE_FORMAT: Literal[1] = 1
STORE_VARIABLE = "AXLETREE_STORE"

FOLDERS = (
    "blobs",
    "results",
    "last",
    "requests",
    "logs",
    "scratch",
    "work",
    "workspaces",
    "environments",
    "locks",
    "quarantine",
    "cache",
)


class StoreLayout(msgspec.Struct, frozen=True):
    """The root of a store, and the paths that follow from it."""

    root: Path

    @property
    def blobs(self) -> Path:
        """Content by digest."""
        return self.root / "blobs"

    @property
    def results(self) -> Path:
        """Records of finished stages by key."""
        return self.root / "results"

    @property
    def last(self) -> Path:
        """Records of stages as they were the last time."""
        return self.root / "last"

    @property
    def requests(self) -> Path:
        """Requests by key."""
        return self.root / "requests"

    @property
    def logs(self) -> Path:
        """Logs of stages."""
        return self.root / "logs"

    @property
    def scratches(self) -> Path:
        """Private folders of running processes, and what is being written."""
        return self.root / "scratch"

    @property
    def work(self) -> Path:
        """Folders of stages, by key."""
        return self.root / "work"

    @property
    def workspaces(self) -> Path:
        """Build folders that stages keep between runs."""
        return self.root / "workspaces"

    @property
    def environments(self) -> Path:
        """Build environments that stages keep between runs."""
        return self.root / "environments"

    @property
    def locks(self) -> Path:
        """Lock files."""
        return self.root / "locks"

    @property
    def quarantine(self) -> Path:
        """Content that was not what its name says."""
        return self.root / "quarantine"

    @property
    def cache(self) -> Path:
        """Downloads and caches of tools."""
        return self.root / "cache"

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

    def last_path(self, stage: StageId, recipe: str) -> Path:
        """Where the last record of a stage of a recipe lies."""
        name = digest_of(f"{recipe}\n{stage}".encode())
        return self.last / f"{name}.json"


def _checked(key: Key) -> Key:
    if not is_digest(key):
        raise IntegrityError(f"not a key: {key!r}")
    return key
