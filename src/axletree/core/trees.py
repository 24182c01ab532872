"""A content-addressed file tree: a sorted listing of paths, each with the digest of its content.

A tree is a value. Its digest is the SHA-256 of its canonical JSON, so stages that produce the same files produce the
same tree, whoever made them and when: no times, owners or modes other than "executable" are part of it.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError
from axletree.core.values import Digest, canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TREE_FORMAT: Literal[1] = 1
_MOST_LINKS = 40
"""Links that are followed from one, as Linux does."""


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
    """Entries sorted by path, each path once. Made by :func:`make_tree`, which checks that."""

    entries: tuple[Entry, ...]
    format: Literal[1] = TREE_FORMAT

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(entry.size for entry in self.entries)

    @property
    def blobs(self) -> dict[Digest, int]:
        """Each content of the tree once, with its size in bytes."""
        return {entry.blob: entry.size for entry in self.entries if entry.blob is not None}

    def find(self, path: str) -> Entry | None:
        """The entry at a path, or ``None``."""
        at = bisect_left(self.entries, path, key=lambda entry: entry.path)
        return self.entries[at] if at < len(self.entries) and self.entries[at].path == path else None


_UNSAFE = re.compile(r"^/|^\Z|(^|/)\.{0,2}(/|\Z)|\\|[\x00\ud800-\udfff]")
_LINK_UNSAFE = re.compile(r"^/|^\Z|[\x00\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SUSPICIOUS = (
    "\\",
    "\0",
    "//",
    "/./",
    "/../",
    "\n/",
    "\n./",
    "\n../",
    "/\n",
    "/.\n",
    "/..\n",
    "\n.\n",
    "\n..\n",
    "\n\n",
)
"""No list of paths, one a line, has any of this where all of them are safe."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_safe_path(path: str) -> bool:
    """Whether a relative path stays inside its folder and means the same on every system.

    A name that is no UTF-8 (Python hands it over with lone surrogates) is not safe: JSON could not hold it.
    """
    return _UNSAFE.search(path) is None


def all_safe_paths(paths: Iterable[str]) -> bool:
    """Whether all paths are safe, by a few searches through them together, a small part of the time of asking for each.

    ``False`` may also mean that one only looks as if it were not.
    """
    text = "\n".join(("", *paths, ""))
    if any(part in text for part in _SUSPICIOUS):
        return False
    return text.isascii() or _SURROGATE.search(text) is None


def paths_above_others(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of some paths that others lie below, sorted: none of them can be a file.

    Folders are not listed on the way, so a hostile path of thousands of parts costs no more than its length.
    """
    keys = sorted({path.replace("/", "\0") for path in paths})  # nothing sorts between a path and what lies below it
    return tuple(above.replace("\0", "/") for above, below in pairwise(keys) if below.startswith(f"{above}\0"))


def is_safe_link(target: str) -> bool:
    """Whether a link's target is relative and text. It may lead out of the tree: what it then finds is not ours."""
    return _LINK_UNSAFE.search(target) is None


def is_digest(text: str) -> bool:
    """Whether a text is 64 lower-case hexadecimal digits."""
    return _DIGEST.fullmatch(text) is not None


def _entry_problem(entry: Entry) -> str | None:
    """What is wrong with one entry by itself."""
    if not is_safe_path(entry.path):
        return f"unsafe path in a tree: {entry.path!r}"
    match entry.kind:
        case "file":
            if entry.blob is None or not is_digest(entry.blob) or entry.size < 0 or entry.target is not None:
                return f"a file in a tree must have a digest and a size, and no link target: {entry.path}"
        case "link":
            if entry.target is None or not is_safe_link(entry.target) or _has_content(entry):
                return f"a link in a tree must have a relative target, and no content: {entry.path} -> {entry.target!r}"
        case "directory":
            if entry.target is not None or _has_content(entry):
                return f"an empty folder in a tree cannot have content or a target: {entry.path}"
    return None


def _has_content(entry: Entry) -> bool:
    return entry.blob is not None or entry.size != 0 or entry.executable


def _problems(ordered: tuple[Entry, ...]) -> Iterator[str]:
    """All that is wrong with sorted entries."""
    previous = None
    for entry in ordered:
        problem = _entry_problem(entry)
        if problem is not None:
            yield problem
        if entry.path == previous:
            yield f"duplicate path in a tree: {entry.path}"
        previous = entry.path
    for path in paths_above_others(entry.path for entry in ordered):
        yield f"path is both a file and a folder in a tree: {path}"


def file_behind(path: str, entries: Mapping[str, Entry]) -> str | None:
    """The file that a path, or the link there, leads to inside of a tree; ``None`` where that is none."""
    for _ in range(_MOST_LINKS):
        entry = entries.get(path)
        if entry is None or entry.kind == "directory":
            return None
        if entry.kind == "file":
            return path
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), entry.target or ""))
    return None


def make_tree(entries: Iterable[Entry]) -> Tree:
    """Sort entries into a tree.

    Raises:
        IntegrityError: a path is unsafe, appears twice, or is both a file and a folder; an entry's fields do not fit
            its kind; a link's target is absolute. Names all of them.
    """
    ordered = tuple(sorted(entries, key=lambda entry: entry.path))
    problems = tuple(_problems(ordered))
    if problems:
        raise IntegrityError(*problems)
    return Tree(entries=ordered)


def encode_tree(tree: Tree) -> bytes:
    """Canonical bytes of a tree; their digest names it."""
    return canonical_json(tree)


def decode_tree(data: bytes) -> Tree:
    """Read a tree back.

    Raises:
        IntegrityError: the bytes are no tree, or one that :func:`make_tree` refuses.
    """
    try:
        tree = msgspec.json.decode(data, type=Tree)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityError(f"not a valid tree listing: {error}") from error
    return make_tree(tree.entries)
