"""What ``axletree image`` does, as reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.image_names import find_images
from axletree.app.images import find_image, make_image
from axletree.core.errors import Problem, UsageError
from axletree.disk import each_entry
from axletree.host.image.export import export_docker_archive, export_layout, export_tar
from axletree.recipe.images import FILES, split_from
from axletree.report.images import (
    ExportedImage,
    ListedImage,
    ListedImages,
    MadeImage,
    MadeImages,
    RemovedImage,
    RemovedImages,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from axletree.store import Store


def make_images(store: Store, asked: str, *, environ: Mapping[str, str], note: Callable[[str], None]) -> MadeImages:
    """Bring the images that a command line names into the store; see :func:`find_images` and :func:`make_image`."""
    named = find_images(asked)
    made = []
    for name, image in named.images.items():
        record, locked = make_image(
            store, name, image, named.locked.get(name), folder=named.folder, environ=environ, note=note
        )
        made.append(
            MadeImage(
                name=name,
                id=record.id,
                made_from=image.reference,
                manifest=locked.manifest,
                platform=record.platform,
                system=record.title,
                glibc=record.glibc,
                debs=len(locked.debs),
                files=record.files,
                size=record.size,
                root=str(store.image_path(record.id) / "root"),
            )
        )
    return MadeImages(images=tuple(made))


def list_images(store: Store) -> ListedImages:
    """All images of the store."""
    return ListedImages(
        images=tuple(
            ListedImage(
                id=each.record.id,
                made_from=each.record.made_from,
                platform=each.record.platform,
                system=each.record.title,
                glibc=each.record.glibc,
                layers=len(each.record.layers),
                files=each.record.files,
                size=each.record.size,
                used=each.used,
            )
            for each in store.list_images()
        )
    )


def export_image(store: Store, image: str, to: str, *, folder: Path) -> ExportedImage:
    """Write an image of the store for other tools.

    Args:
        store: where it is.
        image: its id, or the first digits of it.
        to: ``oci:DIR[:TAG]``, ``docker-archive:FILE[:NAME:TAG]`` or ``tar:FILE``.
        folder: that paths are relative to.

    Raises:
        UsageError: there is no such image, or nothing can be written there.
        HostError: it can't be written, or the disk is full. Nothing is left behind then.
    """
    kind, place, tag = split_from(to)
    if kind not in FILES or not place or (kind == "tar" and tag is not None):
        hint = "use oci:DIR[:TAG], docker-archive:FILE[:NAME:TAG] or tar:FILE"
        raise UsageError(Problem(key="--to", message=f"{to!r} is not a valid export target", hint=hint))
    record = find_image(store, image)
    source, target = store.image_path(record.id), folder / place
    if kind == "oci":
        export_layout(source, target, tag)
        size = sum(entry.stat().st_size for _, entry in each_entry(target))
        return ExportedImage(id=record.id, to=str(target), size=size)
    if kind == "tar":
        export_tar(source, record, target)
    else:
        export_docker_archive(source, record, target, tag)
    return ExportedImage(id=record.id, to=str(target), size=target.stat().st_size)


def remove_images(store: Store, images: Sequence[str]) -> RemovedImages:
    """Remove images of the store, all or none.

    Raises:
        UsageError: there is no such image.
        StoreError: the store cannot be written.
    """
    found = {record.id: record for record in (find_image(store, image) for image in images)}
    return RemovedImages(
        images=tuple(
            RemovedImage(id=image, made_from=record.made_from, freed=store.remove_image(image))
            for image, record in found.items()
        )
    )
