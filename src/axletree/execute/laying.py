"""Keeps a folder equal to a tree, in two phases: after a kill or a full disk at any moment the next run repairs it.

Beside the folder lies a listing: what was laid out, and the time and size that each file has since. Before anything is
touched the listing gets the paths that are about to change (the intent); what is put there lies whole on the same disk
by then and is renamed into place, so each path holds the old file or the new one. When all is done the listing says so.

Whoever finds an intent knows which paths to look at. A file that is to be what it was before the intent gets its old
time back: nothing was built in between. All others get a new one, so that build tools see what changed and only that.
What a build wrote into the folder is never touched, unless the tree has a file where a build made a folder.

This is for kills. After a loss of power the time and size of a file tell whether it is the one that was laid out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.trees import Entry, Tree
from axletree.disk import PART, remove_tree
from axletree.host.files import replace_file
from axletree.store.errors import disk_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.core.values import Digest
    from axletree.store.store import Store

_Stamp = tuple[int, int]
"""Time of the last change in nanoseconds, and size: what build tools go by."""


class _Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What was laid into a folder."""

    tree: Tree
    stamps: dict[str, _Stamp]
    """Those of files and links that are as in the tree, or were when the intent was written."""
    intent: tuple[str, ...] = ()
    """Paths that may be changed, new or gone: somebody is laying out another tree, or was killed while at it."""


def lay_out(store: Store, digest: Digest, folder: Path, *, scratch: Path) -> None:
    """Make a folder hold a tree, touching only what differs from it; what else a build wrote there stays.

    Args:
        store: the store that has the tree.
        digest: of the tree.
        folder: where to; its listing lies beside it.
        scratch: a path on the same disk for what is on its way; nothing may be there.

    Raises:
        StoreError: the disk is full, or something can't be read or written; the folder can still be repaired.
        CorruptBlob: content is missing or is not what its name says.
    """
    wanted = store.get_tree(digest)
    with disk_errors(store, target=folder):
        remove_leftovers(listing_of(folder))
        before = _read(listing_of(folder))
        if before is None or not folder.is_dir() or folder.is_symlink():
            _lay_out_afresh(store, digest, wanted, folder)
        else:
            _update(store, folder, before, wanted, scratch)


def holds(store: Store, digest: Digest, folder: Path) -> bool:
    """Whether a tree was laid out in a folder, to the end."""
    listing = _read(listing_of(folder))
    return listing is not None and not listing.intent and listing.tree == store.get_tree(digest)


def laid_out(folder: Path) -> set[Path]:
    """Files in a folder that are as they were laid out."""
    listing = _read(listing_of(folder))
    stamps = {} if listing is None else listing.stamps
    return {folder / path for path, stamp in stamps.items() if _stamp(folder / path) == stamp}


def listing_of(folder: Path) -> Path:
    """Where the listing of a folder lies."""
    return folder.with_name(f"{folder.name}.json")


def remove_leftovers(file: Path) -> None:
    """Remove what those who were killed left beside a file that they were about to replace."""
    for path in file.parent.glob(f".{file.name}.*{PART}"):
        path.unlink(missing_ok=True)


def _read(listing: Path) -> _Listing | None:
    try:
        return msgspec.json.decode(listing.read_bytes(), type=_Listing)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _write(folder: Path, listing: _Listing) -> None:
    replace_file(listing_of(folder), msgspec.json.encode(listing))


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_mtime_ns, status.st_size


def _lay_out_afresh(store: Store, digest: Digest, wanted: Tree, folder: Path) -> None:
    """Nothing is known of the folder, so nothing in it can be told from what was there by mistake."""
    listing_of(folder).unlink(missing_ok=True)
    remove_tree(folder)
    store.materialise(digest, folder)
    _write(folder, _Listing(tree=wanted, stamps=_stamps(folder, wanted)))


