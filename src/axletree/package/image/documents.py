"""The JSON documents of OCI images and of docker's archives, as far as Axletree reads them.

See the OCI image specification 1.1 and, for ``manifest.json``, ``docker image save``. Keys that are not listed here are
ignored, as the specification demands.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.values import Digest
from axletree.package.image.identity import PREFIX

T = TypeVar("T")

LARGEST_DOCUMENT = 4 << 20
"""Bytes of a manifest or configuration; registries accept no larger ones."""
MOST_LAYERS = 500
"""Layers of an image; overlay file systems take fewer."""
REF_NAME = "org.opencontainers.image.ref.name"
"""Annotation with the tag of a manifest in a layout."""
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
_INDEXES = frozenset({INDEX, "application/vnd.docker.distribution.manifest.list.v2+json"})
_MANIFESTS = frozenset({MANIFEST, "application/vnd.docker.distribution.manifest.v2+json"})
_LAYER = re.compile(
    r"application/vnd\.(?:oci\.image\.layer(?:\.nondistributable)?\.v1|docker\.image\.rootfs(?:\.foreign)?\.diff)"
    r"\.tar(?:[+.](gzip|zstd))?"
)
_SUFFIXES = {None: "", "gzip": "gz", "zstd": "zst"}
_DIGEST = re.compile(rf"{PREFIX}([0-9a-f]{{64}})")


class Platform(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A system and a processor."""

    os: str = ""
    architecture: str = ""
    variant: str = ""

    @property
    def name(self) -> str:
        """``linux/amd64``."""
        return f"{self.os}/{self.architecture}"


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A reference to content."""

    media_type: str = ""
    digest: str
    size: int
    platform: Platform | None = None
    annotations: dict[str, str] | None = None

    @property
    def tag(self) -> str | None:
        """Its tag in a layout."""
        return (self.annotations or {}).get(REF_NAME)

    @property
    def is_index(self) -> bool:
        """Whether it refers to a list of manifests."""
        return self.media_type in _INDEXES

    @property
    def is_manifest(self) -> bool:
        """Whether it refers to an image."""
        return self.media_type in _MANIFESTS


class Index(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A list of manifests: ``index.json`` of a layout, or one for several platforms."""

    schema_version: int = 2
    media_type: str = INDEX
    manifests: tuple[Descriptor, ...]


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An image: its configuration and its layers, the lowest first."""

    schema_version: int = 2
    media_type: str = MANIFEST
    config: Descriptor
    layers: tuple[Descriptor, ...]


class Details(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """How containers of an image start; only the variables count here."""

    env: tuple[str, ...] | None = None


class RootFs(msgspec.Struct, frozen=True, kw_only=True):
    """The uncompressed layers."""

    type: str = "layers"
    diff_ids: tuple[str, ...]


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of an image."""

    architecture: str
    os: str
    rootfs: RootFs
    config: Details | None = None

    @property
    def platform(self) -> str:
        """``linux/amd64``."""
        return f"{self.os}/{self.architecture}"

    @property
    def variables(self) -> dict[str, str]:
        """What its environment sets."""
        pairs = (entry.partition("=") for entry in (self.config and self.config.env) or ())
        return {name: value for name, equals, value in pairs if name and equals}


class Saved(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """An image in a docker archive: names of members."""

    config: str
    layers: tuple[str, ...]
    repo_tags: tuple[str, ...] | None = None


def decode(data: bytes, kind: type[T], *, file: str, what: str) -> T:
    """Read a document.

    Args:
        data: its bytes.
        kind: its type.
        file: what errors call it.
        what: what it should be: ``image manifest``.

    Raises:
        IntegrityError: it is not one.
    """
    if len(data) > LARGEST_DOCUMENT:
        most = f"{LARGEST_DOCUMENT >> 20} MiB"
        raise IntegrityError(Problem(file=file, message=f"the {what} is larger than the limit of {most}"))
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise IntegrityError(Problem(file=file, message=f"the file is not a valid {what}: {error}")) from error


def bare_digest(text: str, *, file: str) -> Digest:
    """A digest without its algorithm.

    Raises:
        IntegrityError: it is not a SHA-256, the only one that is read.
    """
    match = _DIGEST.fullmatch(text)
    if match is None:
        raise IntegrityError(Problem(file=file, message=f"{text[:80]!r} is not a SHA-256 digest (expected sha256:...)"))
    return Digest(match[1])


def layer_suffix(descriptor: Descriptor, *, file: str) -> str:
    """How a layer is compressed, as the suffix of a file name: ``gz``, ``zst``, or nothing.

    Raises:
        IntegrityError: it is not a layer that can be read: encrypted, of another format.
    """
    match = _LAYER.fullmatch(descriptor.media_type)
    if match is None:
        kind = descriptor.media_type[:100]
        message = f"the image has a layer of type {kind!r}, but only tar, gzip and zstd layers can be read"
        raise IntegrityError(Problem(file=file, message=message))
    return _SUFFIXES[match[1]]


def checked_layers(config: Config, count: int, *, file: str) -> tuple[Digest, ...]:
    """The diffIDs of an image with so many layers.

    Raises:
        IntegrityError: it has none, too many, or another number of them.
    """
    if config.rootfs.type != "layers" or not count:
        raise IntegrityError(Problem(file=file, message="the image has no layers, so it contains no file system"))
    if count > MOST_LAYERS:
        message = f"the image has {count} layers, more than the limit of {MOST_LAYERS}"
        raise IntegrityError(Problem(file=file, message=message))
    if len(config.rootfs.diff_ids) != count:
        message = f"the image has {count} layers, but its configuration lists {len(config.rootfs.diff_ids)}"
        raise IntegrityError(Problem(file=file, message=message))
    return tuple(bare_digest(text, file=file) for text in config.rootfs.diff_ids)
