"""The machine code that lies in a folder, read in place: headers and tables only, never whole files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from axletree.binary.formats import MAGICS
from axletree.host.folders import list_files
from axletree.host.sources import DiskSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_TEXTS = (".py", ".pyi", ".pyc", ".h", ".hpp", ".cuh", ".cpp", ".cu", ".inl", ".txt", ".md", ".json", ".yaml", ".cmake")


def find_code(folder: Path, paths: Iterable[str] | None = None) -> Iterator[tuple[str, DiskSource]]:
    """Each file that begins as machine code: path from the folder, content. Sorted; symbolic links are passed over.

    The content can be read until the next file is asked for, as :func:`axletree.package.wheel.tree.scan_tree` does it.
    Files are not opened where their name ends as that of a text or of compiled Python does.

    Args:
        folder: where to look.
        paths: its files, where they are known already; see :func:`~axletree.host.folders.list_files`.

    Raises:
        HostError: the folder or a file in it can't be read.
    """
    root = os.fspath(folder)
    for path in list_files(folder) if paths is None else paths:
        if path.endswith(_TEXTS):
            continue
        with DiskSource(f"{root}/{path}") as source:
            if source.read(0, 4).startswith(MAGICS):
                yield path, source