def _stamps(folder: Path, tree: Tree) -> dict[str, _Stamp]:
    found = {entry.path: _stamp(folder / entry.path) for entry in tree.entries if entry.kind != "directory"}
    return {path: stamp for path, stamp in found.items() if stamp is not None}


def _update(store: Store, folder: Path, before: _Listing, wanted: Tree, scratch: Path) -> None:
    old = {entry.path: entry for entry in before.tree.entries}
    new = {entry.path: entry for entry in wanted.entries}
    unsure = set(before.intent)
    now = {path: _stamp(folder / path) for path in old.keys() | new.keys()}
    # A build changed these, or removed them: what it compiled from them since is not of what will lie there.
    touched = {path for path, stamp in before.stamps.items() if now[path] != stamp and path not in unsure}
    stamps = {path: stamp for path, stamp in before.stamps.items() if path not in touched}
    gone = sorted((old.keys() | unsure) - new.keys())
    changed = [
        entry for entry in wanted.entries if old.get(entry.path) != entry or not _is_there(folder, entry, stamps, now)
    ]
    if not (gone or changed or before.intent):
        return
    _bring(store, changed, wanted, scratch)
    intent = sorted({*unsure, *gone, *(entry.path for entry in changed)})
    _write(folder, _Listing(tree=before.tree, stamps=stamps, intent=tuple(intent)))
    for path in reversed(gone):
        _remove(folder, path)
    laid = {path: stamp for path, stamp in stamps.items() if path in new}
    for entry in wanted.entries:  # the removal may have taken an empty folder along
        if entry.kind == "directory":
            _make_folder(folder, folder / entry.path)
    for entry in changed:
        if entry.kind != "directory":
            back = stamps.get(entry.path) if old.get(entry.path) == entry else None
            laid[entry.path] = _put(folder, entry, scratch, time=None if back is None else back[0])
    _write(folder, _Listing(tree=wanted, stamps=laid))
    remove_tree(scratch)


def _is_there(folder: Path, entry: Entry, stamps: Mapping[str, _Stamp], now: Mapping[str, _Stamp | None]) -> bool:
    """Whether an entry that was in the tree before lies there as it was laid."""
    if entry.kind == "directory":
        path = folder / entry.path
        return path.is_dir() and not path.is_symlink()
    return now[entry.path] is not None and now[entry.path] == stamps.get(entry.path)


def _bring(store: Store, changed: list[Entry], wanted: Tree, scratch: Path) -> None:
    """Have all content that will be needed on the disk before anything is touched: here it may be full."""
    remove_tree(scratch)
    if changed:
        store.materialise(store.put_tree(msgspec.structs.replace(wanted, entries=tuple(changed))), scratch)


def _put(folder: Path, entry: Entry, fresh: Path, *, time: int | None) -> _Stamp:
    """Put a file or link into its place at once; with the time that it had, where one is given."""
    target = folder / entry.path
    _make_folder(folder, target.parent)
    if target.is_dir() and not target.is_symlink():
        remove_tree(target)
    source = fresh / entry.path
    if time is not None:
        os.utime(source, ns=(time, time), follow_symlinks=False)
    source.replace(target)
    status = target.lstat()
    return status.st_mtime_ns, status.st_size


def _make_folder(folder: Path, wanted: Path) -> None:
    """Make a folder below another; what is no folder on the way, a link to one included, goes."""
    place = folder
    for name in wanted.relative_to(folder).parts:
        place /= name
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)


def _remove(folder: Path, path: str) -> None:
    """Remove what is no longer in the tree, with the folders that only it was in."""
    target = folder / path
    if any((folder / parent).is_symlink() for parent in Path(path).parents):
        return  # a build put a link there: what is behind it is not ours
    if target.is_symlink() or not target.is_dir():
        with suppress(FileNotFoundError, NotADirectoryError):
            target.unlink()
        target = target.parent
    while target != folder:
        try:
            target.rmdir()
        except FileNotFoundError:  # whoever was killed had made only some of them
            pass
        except OSError:
            return  # it holds something else
        target = target.parent
