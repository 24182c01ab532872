"""Layers: read strictly and in bounded memory, written into a root, and kept as they came."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from isal import isal_zlib

from axletree.binary.mapped import FORGET_EVERY, forget
from axletree.core.errors import IntegrityError, Problem, refused_archive
from axletree.core.units import format_bytes
from axletree.core.values import Digest
from axletree.host.archive import digest_file, map_file
from axletree.host.project_tree import unpacked_limit
from axletree.package.ahead import made_ahead
from axletree.package.conda.untar import read_tar
from axletree.package.image.layer import layer_entry
from axletree.package.sdk.packed import unpacked

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from axletree.host.image.root import RootWriter

MOST_ENTRIES = 1_000_000
"""Of an image: a small layer must not use up the names of a disk. Large ones have a third of it."""
_LATEST = 0xFFFF_FFFF
"""Latest date that every file system can store."""
_AHEAD = 8
_CHUNK = 1 << 20
_LEVEL = 1
"""Of gzip: a layer that was not compressed is packed once, on one core, while somebody waits."""
_GZIP = 16 + 15
_MAGIC = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst", b"\xfd7zXZ": "xz", b"BZh": "bz2"}
"""How compressed files begin -> their suffix."""


class LayerFile(msgspec.Struct, frozen=True, kw_only=True):
    """A layer on disk."""

    path: Path
    name: str
    """What errors call it."""
    suffix: str
    """How it is compressed: ``gz``, ``zst``, ``xz``, ``bz2``, or nothing."""
    diff_id: Digest
    """SHA-256 of its uncompressed content, as the image's configuration has it."""
    digest: Digest | None = None
    """SHA-256 of the file, where a manifest states it."""
    size: int | None = None
    """Bytes of the file, where a manifest states them."""


def suffix_of(path: Path) -> str:
    """How a file is compressed, by how it begins."""
    with path.open("rb") as stream:
        start = stream.read(6)
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")


def chunks_of(path: Path, suffix: str, *, name: str, limit: int | None = None) -> Generator[bytes, None, None]:
    """The uncompressed content of a file, in pieces.

    Args:
        path: the file.
        suffix: how it is compressed.
        name: what errors call it.
        limit: bytes that it may have; by default, as many as its size allows for.

    Raises:
        IntegrityError: it is damaged, or unpacks to more.
        HostError: it can't be read.
    """
    data = map_file(path)
    left = limit = unpacked_limit(len(data)) if limit is None else limit
    since = 0
    for chunk in unpacked(data, f"x.{suffix}", archive=name):
        left -= len(chunk)
        if left < 0:
            raise IntegrityError(refused_archive(name, f"it would unpack to more than {format_bytes(limit)}"))
        yield chunk
        since += len(chunk)
        if since > FORGET_EVERY:
            forget(data, 0, len(data))
            since = 0


def check_blob(layer: LayerFile, *, at: Path) -> Digest:
    """The digest of a copy of a layer's file, which is what the manifest states.

    Raises:
        IntegrityError: the manifest states another size or digest.
        OSError: it can't be read.
    """
    size = at.stat().st_size
    hint = "fetch the image again"
    if layer.size is not None and size != layer.size:
        what = "truncated" if size < layer.size else "too long"
        message = f"the layer is {what}: it has {size} bytes, but the manifest says {layer.size}"
        raise IntegrityError(Problem(file=layer.name, message=message, hint=hint))
    digest = digest_file(at)
    if layer.digest is not None and digest != layer.digest:
        message = f"the layer has sha256 {digest}, but the manifest says {layer.digest}"
        raise IntegrityError(Problem(file=layer.name, message=message, hint=hint))
    return digest


def apply_layer(root: RootWriter, layer: LayerFile, *, at: Path, room: int) -> int:
    """Write a layer over what the root has from the lower ones; the number of its entries.

    Args:
        root: where it goes.
        layer: the layer.
        at: the copy of its file that is read.
        room: how many entries it may have.

    Raises:
        IntegrityError: it is damaged or hostile, or its content is not what its name says.
        HostError: it can't be read.
        OSError: the disk is full, or as the system says of the root.
    """
    digest = hashlib.sha256()
    count = 0
    with closing(made_ahead(_hashed(layer, at, digest), most=_AHEAD)) as chunks:
        for entry, content in read_tar(chunks, archive=layer.name, layer=True):
            count += 1
            if count > room:
                raise IntegrityError(refused_archive(layer.name, f"it has more than {room} entries"))
            found = layer_entry(entry, layer=layer.name)
            mtime = min(entry.mtime, _LATEST)
            match found.kind:
                case "file":
                    root.file(found.path, content, mode=found.mode, mtime=mtime)
                case "folder":
                    root.folder(found.path, mode=found.mode, mtime=mtime)
                case "link":
                    root.link(found.path, found.text, mtime=mtime)
                case "hardlink":
                    root.hard_link(found.path, found.target)
                case "whiteout":
                    root.hide(found.path)
                case "opaque":
                    root.hide_content(found.path)
                case "nothing":
                    pass
    if digest.hexdigest() != layer.diff_id:
        message = f"the layer's content has sha256 {digest.hexdigest()}, but the configuration says {layer.diff_id}"
        raise IntegrityError(Problem(file=layer.name, message=message, hint="fetch the image again"))
    return count


def _hashed(layer: LayerFile, at: Path, digest: hashlib._Hash) -> Generator[bytes, None, None]:
    for chunk in chunks_of(at, layer.suffix, name=layer.name):
        digest.update(chunk)
        yield chunk


def pack_layer(chunks: Iterator[bytes], path: Path) -> tuple[Digest, Digest, int]:
    """Write a layer as gzip: the digest of its content, and digest and size of the file.

    The same content gives the same bytes.

    Raises:
        OSError: the disk is full, or as the system says.
    """
    packer = isal_zlib.compressobj(_LEVEL, wbits=_GZIP)
    content, packed, size = hashlib.sha256(), hashlib.sha256(), 0
    with path.open("wb") as stream:

        def put(data: bytes) -> int:
            packed.update(data)
            return stream.write(data)

        for chunk in chunks:
            content.update(chunk)
            size += put(packer.compress(chunk))
        size += put(packer.flush())
    return Digest(content.hexdigest()), Digest(packed.hexdigest()), size
