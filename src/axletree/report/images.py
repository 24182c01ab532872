"""The reports of ``axletree image``."""

from __future__ import annotations

import msgspec

from axletree.core.images import ImageId


class MadeImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is in the store now."""

    name: str
    """Its name in the recipe or file."""
    id: ImageId
    made_from: str
    manifest: str | None
    """SHA-256 of its manifest, if it has one."""
    platform: str
    system: str
    """Its distribution, such as `Debian GNU/Linux 12 (bookworm)`."""
    glibc: str | None
    """Version of its glibc."""
    debs: int
    """Number of Debian packages that it was created from; 0 if it was not created here."""
    files: int
    size: int
    """Bytes of its files."""
    root: str
    """Folder with its files."""


class MadeImages(msgspec.Struct, frozen=True, kw_only=True):
    """The images that a recipe or file names: report of `image make`."""

    images: tuple[MadeImage, ...]


class ListedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image in the store."""

    id: ImageId
    made_from: str
    """What it was made from first."""
    platform: str
    system: str
    glibc: str | None
    layers: int
    files: int
    size: int
    """Bytes of its files, without the layers that are kept for export."""
    used: float
    """When it was last used, in seconds since the epoch."""


class ListedImages(msgspec.Struct, frozen=True, kw_only=True):
    """All images in the store, the most recently used first: report of `image list`."""

    images: tuple[ListedImage, ...]


class ExportedImage(msgspec.Struct, frozen=True, kw_only=True):
    """Report of `image export`."""

    id: ImageId
    to: str
    """Folder or file that was written."""
    size: int
    """Bytes that were written."""


class RemovedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that was removed."""

    id: ImageId
    made_from: str
    freed: int
    """Bytes that this freed."""


class RemovedImages(msgspec.Struct, frozen=True, kw_only=True):
    """Report of `image remove`."""

    images: tuple[RemovedImage, ...]
