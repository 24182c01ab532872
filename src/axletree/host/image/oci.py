"""Images in OCI layouts: folders with ``index.json`` and contents named by their digests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.core.values import Digest, digest_of
from axletree.host.files import file_errors
from axletree.host.image.layers import LayerFile
from axletree.host.image.source import SourceImage
from axletree.package.image.choice import for_platform, tagged, wrong_platform
from axletree.package.image.documents import (
    LARGEST_DOCUMENT,
    Config,
    Index,
    Manifest,
    bare_digest,
    checked_layers,
    decode,
    layer_suffix,
)

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.package.image.documents import Descriptor

LAYOUT = "oci-layout"
INDEX_FILE = "index.json"
_MOST_NESTED = 4


def blob_path(folder: Path, digest: Digest) -> Path:
    """Where a layout has content."""
    return folder / "blobs" / "sha256" / digest


def read_layout(folder: Path, tag: str | None, *, platform: str, name: str) -> SourceImage:
    """An image of a layout.

    Args:
        folder: the layout.
        tag: which image; needed where there are several.
        platform: which one of an image for several platforms.
        name: what errors call the layout.

    Raises:
        UsageError: there is no such layout or image, or none for the platform.
        IntegrityError: its documents are damaged or not what their names say.
        HostError: it can't be read.
    """
    if not (folder / LAYOUT).is_file() or not (folder / INDEX_FILE).is_file():
        message = "the folder is not an OCI layout" if folder.exists() else "the folder does not exist"
        hint = f"an OCI layout is a folder with {LAYOUT} and {INDEX_FILE}, as `skopeo copy ... oci:DIR` creates it"
        raise UsageError(Problem(file=name, message=message, hint=hint))
    index = decode(_document(folder / INDEX_FILE, name), Index, file=f"{name}/{INDEX_FILE}", what="image index")
    found = tagged(index.manifests, tag, file=name)
    chosen = for_platform(found, platform, file=name)
    for _ in range(_MOST_NESTED):
        if not chosen.is_index:
            break
        data = _content(folder, chosen, name)
        inner = decode(data, Index, file=_called(name, chosen), what="image index")
        chosen = for_platform(tagged(inner.manifests, None, file=name), platform, file=name)
    if not chosen.is_manifest:
        raise IntegrityError(
            Problem(file=name, message=f"the image indexes are nested more than {_MOST_NESTED} levels deep")
        )
    return _image(folder, chosen, platform, name)


def _image(folder: Path, chosen: Descriptor, platform: str, name: str) -> SourceImage:
    data = _content(folder, chosen, name)
    file = _called(name, chosen)
    manifest = decode(data, Manifest, file=file, what="image manifest")
    config_data = _content(folder, manifest.config, name)
    config = decode(config_data, Config, file=_called(name, manifest.config), what="image configuration")
    if config.platform != platform:
        raise wrong_platform([config.platform], platform, file=name)
    diff_ids = checked_layers(config, len(manifest.layers), file=file)
    layers = []
    for descriptor, diff_id in zip(manifest.layers, diff_ids, strict=True):
        digest = bare_digest(descriptor.digest, file=file)
        path = blob_path(folder, digest)
        if not path.is_file():
            raise _missing(name, descriptor)
        layers.append(
            LayerFile(
                path=path,
                name=_called(name, descriptor),
                suffix=layer_suffix(descriptor, file=file),
                diff_id=diff_id,
                digest=digest,
                size=descriptor.size,
            )
        )
    return SourceImage(
        platform=platform,
        layers=tuple(layers),
        variables=config.variables,
        manifest_digest=digest_of(data),
        manifest=data,
        config=config_data,
    )


def _content(folder: Path, descriptor: Descriptor, name: str) -> bytes:
    """A document of a layout, checked."""
    digest = bare_digest(descriptor.digest, file=name)
    path = blob_path(folder, digest)
    if not path.is_file():
        raise _missing(name, descriptor)
    data = _document(path, _called(name, descriptor))
    if digest_of(data) != digest or len(data) != descriptor.size:
        message = f"the file has {len(data)} bytes and sha256 {digest_of(data)}; expected {descriptor.size} bytes"
        raise IntegrityError(Problem(file=_called(name, descriptor), message=message, hint="fetch the image again"))
    return data


def _document(path: Path, name: str) -> bytes:
    with file_errors(name), path.open("rb") as stream:
        return stream.read(LARGEST_DOCUMENT + 1)


def _missing(name: str, descriptor: Descriptor) -> IntegrityError:
    message = "the image needs this file, but it is missing"
    return IntegrityError(Problem(file=_called(name, descriptor), message=message, hint="fetch the image again"))


def _called(name: str, descriptor: Descriptor) -> str:
    return f"{name}/blobs/{descriptor.digest.replace(':', '/')[:80]}"
