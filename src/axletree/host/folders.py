"""What lies in a folder: its files in one order, always the same."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import is_safe_path
from axletree.disk import each_entry
from axletree.host.files import file_errors
from axletree.package.wheel.record import encode_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHUNK = 1 << 20


class FolderFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file below a folder."""

    path: str
    """Its path in the folder, with ``/`` between its parts."""
    place: Path
    """Where it lies."""
    size: int
    executable: bool


def list_files(folder: Path) -> tuple[str, ...]:
    """Paths from a folder of all regular files below it, sorted; symbolic links are passed over.

    Raises:
        HostError: the folder or one in it can't be read.
    """
    with file_errors(folder, precise=True):
        return tuple(sorted(path for path, entry in each_entry(folder) if entry.is_file(follow_symlinks=False)))


def list_folder(folder: Path) -> tuple[FolderFile, ...]:
    """All files below a folder, sorted by path. Links to files of the same folder count as those files.

    Raises:
        HostError: the folder or one below it can't be read.
        IntegrityError: it holds something else, which a wheel can't: other links, devices, names that are no UTF-8.
            Names all of them.
    """
    files: list[FolderFile] = []
    problems: list[Problem] = []
    root = folder.resolve()
    waiting = [(folder, "")]
    with file_errors(folder, precise=True):
        while waiting:
            parent, prefix = waiting.pop()
            with os.scandir(parent) as items:
                for item in items:
                    path, place = f"{prefix}{item.name}", Path(item.path)
                    if not is_safe_path(path):
                        shown = repr(path)[1:-1]
                        problems.append(
                            Problem(file=shown, message="the file has a name that is not allowed in a wheel")
                        )
                    elif item.is_dir(follow_symlinks=False):
                        waiting.append((place, f"{path}/"))
                    elif item.is_symlink() and not _is_inside(place, root):
                        message = "wheels cannot contain links, except to files inside the packed folder"
                        problems.append(
                            Problem(file=str(place), message=message, hint="replace it with a copy of its target")
                        )
                    else:
                        status = item.stat()
                        if not stat.S_ISREG(status.st_mode):
                            problems.append(Problem(file=str(place), message="the path is not a regular file"))
                        executable = bool(status.st_mode & stat.S_IXUSR)
                        files.append(FolderFile(path=path, place=place, size=status.st_size, executable=executable))
    if problems:
        raise IntegrityError(*sorted(problems, key=lambda problem: problem.file or ""))
    return tuple(sorted(files, key=lambda file: file.path))


def read_chunks(file: FolderFile, size: int) -> Callable[[], Iterator[bytes]]:
    """What yields the content of a file in chunks.

    Args:
        file: which.
        size: bytes of a chunk; only the last may have fewer.
    """

    def read() -> Iterator[bytes]:
        with file_errors(file.place), file.place.open("rb", buffering=0) as stream:
            while chunk := stream.read(min(size, file.size + 1)):
                yield chunk

    return read


def hash_file(file: FolderFile) -> str:
    """The SHA-256 of a file's content, as RECORD writes it.

    Raises:
        HostError: it can't be read.
    """
    digest = hashlib.sha256()
    for chunk in read_chunks(file, _CHUNK)():
        digest.update(chunk)
    return encode_hash(digest.digest())


def _is_inside(link: Path, root: Path) -> bool:
    """Whether a link ends at a file below a folder."""
    target = link.resolve()
    return target.is_file() and target.is_relative_to(root)
