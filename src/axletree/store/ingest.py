"""Folders -> trees in the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.globs import glob_matcher
from axletree.core.trees import Entry, decode_tree, encode_tree, is_safe_link, is_safe_path, make_tree
from axletree.disk import remove_tree
from axletree.store.blobs import Intake, put_bytes, read_blob
from axletree.store.errors import disk_errors
from axletree.store.locks import using
from axletree.store.scratch import work_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.core.trees import Tree
    from axletree.core.values import Digest
    from axletree.store.layout import StoreLayout


class _Found(msgspec.Struct):
    """What a walk over a folder found."""

    root: str
    files: list[str]
    """Relative paths."""
    entries: list[Entry]
    """Links and empty folders."""
    problems: list[Problem]


def put_tree(layout: StoreLayout, tree: Tree) -> Digest:
    """Store a listing whose contents are in the store already.

    Raises:
        StoreError: the store cannot be written or is full.
    """
    return put_bytes(layout, encode_tree(tree))


def get_tree(layout: StoreLayout, digest: Digest) -> Tree:
    """Read a listing, checked.

    Raises:
        CorruptBlob: it is missing or is not what its name says.
        IntegrityError: it is no listing of a tree.
    """
    return decode_tree(read_blob(layout, digest))


def ingest(layout: StoreLayout, folder: Path, *, adopt: bool = False, exclude: Sequence[str] = ()) -> Digest:
    """Store all that is in a folder and return the digest of its tree.

    Symbolic links are kept as they are written, also those that lead out of the folder. Of modes only the owner's
    execute bit is kept.

    Args:
        layout: the store.
        folder: what to store. Nothing may write there meanwhile.
        adopt: move the files into the store instead of copying them. The folder is gone afterwards, with all that
            ``exclude`` left out; where another disk forces it, contents are copied all the same.
        exclude: patterns (:mod:`axletree.core.globs`); what matches is left out with everything below it, and so is a
            folder of which nothing else is left.

    Raises:
        IntegrityError: something in the folder can't be in a tree; nothing was stored or moved then.
        StoreError: the store cannot be written or is full.
        HostError: the folder cannot be read.
    """
    with disk_errors(layout):
        found = _walk(str(folder), exclude)
    if found.problems:
        raise IntegrityError(*found.problems)
    prefix = found.root + "/"
    with (
        disk_errors(layout, needs=lambda: sum(Path(prefix + path).stat().st_size for path in found.files)),
        using(layout),
        work_folder(layout, "ingest") as work,
    ):
        intake = Intake(layout, work, expected=len(found.files))
        take = intake.adopt if adopt else intake.copy
        entries = found.entries
        for path in found.files:
            digest, size, mode = take(prefix + path)
            entries.append(Entry(path=path, blob=digest, size=size, executable=bool(mode & 0o100)))
        intake.publish()
        listing = put_tree(layout, make_tree(entries))
        if adopt:
            remove_tree(folder)
    return listing


def _walk(root: str, exclude: Sequence[str]) -> _Found:
    """Look at a folder without reading any file, in the order of names."""
    excluded = glob_matcher(exclude)
    found = _Found(root=root, files=[], entries=[], problems=[])
    pending = [("", root)]
    while pending:
        prefix, folder = pending.pop()
        folders: list[tuple[str, str]] = []
        with os.scandir(folder) as listing:
            children = sorted(listing, key=lambda child: child.name)
        for child in children:
            path = prefix + child.name
            if excluded(path):
                continue
            if not is_safe_path(path):
                found.problems.append(_refused(child, "its name is not allowed on all systems"))
            elif child.is_dir(follow_symlinks=False):
                folders.append((path + "/", child.path))
            elif child.is_file(follow_symlinks=False):
                found.files.append(path)
            else:
                _note_special(found, child, path)
        if not children and prefix:  # where all was excluded, nothing is left to keep
            found.entries.append(Entry(path=prefix[:-1], kind="directory"))
        pending.extend(reversed(folders))
    return found


def _note_special(found: _Found, child: os.DirEntry[str], path: str) -> None:
    """A link becomes an entry; a socket, a pipe or a device becomes a problem."""
    if not child.is_symlink():
        found.problems.append(_refused(child, "it is not a file, folder or link"))
        return
    target = os.readlink(child.path)  # noqa: PTH115 (a Path would drop the "./" of a target)
    if is_safe_link(target):
        found.entries.append(Entry(path=path, kind="link", target=target))
    else:
        reason = f"the link's target is {'absolute' if target.startswith('/') else 'no text'}: {target!r}"
        found.problems.append(_refused(child, reason, hint="make the target relative, or exclude the link"))


def _refused(child: os.DirEntry[str], reason: str, hint: str = "remove, rename or exclude it") -> Problem:
    file = os.fsencode(child.path).decode(errors="backslashreplace")
    return Problem(message=f"the file cannot be stored: {reason}", file=file, hint=hint)
