"""Images of the store: make them from what a recipe names, find, export and remove them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.core.images import ImageId
from axletree.core.units import some_of
from axletree.core.values import Digest
from axletree.host.image.assemble import fill_image
from axletree.host.image.debian import DebianRoot, debian_image
from axletree.host.image.docker_archive import read_docker_archive
from axletree.host.image.oci import read_layout
from axletree.host.image.registry import Skopeo, fetch_image, pinned_digest
from axletree.host.image.source import host_platform, tar_image
from axletree.package.image.identity import image_id
from axletree.recipe.image_locks import LockedDeb, LockedImage
from axletree.recipe.images import split_from
from axletree.store.errors import disk_errors
from axletree.store.scratch import work_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.core.images import ImageRecord
    from axletree.host.image.source import SourceImage
    from axletree.recipe.images import Image
    from axletree.store import Store

_APT = Path("/etc/apt")
_SHORTEST = 4
"""Digits that name an image on a command line."""


def make_image(
    store: Store,
    name: str,
    image: Image,
    locked: LockedImage | None,
    *,
    folder: Path,
    environ: Mapping[str, str] = os.environ,
    note: Callable[[str], object] = lambda _: None,
) -> tuple[ImageRecord, LockedImage]:
    """Bring an image into the store, and say exactly which one it is.

    A locked image that is in the store already is only looked up.

    Args:
        store: where it goes.
        name: what the recipe calls it.
        image: what it is made from.
        locked: which one it has to be; ``None`` takes what there is now.
        folder: of the recipe; paths are relative to it.
        environ: variables of this process.
        note: gets what takes a while.

    Raises:
        UsageError: there is no such image, none for this machine, or it is the host itself.
        IntegrityError: it is damaged or hostile, or not what is locked.
        HostError: it can't be fetched or made here.
        StoreError: the store cannot be written or is full. Nothing is left behind then.
    """
    if locked is not None:
        known = locked_record(store, locked)
        if known is not None:
            return _called(known, locked), locked
    if image.kind == "host":
        message = 'from = "host" uses the files of this machine, so there is no image to make'
        raise UsageError(Problem(key=f"images.{name}", message=message))
    with disk_errors(store), work_folder(store, "image") as scratch:
        source = _source(image, locked, scratch, folder=folder, environ=environ, note=note)
        found = _locked(name, image, source)
        if locked is not None:
            _refuse_other(locked, found)

        def fill(part: Path) -> ImageRecord:
            note(f"unpacking {image.reference}")
            return fill_image(part, source, made_from=image.reference)

        record = store.put_image(source.id, fill)
    return _called(record, found), found


def _called(record: ImageRecord, locked: LockedImage) -> ImageRecord:
    """The record of an image as this recipe has it: others may have the same layers with other variables."""
    return msgspec.structs.replace(record, variables=locked.variables, made_from=locked.reference)


def _source(
    image: Image,
    locked: LockedImage | None,
    scratch: Path,
    *,
    folder: Path,
    environ: Mapping[str, str],
    note: Callable[[str], object],
) -> SourceImage:
    """The files of an image on this machine."""
    platform = host_platform()
    if image.debian is not None:
        table = image.debian
        note(f"creating Debian {table.suite} with mmdebstrap")
        wanted = DebianRoot(suite=table.suite, packages=table.packages, mirror=table.mirror)
        return debian_image(wanted, scratch, environ=environ, apt=_APT)
    kind, place, tag = split_from(image.from_ or "")
    path = folder / place
    if kind == "oci":
        return read_layout(path, tag, platform=platform, name=place)
    if kind != "registry":
        if not path.is_file():
            message = "the path is not a file" if path.exists() else "the file does not exist"
            raise UsageError(Problem(file=place, message=message, hint=f"from = {image.from_!r} names an archive"))
        note(f"reading {place}")
        if kind == "tar":
            return tar_image(path, scratch, name=place)
        return read_docker_archive(path, tag, scratch, platform=platform, name=place)
    skopeo = Skopeo(environ=environ, platform=platform)
    pinned = Digest(locked.manifest) if locked is not None and locked.manifest else pinned_digest(place, skopeo)
    note(f"fetching {place}")
    return fetch_image(place, pinned, skopeo, scratch)


def _locked(name: str, image: Image, source: SourceImage) -> LockedImage:
    return LockedImage(
        name=name,
        kind=cast("Literal['oci', 'docker-archive', 'tar', 'registry', 'debian']", image.kind),
        reference=image.reference,
        id=source.id,
        platform=source.platform,
        layers=tuple(layer.diff_id for layer in source.layers),
        manifest=source.manifest_digest,
        variables=dict(sorted(source.variables.items())),
        debs=tuple(
            LockedDeb(name=deb.name, version=deb.version, architecture=deb.architecture, sha256=deb.sha256)
            for deb in source.debs
        ),
    )


def _refuse_other(locked: LockedImage, found: LockedImage) -> None:
    """An image has to be the one that is locked.

    Raises:
        IntegrityError: it is another one.
    """
    if found.id == locked.id:
        return
    what = f"{locked.reference} is not the image that the lock pins"
    if locked.debs or found.debs:
        now, then = ({(deb.name, deb.version) for deb in each.debs} for each in (found, locked))
        changed = [f"{name} {version}" for name, version in sorted(now - then)]
        what += f": {some_of(changed, 4)}" if changed else ": its packages are the same, but their installation differs"
    elif found.manifest and locked.manifest != found.manifest:
        what = f"{locked.reference} has moved: the lock has sha256:{locked.manifest}, found sha256:{found.manifest}"
    else:
        what += f": the lock has {locked.id[:12]}, found {found.id[:12]}"
    hint = "to use the new one, update the lock: axletree lock RECIPE --upgrade"
    raise IntegrityError(Problem(key=f"images.{locked.name}", message=what, hint=hint))


def find_image(store: Store, name: str) -> ImageRecord:
    """An image of the store by its id, or the first digits of it; marks it as used.

    Raises:
        UsageError: there is none, or several begin so.
        StoreError: the store cannot be read.
    """
    found = [each.record for each in store.list_images() if each.record.id.startswith(name)]
    if len(name) < _SHORTEST or not found:
        raise UsageError(f"no image in the store has the id {name!r}", hint="list them: axletree image list")
    if len(found) > 1:
        some = some_of([record.id[:12] for record in found])
        raise UsageError(f"the ids of {len(found)} images start with {name!r}: {some}", hint="add more digits")
    return store.get_image(found[0].id) or found[0]


def locked_record(store: Store, locked: LockedImage) -> ImageRecord | None:
    """A locked image, if it is in the store; marks it as used.

    Raises:
        IntegrityError: the lock contradicts itself.
        StoreError: the store cannot be read.
    """
    layers = tuple(Digest(layer) for layer in locked.layers)
    if image_id(layers, locked.platform) != locked.id:
        message = "the id does not match the image's layers and platform"
        raise IntegrityError(Problem(key=f"images.{locked.name}", message=message, hint="lock the recipe again"))
    return store.get_image(ImageId(locked.id))
