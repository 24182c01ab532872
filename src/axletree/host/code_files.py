"""The machine code that lies in a folder, mapped so that only what is read of it is loaded."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
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


def map_code(folder: Path) -> Iterator[tuple[str, memoryview]]:
    """Each file that begins as machine code: path from the folder, content. Sorted; symbolic links are passed over.

    Files are not opened where their name ends as that of a text or of compiled Python does.

    Raises:
        HostError: the folder or a file in it can't be read.
    """
    root = os.fspath(folder)
    for path in _files(root):
        descriptor = -1
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if os.pread(descriptor, 4, 0).startswith(_MAGICS):
                # Not closed here: the reader may hold views of it. The mapping goes with the last of them.
                mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
                yield os.path.relpath(path, root), memoryview(mapped)
        except OSError as error:
            raise HostError(Problem(file=path, message=f"can't be read: {error.strerror}")) from error
        finally:
            if descriptor >= 0:
                os.close(descriptor)


def _files(folder: str) -> Iterator[str]:
    """Paths of regular files below a folder that may be machine code, sorted."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise HostError(Problem(file=folder, message=f"can't be read: {error.strerror}")) from error
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(_TEXTS):
            yield entry.path
