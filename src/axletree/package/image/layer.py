"""What an entry of a layer means, or why it is refused. Layers come from strangers.

Names are relative to the root of the image and lead nowhere else. A link's target is only text: links are never
followed here, and inside of the image they start at its root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.package.conda.untar import tar_damaged, tar_refused

if TYPE_CHECKING:
    from axletree.package.conda.untar import TarEntry

MOST_PARTS = 250
"""Folders that lie in each other: what removes or lists them keeps one open for each."""
LONGEST_NAME = 255
LONGEST_PATH = 3000
"""Bytes, as file systems have it; the path of the store comes before it."""
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_DEVICES = "dev"
"""The folder that every runner mounts itself: what a layer has there besides files is left out."""


class LayerEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one entry of a layer does to the root."""

    kind: Literal["file", "folder", "link", "hardlink", "whiteout", "opaque", "nothing"]
    """``whiteout``: what lower layers have at that path goes. ``opaque``: what they have in that folder goes."""
    path: tuple[str, ...] = ()
    """Its folders and its name."""
    mode: int = 0
    """Permissions; without the bits that would let others act as the owner."""
    target: tuple[str, ...] = ()
    """Of a hard link: the path of the file."""
    text: str = ""
    """Of a symbolic link: where it points, as written."""


def layer_entry(entry: TarEntry, *, layer: str) -> LayerEntry:
    """What an entry does.

    Args:
        entry: as it was read.
        layer: what errors call its layer.

    Raises:
        IntegrityError: it leads out of the root, is a device outside of ``/dev``, or means nothing that can be relied
            on.
    """
    path = _parts(entry.path, layer, entry.path)
    if not path:
        if entry.kind != "folder":
            raise tar_damaged(layer, "the entry has an empty name", member=entry.path)
        return LayerEntry(kind="nothing")
    name = path[-1]
    if any(part.startswith(_WHITEOUT) for part in path[:-1]):
        raise tar_damaged(layer, "the entry is in a folder with a name reserved for whiteouts", member=entry.path)
    if name.startswith(_WHITEOUT):
        return _whiteout(entry, path, layer)
    match entry.kind:
        case "file":
            return LayerEntry(kind="file", path=path, mode=entry.mode & 0o777 | 0o400)
        case "folder":
            return LayerEntry(kind="folder", path=path, mode=entry.mode & 0o1777 | 0o700)
        case "link":
            if not entry.target:
                raise tar_damaged(layer, "the entry is a link without a target", member=entry.path)
            return LayerEntry(kind="link", path=path, text=entry.target)
        case "hardlink":
            target = _parts(entry.target, layer, entry.path)
            if not target:
                raise tar_damaged(layer, "the entry is a hard link without a target", member=entry.path)
            return LayerEntry(kind="hardlink", path=path, target=target)
        case "device" if path[0] != _DEVICES:
            message = "the entry is a device outside /dev, which images cannot contain"
            raise tar_refused(layer, message, member=entry.path)
    return LayerEntry(kind="nothing")


def _whiteout(entry: TarEntry, path: tuple[str, ...], layer: str) -> LayerEntry:
    if entry.kind != "file" or entry.size:
        raise tar_damaged(
            layer, "the entry has a name reserved for whiteouts, but is not an empty file", member=entry.path
        )
    if path[-1] == _OPAQUE:
        return LayerEntry(kind="opaque", path=path[:-1])
    name = path[-1].removeprefix(_WHITEOUT)
    if name.startswith(_WHITEOUT):  # what AUFS keeps for itself
        return LayerEntry(kind="nothing")
    if name in {"", ".", ".."}:
        raise tar_damaged(layer, "the entry is a whiteout without a name", member=entry.path)
    return LayerEntry(kind="whiteout", path=(*path[:-1], name))


def _parts(path: str, layer: str, member: str) -> tuple[str, ...]:
    """The parts of a path below the root; none for the root itself."""
    path = path.removeprefix("./")
    if path in {"", ".", "/"}:  # umoci writes the root as "/"
        return ()
    parts = tuple(path.removesuffix("/").split("/"))
    if parts[0] == "":
        raise tar_refused(layer, f"the entry has an absolute path: {path[:200]!r}", member=member)
    if ".." in parts:
        raise tar_refused(layer, f"the entry has a path that leaves the image: {path[:200]!r}", member=member)
    if "" in parts or "." in parts or "\0" in path:
        raise tar_damaged(layer, f"the entry has a path with an empty component: {path[:200]!r}", member=member)
    sizes = [len(part.encode()) for part in parts]
    if len(parts) > MOST_PARTS or max(sizes) > LONGEST_NAME or sum(sizes) + len(sizes) > LONGEST_PATH:
        raise tar_refused(layer, "the entry has a path that is too long or too deep", member=member)
    return parts
