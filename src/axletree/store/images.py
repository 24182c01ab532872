"""Images: root file systems that stages run in, unpacked once and shared by all that use them.

An image is a folder named by its id, with ``root``, ``oci`` (its layers as they came) and ``image.json``. It is filled
under another name and renamed when all of it is on the disk. An image that is used is touched, which is what ``gc``
goes by.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import msgspec

from axletree.core.images import ImageId, ImageRecord
from axletree.core.trees import is_digest
from axletree.core.values import Digest, canonical_json
from axletree.disk import measure_root, part_folder, remove_tree, sync_files, sync_path, write_new
from axletree.store.blobs import CHUNK, hash_descriptor
from axletree.store.errors import disk_errors
from axletree.store.locks import lock, using
from axletree.store.results import read_json
from axletree.store.walk import each_file, touched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from axletree.store.layout import StoreLayout

RECORD = "image.json"
ROOT = "root"
OCI = "oci"


class StoredImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image of the store, and when it was used last."""

    record: ImageRecord
    used: float
    """In seconds since the epoch."""


def get_image(layout: StoreLayout, image: ImageId) -> ImageRecord | None:
    """An image, if it is here; marks it as used.

    Raises:
        StoreError: the store cannot be read.
    """
    path = layout.image_path(image) / RECORD
    with disk_errors(layout), using(layout):
        record = read_record(layout, image)
        if record is not None:
            with contextlib.suppress(OSError):  # another user's image in a shared store
                os.utime(path)
    return record


def put_image(layout: StoreLayout, image: ImageId, fill: Callable[[Path], ImageRecord]) -> ImageRecord:
    """Store an image unless it is here; the record of the one that is in the store now.

    Two processes that want the same image wait for each other. What a killed one left goes.

    Args:
        layout: the store.
        image: its id.
        fill: fills a folder with ``root`` and ``oci``, and returns the record; what follows from the listing of
            ``root`` is set here.

    Raises:
        StoreError: the store cannot be written or is full. Nothing is left behind then.
        AxletreeError: what ``fill`` raises; nothing is left behind either.
    """
    final = layout.image_path(image)
    record = get_image(layout, image)  # another user's image has another user's lock
    if record is not None:
        return record
    with disk_errors(layout), lock(layout, f"image-{image}"):
        record = get_image(layout, image)
        if record is not None:
            return record
        with part_folder(final) as part:
            record = fill(part)
            files, size, listing = measure_root(part / ROOT)
            record = msgspec.structs.replace(record, files=files, size=size, listing=Digest(listing))
            sync_files(str(part), ())
            write_new(str(part / RECORD), canonical_json(record) + b"\n", mode=0o644, durable=True)
            with using(layout):
                remove_tree(final)  # one without a record: it was being removed
                part.rename(final)
                sync_path(layout.images)
    return record


def list_images(layout: StoreLayout) -> tuple[StoredImage, ...]:
    """All images, the one that was used last first.

    Raises:
        StoreError: the store cannot be read.
    """
    with disk_errors(layout):
        found = [
            StoredImage(record=record, used=touched(layout.image_path(image) / RECORD))
            for image in each_image(layout)
            if (record := read_record(layout, image)) is not None
        ]
    return tuple(sorted(found, key=lambda each: (-each.used, each.record.id)))


def remove_image(layout: StoreLayout, image: ImageId) -> int:
    """Remove an image; bytes that this frees.

    Raises:
        StoreError: the store cannot be written.
    """
    with disk_errors(layout), lock(layout, f"image-{image}"):
        return drop_image(layout, image)


def drop_image(layout: StoreLayout, image: ImageId, *, dry_run: bool = False) -> int:
    """As :func:`remove_image`, for who has the store for himself.

    Raises:
        OSError: as the system says.
    """
    folder = layout.image_path(image)
    size = sum(status.st_blocks * 512 for status in _files(folder))
    if not dry_run:
        (folder / RECORD).unlink(missing_ok=True)  # first: what has no record is no image
        remove_tree(folder)
    return size


def each_image(layout: StoreLayout) -> tuple[ImageId, ...]:
    """Names of all folders of images, with and without a record."""
    return tuple(ImageId(name) for name in sorted(os.listdir(layout.images)) if is_digest(name))  # noqa: PTH208


def is_ours(folder: Path) -> bool:
    """Whether this user may change an image: in a shared store, others may have some that only they can read."""
    user = os.geteuid()
    return user == 0 or folder.stat().st_uid == user


def read_record(layout: StoreLayout, image: ImageId) -> ImageRecord | None:
    """The record of an image; ``None`` where there is none that can be read."""
    record = read_json(layout.image_path(image) / RECORD, ImageRecord)
    return record if record is not None and record.id == image else None


def image_fault(layout: StoreLayout, image: ImageId) -> str | None:
    """What is wrong with an image, as far as a listing and the digests of its layers tell; ``None``: nothing."""
    folder = layout.image_path(image)
    record = read_record(layout, image)
    if record is None:
        return "its record is missing or cannot be read"
    try:
        if measure_root(folder / ROOT) != (record.files, record.size, record.listing):
            return "its root is not what was unpacked"
        blobs = folder / OCI / "blobs" / "sha256"
        for path in sorted(blobs.iterdir()):
            with path.open("rb", buffering=0) as file:
                digest, _ = hash_descriptor(file.fileno(), memoryview(bytearray(CHUNK)))
            if digest != path.name:
                return f"its layer {path.name[:16]} is corrupt"
    except FileNotFoundError as error:
        return f"{error.filename} is missing"
    return None


def _files(folder: Path) -> list[os.stat_result]:
    """Status of every file of a folder once, however many names it has."""
    found = {(status.st_dev, status.st_ino): status for _, status in each_file(folder)}
    return list(found.values())
