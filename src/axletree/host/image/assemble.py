"""An image of the store, made from a source: its root unpacked, its layers as they came."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from axletree.core.images import ImageRecord, OsRelease
from axletree.core.values import Digest, digest_of
from axletree.disk import clone
from axletree.host.image.inside import read_inside
from axletree.host.image.layers import MOST_ENTRIES, LayerFile, apply_layer, check_blob
from axletree.host.image.oci import INDEX_FILE, LAYOUT, blob_path
from axletree.host.image.root import RootWriter
from axletree.package.image.documents import CONFIG, LAYER_GZIP, Descriptor, Manifest, decode
from axletree.package.image.layout import LAYOUT_TEXT, config_document, index_document, manifest_document
from axletree.package.image.system import glibc_version, parse_os_release

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.host.image.source import SourceImage

_OS_RELEASE = ("etc/os-release", "usr/lib/os-release")
_LIBC = "libc.so.6"
_LIBRARY_FOLDERS = (
    *(f"{base}/{name}" for base in ("lib", "usr/lib") for name in ("x86_64-linux-gnu", "aarch64-linux-gnu")),
    *("lib64", "usr/lib64", "lib", "usr/lib"),
)
_LARGEST_TEXT = 1 << 16
_LARGEST_LIBC = 16 << 20


def fill_image(folder: Path, source: SourceImage, *, made_from: str) -> ImageRecord:
    """Fill the folder of an image: ``root`` and ``oci``.

    Args:
        folder: an empty folder.
        source: the image; its layers are checked now.
        made_from: what it was made from, as the recipe has it.

    Raises:
        IntegrityError: a layer is damaged, hostile, or not what the documents say.
        HostError: a layer can't be read.
        OSError: the disk is full, or as the system says of the folder.
    """
    layout, root = folder / "oci", folder / "root"
    blob_path(layout, Digest("x")).parent.mkdir(parents=True)
    root.mkdir(mode=0o755)
    blobs = [_keep(layer, layout) for layer in source.layers]
    room = MOST_ENTRIES
    with RootWriter(root) as writer:
        for number, (layer, (digest, _)) in enumerate(zip(source.layers, blobs, strict=True)):
            writer.begin(layer.name, first=number == 0)
            room -= apply_layer(writer, layer, at=blob_path(layout, digest), room=room)
        writer.finish()
    _describe(layout, source, blobs)
    return ImageRecord(
        id=source.id,
        platform=source.platform,
        layers=tuple(layer.diff_id for layer in source.layers),
        variables=source.variables,
        os_release=_os_release(root),
        glibc=_glibc(root),
        made_from=made_from,
    )


def _keep(layer: LayerFile, layout: Path) -> tuple[Digest, int]:
    """Copy a layer's file into the layout, and check the copy: its digest and size."""
    part = layout / "part"
    with layer.path.open("rb") as source, part.open("wb") as target:
        if not clone(source.fileno(), target.fileno()):
            shutil.copyfileobj(source, target, 1 << 20)
    digest = check_blob(layer, at=part)
    size = part.stat().st_size
    part.replace(blob_path(layout, digest))
    return digest, size


def _describe(layout: Path, source: SourceImage, blobs: list[tuple[Digest, int]]) -> None:
    """Write the documents of the layout: the image's own ones where its layers are as they came."""
    config, manifest = source.config, source.manifest
    if config is None:
        diff_ids = [layer.diff_id for layer in source.layers]
        config = config_document(source.platform, diff_ids, source.variables)
    if manifest is None:
        layers = [Descriptor(media_type=LAYER_GZIP, digest=f"sha256:{digest}", size=size) for digest, size in blobs]
        described = Descriptor(media_type=CONFIG, digest=f"sha256:{digest_of(config)}", size=len(config))
        manifest = manifest_document(described, layers)
    for data in (config, manifest):
        blob_path(layout, digest_of(data)).write_bytes(data)
    media_type = decode(manifest, Manifest, file=INDEX_FILE, what="image manifest").media_type
    described = Descriptor(media_type=media_type, digest=f"sha256:{digest_of(manifest)}", size=len(manifest))
    (layout / INDEX_FILE).write_bytes(index_document(described, None))
    (layout / LAYOUT).write_text(LAYOUT_TEXT)


def _os_release(root: Path) -> OsRelease:
    for path in _OS_RELEASE:
        data = read_inside(root, path, most=_LARGEST_TEXT)
        if data is not None:
            return parse_os_release(data.decode(errors="replace"))
    return OsRelease()


def _glibc(root: Path) -> str | None:
    for folder in _LIBRARY_FOLDERS:
        data = read_inside(root, f"{folder}/{_LIBC}", most=_LARGEST_LIBC)
        if data is not None and (version := glibc_version(data)):
            return version
    return None
