"""Images in the archives that ``docker save`` and ``skopeo copy ... docker-archive:`` write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem, UsageError, refused_archive
from axletree.core.units import some_of
from axletree.host.image.layers import LayerFile, chunks_of, pack_layer, suffix_of
from axletree.host.image.source import SourceImage
from axletree.package.conda.untar import read_tar, tar_damaged
from axletree.package.image.choice import wrong_platform
from axletree.package.image.documents import LARGEST_DOCUMENT, MOST_LAYERS, Config, Saved, checked_layers, decode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_MANIFEST = "manifest.json"
_MOST_MEMBERS = 20 * MOST_LAYERS


def read_docker_archive(path: Path, tag: str | None, scratch: Path, *, platform: str, name: str) -> SourceImage:
    """An image of an archive.

    Args:
        path: the archive, compressed or not.
        tag: which image, ``NAME:TAG``; needed where there are several.
        platform: what the image must be built for.
        scratch: a private folder, for its layers.
        name: what errors call the archive.

    Raises:
        UsageError: there is no such image, or it is for another platform.
        IntegrityError: the archive is damaged, or lacks what its manifest names.
        HostError: it can't be read.
        OSError: the disk is full, or as the system says of the private folder.
    """
    members = _extract(path, scratch, name)
    saved = decode(_read(members, _MANIFEST, name), tuple[Saved, ...], file=f"{name}/{_MANIFEST}", what="manifest")
    chosen = _choose(saved, tag, name)
    config_data = _read(members, chosen.config, name)
    config = decode(config_data, Config, file=f"{name}/{chosen.config[:80]}", what="image configuration")
    if config.platform != platform:
        raise wrong_platform([config.platform], platform, file=name)
    layers = []
    for number, diff_id in enumerate(checked_layers(config, len(chosen.layers), file=name)):
        member = _member(members, chosen.layers[number], name)
        packed = scratch / f"layer-{number}.tar.gz"
        called = f"{name}/{chosen.layers[number][:80]}"
        _, digest, size = pack_layer(chunks_of(member, suffix_of(member), name=called), packed)
        layers.append(LayerFile(path=packed, name=called, suffix="gz", diff_id=diff_id, digest=digest, size=size))
    return SourceImage(platform=platform, layers=tuple(layers), variables=config.variables, config=config_data)


def _extract(path: Path, scratch: Path, name: str) -> dict[str, Path]:
    """Each member as a file under a name of ours; links to members that came before are followed."""
    members: dict[str, Path] = {}
    for entry, content in read_tar(chunks_of(path, suffix_of(path), name=name), archive=name):
        inside = entry.path.removeprefix("./")
        if len(members) > _MOST_MEMBERS:
            raise IntegrityError(refused_archive(name, f"it has more than {_MOST_MEMBERS} members"))
        if entry.kind == "file":
            target = scratch / f"member-{len(members)}"
            with target.open("xb") as stream:
                stream.writelines(content)
            members[inside] = target
        elif entry.kind in {"link", "hardlink"}:
            # `docker save` writes a layer that occurs twice as a link: ../ID/layer.tar
            known = members.get(entry.target.removeprefix("../").removeprefix("./"))
            if known is None:
                raise tar_damaged(
                    name, "the entry is a link to a file that does not precede it in the archive", member=inside
                )
            members[inside] = known
    return members


def _choose(saved: Sequence[Saved], tag: str | None, name: str) -> Saved:
    tags = [each for image in saved for each in image.repo_tags or ()]
    known = f"its tags: {some_of(tags)}" if tags else None
    fitting = [image for image in saved if tag is None or tag in (image.repo_tags or ())]
    if not fitting:
        message = f"the archive contains no image with the tag {tag!r}" if tag else "the archive contains no image"
        raise UsageError(Problem(file=name, message=message, hint=known))
    if len(fitting) > 1:
        message = f"the archive contains {len(fitting)} images, but none is selected by its tag"
        raise UsageError(Problem(file=name, message=message, hint=known))
    return fitting[0]


def _member(members: dict[str, Path], inside: str, name: str) -> Path:
    if inside not in members:
        message = f"the archive does not contain {inside[:200]!r}, which its image needs"
        raise IntegrityError(Problem(file=name, message=message, hint="create the archive again"))
    return members[inside]


def _read(members: dict[str, Path], inside: str, name: str) -> bytes:
    with _member(members, inside, name).open("rb") as stream:
        return stream.read(LARGEST_DOCUMENT + 1)
