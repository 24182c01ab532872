"""Reads a project's files as a value: of an sdist, without unpacking it, or of a folder.

Archives come from strangers. Names that lead out of the project, links that do, devices, and more members or bytes than
a source has are refused before anything is kept of them.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import posixpath
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import read_member
from axletree.core.errors import HostError, IntegrityError, Problem, UsageError, damaged_archive, refused_archive
from axletree.core.trees import is_safe_path
from axletree.core.units import format_bytes
from axletree.host.archive import map_file
from axletree.package.conda.untar import read_tar, tar_damaged, tar_refused
from axletree.package.project.tree import LARGEST_TEXT, MOST_TEXT, SourceTree, is_passed_over, is_told

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_MEMBERS = 200_000
_ALWAYS_ALLOWED = 1 << 30
"""Bytes that any archive may unpack to."""
_LARGEST_RATIO = 30
"""Unpacked size of a larger one against its own: sources have 3 to 10, deflate alone can do 1000."""
_CHUNK = 1 << 18
_BUILT = ("build", "dist")
"""Folders beside pyproject.toml that a build leaves behind."""


def unpacked_limit(size: int) -> int:
    """Bytes that an archive of so many may unpack to: a small file must not fill a disk."""
    return max(_ALWAYS_ALLOWED, _LARGEST_RATIO * size)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Collected:
    """Sizes of all files, and the texts that are wanted, within bounds."""

    def __init__(self, name: str) -> None:
        self.sizes: dict[str, int] = {}
        self._texts: dict[str, bytes] = {}
        self._name = name
        self._room = MOST_TEXT

    def wants(self, path: str, size: int) -> bool:
        """Note a file, and say whether its text is wanted."""
        self.sizes[path] = size
        if len(self.sizes) > MOST_MEMBERS:
            raise IntegrityError(Problem(file=self._name, message=f"the project has more than {MOST_MEMBERS} files"))
        inside = path.partition("/")[2] or path  # its top folder may be one that sdists have
        return size <= min(LARGEST_TEXT, self._room) and (is_told(path) or is_told(inside))

    def keep(self, path: str, data: bytes) -> None:
        """Keep the text of a file."""
        self._room -= len(data)
        self._texts[path] = data

    def copy(self, path: str, of: str) -> None:
        """Note a file that is another one under a second name."""
        if self.wants(path, self.sizes.get(of, 0)) and of in self._texts:
            self.keep(path, self._texts[of])

    def tree(self, *, top: str = "") -> SourceTree:
        """The value; what is below ``top`` counts from there."""
        start = f"{top}/" if top else ""
        return SourceTree(
            sizes={path.removeprefix(start): size for path, size in sorted(self.sizes.items())},
            texts={
                inside: _text(data)
                for path, data in sorted(self._texts.items())
                if is_told(inside := path.removeprefix(start))
            },
        )


def read_archive(path: Path, *, name: str | None = None) -> SourceTree:
    """The files of an sdist, counted from the single folder that it holds where it does.

    Args:
        path: The archive.
        name: What errors call it; default is its own name.

    Raises:
        HostError: it can't be read.
        IntegrityError: it is no archive, is damaged, or holds what no sdist may; names the member.
    """
    name = name or path.name
    try:
        with path.open("rb") as stream:
            start = stream.read(6)
            if start.startswith(b"PK"):
                return _read_zip(path, name)
            stream.seek(0)
            return _read_tar(name, _opened(stream, start), unpacked_limit(path.stat().st_size))
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise IntegrityError(damaged_archive(name, str(error))) from error
    except OSError as error:
        if error.errno is None:  # what bz2 has to say of its data
            raise IntegrityError(damaged_archive(name, str(error))) from error
        raise HostError(Problem(file=str(path), message=f"the file cannot be read: {error.strerror}")) from error


def read_folder(folder: Path) -> SourceTree:
    """The files of a folder, without those of version control, of environments and of earlier builds.

    Raises:
        UsageError: there is no such folder.
        HostError: it can't be read.
    """
    if not folder.is_dir():
        raise UsageError(f"no such folder: {folder}")
    collected = _Collected(str(folder))
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(folder / below) as entries:
                for entry in entries:
                    inside = f"{below}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        passed = is_passed_over(entry.name) or inside in _BUILT
                        waiting += [] if passed else [f"{inside}/"]
                    elif (
                        entry.is_file(follow_symlinks=False)
                        and is_safe_path(inside)
                        and collected.wants(inside, entry.stat(follow_symlinks=False).st_size)
                    ):
                        collected.keep(inside, Path(entry.path).read_bytes()[:LARGEST_TEXT])
        except OSError as error:
            raise HostError(
                Problem(file=str(folder / below), message=f"the file cannot be read: {error.strerror}")
            ) from error
    return collected.tree()


def _opened(stream: BinaryIO, start: bytes) -> _Readable:
    """The uncompressed content of a file, by how it begins."""
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(stream)
    if start.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(stream)
    return stream


def _read_tar(name: str, stream: _Readable, limit: int) -> SourceTree:
    collected = _Collected(name)
    tops: set[str] = set()
    for entry, content in read_tar(_bounded(stream, limit, name), archive=name):
        path = entry.path.removeprefix("./")
        if path in {"", "."}:
            continue
        _check_name(path, name)
        tops.add(path if entry.kind == "folder" or "/" in path else "/")
        if entry.kind == "link":
            _check_name(posixpath.normpath(f"{posixpath.dirname(path)}/{entry.target}".lstrip("/")), name, link=path)
            if entry.target.startswith("/"):
                raise tar_refused(name, "the entry is a link to a path outside the archive", member=path)
        elif entry.kind == "hardlink":
            target = entry.target.removeprefix("./")
            if target not in collected.sizes:
                raise tar_damaged(name, "the entry is a link to a file that is not in the archive", member=path)
            collected.copy(path, target)
        elif entry.kind == "file" and collected.wants(path, entry.size):
            collected.keep(path, b"".join(content))
    return _without_top(collected, tops)


def _read_zip(path: Path, name: str) -> SourceTree:
    view = map_file(path)
    entries = read_directory(view, archive=name)
    limit = unpacked_limit(view.nbytes)
    if sum(entry.size for entry in entries) > limit:
        raise IntegrityError(refused_archive(name, f"it would unpack to more than {format_bytes(limit)}"))
    collected = _Collected(name)
    for entry in entries:
        if not entry.directory and collected.wants(entry.name, entry.size):
            collected.keep(entry.name, read_member(view, entry, archive=name, limit=LARGEST_TEXT))
    return _without_top(collected, {entry.name if "/" in entry.name else "/" for entry in entries})


def _without_top(collected: _Collected, paths: set[str]) -> SourceTree:
    """Paths without the single top folder that sdists and releases have."""
    tops = {path.partition("/")[0] for path in paths}
    return collected.tree(top=tops.pop() if len(tops) == 1 else "")


def _check_name(path: str, archive: str, *, link: str | None = None) -> None:
    if not is_safe_path(path.removesuffix("/")):
        message = (
            "the entry is a link to a path outside the archive"
            if link
            else "the path is invalid or leads outside the folder"
        )
        raise tar_refused(archive, message, member=link or path)


def _bounded(stream: _Readable, limit: int, name: str) -> Iterator[bytes]:
    left = limit
    while chunk := stream.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise IntegrityError(refused_archive(name, f"it would unpack to more than {format_bytes(limit)}"))
        yield chunk


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
