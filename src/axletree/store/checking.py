"""Is all of a store right? What is not is set aside, so that it can be made anew."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

import msgspec

from axletree.core.trees import is_digest
from axletree.core.values import Digest
from axletree.disk import remove_leftovers
from axletree.store.blobs import blob_ok
from axletree.store.errors import disk_errors
from axletree.store.images import drop_image, each_image, image_fault, is_ours
from axletree.store.locks import lock, sweeping
from axletree.store.results import is_complete
from axletree.store.scratch import clean_scratch
from axletree.store.walk import each_blob, each_record, files_in, record_title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.store.layout import StoreLayout

_RECORD_NAME = re.compile(r"[0-9a-f]{64}\.json")


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of ``verify``, and what it did."""

    blobs: int
    """Number of files that were read."""
    size: int
    """Bytes that were read."""
    corrupt: tuple[Digest, ...]
    """Content that did not match its name; it is now in quarantine."""
    strays: tuple[str, ...]
    """Files in the wrong place; they are now in quarantine."""
    incomplete: tuple[str, ...]
    """Records that could not be read or whose tree is incomplete, as ``stage (key)``; they were removed."""
    leftovers: tuple[str, ...]
    """Scratch folders of processes that no longer exist; they were removed."""
    images: tuple[str, ...] = ()
    """Damaged images of this user, as ``id: what is wrong``; they were removed."""

    @property
    def sound(self) -> bool:
        """Whether nothing was wrong. Leftovers are no damage: a killed process leaves them."""
        return not (self.corrupt or self.strays or self.incomplete or self.images)


def verify(layout: StoreLayout) -> VerifyReport:
    """Read every content again and check every record; what is wrong is set aside, so that it can be made anew.

    Raises:
        StoreError: the store cannot be read or written.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (start-up time: every command imports the store)

    leftovers = clean_scratch(layout)
    with disk_errors(layout):
        strays = tuple(_set_strays_aside(layout))
        found = dict(each_blob(layout))
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            sound = dict(zip(found, pool.map(lambda digest: blob_ok(layout, digest), found), strict=True))
        with sweeping(layout):
            incomplete = tuple(_remove_incomplete(layout))
        images = tuple(_remove_damaged(layout))
    # A blob that a concurrent gc removed is not corrupt: only what went into quarantine is.
    corrupt = tuple(
        digest for digest, right in sound.items() if not right and any(layout.quarantine.glob(f"{digest}.*"))
    )
    return VerifyReport(
        blobs=len(found),
        size=sum(status.st_size for status in found.values()),
        corrupt=corrupt,
        strays=strays,
        incomplete=incomplete,
        leftovers=tuple(folder.name for folder in leftovers),
        images=images,
    )


def _remove_damaged(layout: StoreLayout) -> Iterator[str]:
    remove_leftovers(layout.images)
    for image in each_image(layout):
        if not is_ours(layout.image_path(image)):
            continue
        with lock(layout, f"image-{image}"):
            fault = image_fault(layout, image)
            if fault is not None:
                drop_image(layout, image)
                yield f"{image[:12]}: {fault}"


def _remove_incomplete(layout: StoreLayout) -> Iterator[str]:
    for path, record in each_record(layout):
        if record is None or path.stem != record.key or not is_complete(layout, record.tree):
            path.unlink(missing_ok=True)
            yield record_title(path, record)


def _set_strays_aside(layout: StoreLayout) -> Iterator[str]:
    for path in (*files_in(layout.blobs), *files_in(layout.results)):
        parts = path.relative_to(layout.root).parts
        right = len(parts) == 3 and (
            is_digest(parts[1] + parts[2])
            if parts[0] == "blobs"
            else _RECORD_NAME.fullmatch(parts[2]) is not None and parts[2].startswith(parts[1])
        )
        if not right:
            path.rename(layout.quarantine / f"{'-'.join(parts)[-120:]}.{time.time_ns():x}")
            yield "/".join(parts)
