"""Images of the store as files for other tools: an OCI layout, a docker archive, a tar of the root."""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import Problem, UsageError
from axletree.core.values import canonical_json, digest_of
from axletree.disk import part_folder, sync_files
from axletree.host.files import appearing, file_errors
from axletree.host.image.layers import chunks_of
from axletree.host.image.oci import INDEX_FILE, LAYOUT, read_layout
from axletree.package.image.documents import Index
from axletree.package.image.layout import index_document
from axletree.package.tar import END, padding, tar_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from axletree.core.images import ImageRecord
    from axletree.host.image.source import SourceImage

_CHUNK = 1 << 20


def export_layout(image: Path, target: Path, tag: str | None) -> None:
    """Copy an image as an OCI layout: its layers and documents as they came.

    Args:
        image: folder of the image in the store.
        target: a new folder.
        tag: what its index calls it.

    Raises:
        UsageError: the folder exists and is not empty.
        HostError: it can't be written, or the disk is full. Nothing is left behind then.
    """
    layout = image / "oci"
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        message = "the path exists, but is not an empty folder"
        raise UsageError(Problem(file=str(target), message=message, hint="choose a new folder"))
    with file_errors(target, "the folder cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with part_folder(target) as part:
            shutil.copytree(layout / "blobs", part / "blobs")
            shutil.copyfile(layout / LAYOUT, part / LAYOUT)
            index = msgspec.json.decode((layout / INDEX_FILE).read_bytes(), type=Index)
            (part / INDEX_FILE).write_bytes(index_document(index.manifests[0], tag))
            sync_files(str(part), ())
            part.rename(target)


def export_docker_archive(image: Path, record: ImageRecord, target: Path, tag: str | None) -> None:
    """Write an image as ``docker load`` and ``podman load`` read it; the same image gives the same bytes.

    Args:
        image: folder of the image in the store.
        record: its record.
        target: the file; what was there is replaced.
        tag: name that it gets there, ``NAME:TAG``.

    Raises:
        HostError: it can't be written, or the disk is full. Nothing is left behind then.
        IntegrityError: the image in the store is damaged.
    """
    source = _own(image, record)
    config = source.config or b""
    name = f"{digest_of(config)}.json"
    layers = [f"{layer.diff_id}.tar" for layer in source.layers]
    tags = [tag if ":" in tag.rpartition("/")[2] else f"{tag}:latest"] if tag else None
    manifest = canonical_json([{"Config": name, "RepoTags": tags, "Layers": layers}])

    def chunks() -> Iterator[bytes]:
        for member, data in ((name, config), ("manifest.json", manifest)):
            yield _header(member, len(data)) + data + padding(len(data))
        for layer in {layer.diff_id: layer for layer in source.layers}.values():
            size = sum(map(len, chunks_of(layer.path, layer.suffix, name=layer.name)))
            yield _header(f"{layer.diff_id}.tar", size)
            yield from chunks_of(layer.path, layer.suffix, name=layer.name)
            yield padding(size)
        yield END

    _write(target, chunks)


def export_tar(image: Path, record: ImageRecord, target: Path) -> None:
    """Write the root of an image as a tar archive: of an image with one layer, that layer.

    Others are written as they are in the store: all belongs to root, and nothing has setuid or setgid bits.

    Raises:
        HostError: it can't be written, or the disk is full. Nothing is left behind then.
        IntegrityError: the image in the store is damaged.
    """
    source = _own(image, record)
    if len(source.layers) == 1:
        layer = source.layers[0]
        _write(target, lambda: chunks_of(layer.path, layer.suffix, name=layer.name))
    else:
        _write(target, lambda: _root_chunks(image / "root"))


def _own(image: Path, record: ImageRecord) -> SourceImage:
    """An image of the store as a source."""
    return read_layout(image / "oci", None, platform=record.platform, name=str(image / "oci"))


def _write(target: Path, chunks: Callable[[], Iterator[bytes]]) -> None:
    with appearing(target) as part, part.open("wb") as stream:
        stream.writelines(chunks())
        stream.flush()
        os.fsync(stream.fileno())


def _header(name: str, size: int) -> bytes:
    return tar_header(name, size=size, executable=False, mtime=0)


def _root_chunks(root: Path) -> Iterator[bytes]:
    """A tar of a folder, sorted; folders come before what is in them, and hard links after their file."""
    seen: dict[tuple[int, int], str] = {}
    waiting = [""]
    while waiting:
        path = waiting.pop()
        place = f"{root}/{path}"
        status = os.lstat(place)
        mode, mtime, identity = stat.S_IMODE(status.st_mode), int(status.st_mtime), (status.st_dev, status.st_ino)
        if stat.S_ISDIR(status.st_mode):
            if path:
                yield tar_header(f"{path}/", size=0, executable=True, mtime=mtime, folder=True, mode=mode)
            names = sorted(os.listdir(place), reverse=True)  # noqa: PTH208
            waiting += [f"{path}/{name}" if path else name for name in names]
        elif status.st_nlink > 1 and identity in seen:
            yield tar_header(path, size=0, executable=False, mtime=mtime, link=seen[identity], hard=True, mode=mode)
        elif stat.S_ISLNK(status.st_mode):
            yield tar_header(path, size=0, executable=False, mtime=mtime, link=os.readlink(place))  # noqa: PTH115
            seen[identity] = path
        elif stat.S_ISREG(status.st_mode):
            seen[identity] = path
            yield tar_header(path, size=status.st_size, executable=False, mtime=mtime, mode=mode)
            with open(place, "rb") as stream:  # noqa: PTH123
                while data := stream.read(_CHUNK):
                    yield data
            yield padding(status.st_size)
    yield END
