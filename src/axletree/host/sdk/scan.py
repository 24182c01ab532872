"""What lies below a folder that becomes part of an SDK: one walk that reads no content."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.host.files import file_errors

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.package.sdk.entries import SdkEntry

_PIECE = 1 << 20


class ScannedFile(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file, a link, an empty folder, or something that no package can hold."""

    path: str
    """From the folder."""
    kind: Literal["file", "link", "folder", "other"]
    place: str
    size: int = 0
    executable: bool = False
    link: str = ""


def scan(folder: Path) -> list[ScannedFile]:
    """Everything below a folder, sorted by path; links are not followed.

    Raises:
        HostError: the folder or one in it can't be read.
    """
    found: list[ScannedFile] = []
    waiting = [(os.fspath(folder), "")]
    while waiting:
        parent, prefix = waiting.pop()
        with file_errors(parent), os.scandir(parent) as items:
            before = len(found) + len(waiting)
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    waiting.append((item.path, f"{prefix}{item.name}/"))
                else:
                    found.append(_found(item, f"{prefix}{item.name}"))
        if prefix and len(found) + len(waiting) == before:
            found.append(ScannedFile(path=prefix[:-1], kind="folder", place=parent))
    found.sort(key=lambda entry: entry.path)
    return found


def same_content(one: SdkEntry, other: SdkEntry) -> bool:
    """Whether two files of one size hold the same bytes.

    Raises:
        HostError: one can't be read.
    """
    with file_errors(one.source, precise=True):
        if os.path.samefile(one.source, other.source):  # noqa: PTH121 (of texts)
            return True
        with open(one.source, "rb", buffering=0) as left, open(other.source, "rb", buffering=0) as right:  # noqa: PTH123
            while piece := left.read(_PIECE):
                if piece != right.read(len(piece)):
                    return False
            return not right.read(1)


def _found(item: os.DirEntry[str], path: str) -> ScannedFile:
    if item.is_symlink():
        return ScannedFile(path=path, kind="link", place=item.path, link=os.readlink(item.path))  # noqa: PTH115 (of a text)
    if not item.is_file(follow_symlinks=False):
        return ScannedFile(path=path, kind="other", place=item.path)
    status = item.stat(follow_symlinks=False)
    return ScannedFile(
        path=path, kind="file", place=item.path, size=status.st_size, executable=bool(status.st_mode & 0o111)
    )
