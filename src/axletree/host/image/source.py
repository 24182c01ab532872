"""An image that was found somewhere: what its documents say, and its layers on disk."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import msgspec

from axletree.core.values import Digest
from axletree.host.image.layers import LayerFile, chunks_of, pack_layer, suffix_of
from axletree.package.image.identity import image_id

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.images import ImageId

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
"""What the kernel calls a processor -> what image registries call it, where these differ."""


class Deb(msgspec.Struct, frozen=True, kw_only=True):
    """A Debian package that an image was made of."""

    name: str
    version: str
    architecture: str
    sha256: str


class SourceImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image whose files are on this machine, not checked yet."""

    platform: str
    layers: tuple[LayerFile, ...]
    variables: dict[str, str] = {}
    manifest_digest: Digest | None = None
    """SHA-256 of its manifest, where it has one."""
    manifest: bytes | None = None
    """Kept for lossless export, with the configuration that it names."""
    config: bytes | None = None
    debs: tuple[Deb, ...] = ()

    @property
    def id(self) -> ImageId:
        """What names it."""
        return image_id([layer.diff_id for layer in self.layers], self.platform)


def host_platform() -> str:
    """This machine, as image registries name it: ``linux/amd64``."""
    machine = platform.machine()
    return f"linux/{_MACHINES.get(machine, machine)}"


def tar_image(path: Path, scratch: Path, *, name: str) -> SourceImage:
    """A root file system in a tar archive, compressed or not, as an image with one layer.

    Args:
        path: the archive.
        scratch: a private folder.
        name: what errors call it.

    Raises:
        IntegrityError: it is damaged, or unpacks to too much.
        HostError: it can't be read.
        OSError: the disk is full, or as the system says of the private folder.
    """
    packed = scratch / "layer.tar.gz"
    diff_id, digest, size = pack_layer(chunks_of(path, suffix_of(path), name=name), packed)
    layer = LayerFile(path=packed, name=name, suffix="gz", diff_id=diff_id, digest=digest, size=size)
    return SourceImage(platform=host_platform(), layers=(layer,))
