"""A content-addressed file tree: a sorted listing of paths, each with the digest of its content.

A tree is a value. Its digest is the SHA-256 of its canonical JSON, so stages that produce the same files produce the
same tree, whoever made them and when: no times, owners or modes other than "executable" are part of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError
from axletree.core.values import Digest, canonical_json, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable

TREE_FORMAT: Literal[1] = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One path of a tree."""

    path: str
    """Relative path with ``/`` between its parts; no ``..``, no empty part, not absolute."""
    kind: Literal["file", "link", "directory"] = "file"
    """``directory`` only for empty ones; others follow from the paths of their files."""
    blob: Digest | None = None
    """Digest of the content; files only."""
    size: int = 0
    """Bytes; files only."""
    executable: bool = False
    """Whether the file has the execute bit; files only."""
    target: str | None = None
    """Where a symbolic link points, as written; links only."""


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """Entries sorted by path, each path once."""

    entries: tuple[Entry, ...]
    format: Literal[1] = TREE_FORMAT

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(entry.size for entry in self.entries)

    def find(self, path: str) -> Entry | None:
        """The entry at a path, or ``None``."""
        return next((entry for entry in self.entries if entry.path == path), None)


_UNSAFE = re.compile(r"^/|^$|(^|/)\.{0,2}(/|$)|\\|\x00")


def is_safe_path(path: str) -> bool:
    """Whether a relative path stays inside its folder and means the same on every system."""
    return _UNSAFE.search(path) is None


def make_tree(entries: Iterable[Entry]) -> Tree:
    """Sort entries into a tree.

    Raises:
        IntegrityError: a path is unsafe, appears twice, or is both a file and a folder.
    """
    ordered = tuple(sorted(entries, key=lambda entry: entry.path))
    problems: list[str] = []
    leaves = {entry.path for entry in ordered}
    previous = None
    for entry in ordered:
        if not is_safe_path(entry.path):
            problems.append(f"unsafe path in a tree: {entry.path!r}")
        if entry.path == previous:
            problems.append(f"path twice in a tree: {entry.path}")
        previous = entry.path
        parent = entry.path.rpartition("/")[0]
        while parent:
            if parent in leaves:
                problems.append(f"both a file and a folder in a tree: {parent}")
            parent = parent.rpartition("/")[0]
    if problems:
        raise IntegrityError(*problems)
    return Tree(entries=ordered)


def encode_tree(tree: Tree) -> bytes:
    """Canonical bytes of a tree; their digest names it."""
    return canonical_json(tree)


def decode_tree(data: bytes) -> Tree:
    """Read a tree back.

    Raises:
        IntegrityError: the bytes are no tree, or one with unsafe or double paths.
    """
    try:
        tree = msgspec.json.decode(data, type=Tree)
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"not a tree listing: {error}") from error
    return make_tree(tree.entries)


def tree_digest(tree: Tree) -> Digest:
    """What names a tree."""
    return digest_of(encode_tree(tree))
