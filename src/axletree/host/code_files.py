"""The machine code that lies in a folder, read in place: headers and tables only, never whole files."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_MAGICS = (
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xca\xfe\xba\xbf",
)
_TEXTS = (".py", ".pyi", ".pyc", ".h", ".hpp", ".cuh", ".cpp", ".cu", ".inl", ".txt", ".md", ".json", ".yaml", ".cmake")


class FileSource:
    """An open file as a :class:`~axletree.binary.source.Source`; it is closed with its last user.

    Reading costs a call each, where a mapping would load 64 KiB around each header that is looked at.
    """

    def __init__(self, path: str) -> None:
        """Open a file.

        Raises:
            OSError: it can't be opened.
        """
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)
        self._size = os.fstat(self._descriptor).st_size

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """A range of the content.

        Raises:
            HostError: it can't be read.
        """
        try:
            return os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise HostError(Problem(file=self._path, message=f"can't be read: {error.strerror}")) from error


def find_code(folder: Path, paths: Iterable[str] | None = None) -> Iterator[tuple[str, FileSource]]:
    """Each file that begins as machine code: path from the folder, content. Sorted; symbolic links are passed over.

    Files are not opened where their name ends as that of a text or of compiled Python does. Pass the result to
    :func:`axletree.package.tree_scan.scan_tree`.

    Args:
        folder: where to look.
        paths: its files, where they are known already; see :func:`list_files`.

    Raises:
        HostError: the folder or a file in it can't be read.
    """
    root = os.fspath(folder)
    for path in list_files(folder) if paths is None else paths:
        if path.endswith(_TEXTS):
            continue
        place = f"{root}/{path}"
        try:
            source = FileSource(place)
        except OSError as error:
            raise HostError(Problem(file=place, message=f"can't be read: {error.strerror}")) from error
        if source.read(0, 4).startswith(_MAGICS):
            yield path, source


def list_files(folder: Path) -> tuple[str, ...]:
    """Paths from a folder of all regular files below it, sorted; symbolic links are passed over.

    Raises:
        HostError: the folder or one in it can't be read.
    """
    root = os.fspath(folder)
    found: list[str] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(f"{root}/{below}") as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{below}{entry.name}/")
                    elif entry.is_file(follow_symlinks=False):
                        found.append(below + entry.name)
        except OSError as error:
            raise HostError(Problem(file=f"{root}/{below}", message=f"can't be read: {error.strerror}")) from error
    return tuple(sorted(found))
