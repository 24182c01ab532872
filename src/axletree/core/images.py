"""Images as values: the root file system that a stage runs in, named by what it contains."""

from __future__ import annotations

from typing import Literal, NewType

import msgspec

from axletree.core.values import Digest

ImageId = NewType("ImageId", str)
"""SHA-256 over the layers of an image and its platform, 64 lower-case hexadecimal digits. No name, no owner of files,
and no variable is in it."""

IMAGE_SCHEMA: Literal[1] = 1


class StageImage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The image that the programs of a stage see: what of it is in the stage's key."""

    id: ImageId
    variables: dict[str, str] = {}
    """Environment variables that it sets."""


class OsRelease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an image says of its distribution (``os-release(5)``); empty where it does not."""

    id: str = ""
    """``debian``."""
    version_id: str = ""
    """``12``."""
    pretty_name: str = ""
    """``Debian GNU/Linux 12 (bookworm)``."""


class ImageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image that is in the store, written when all of it is there."""

    id: ImageId
    platform: str
    """``linux/amd64``, as image registries name it."""
    layers: tuple[Digest, ...]
    """SHA-256 of each layer's uncompressed tar archive (OCI's diffID), the lowest layer first."""
    variables: dict[str, str] = {}
    """Environment variables that the image's own configuration sets, such as ``PATH``. They are no part of its id: the
    store has those of the image that it was made from first, a lock those that count."""
    os_release: OsRelease = OsRelease()
    glibc: str | None = None
    """Version of its C library, ``2.31``; ``None`` where that is not glibc."""
    made_from: str
    """What it was made from, as the recipe has it."""
    files: int = 0
    """Files, folders and links in its root."""
    size: int = 0
    """Bytes of its files; each counts once, even if it has several names."""
    listing: Digest = Digest("")
    """Digest over the names, kinds, permissions, sizes and targets in its root."""
    schema: Literal[1] = IMAGE_SCHEMA

    @property
    def title(self) -> str:
        """What people call its system."""
        return self.os_release.pretty_name or self.os_release.id or "unknown system"
