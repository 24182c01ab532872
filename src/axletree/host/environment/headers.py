"""A folder of headers under another name, for a compiler that does not put the first one where it is asked to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import HostError
from axletree.host.environment.asking import find_compilers, look
from axletree.host.files import file_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def moved_folders(wanted: Sequence[str], environ: Mapping[str, str], *, program: str = "hipcc") -> tuple[str, ...]:
    """Folders that a compiler looks into after others that should come later; as they were given.

    Asked of the compiler itself: which release has the fault, and for which folders, is in no table. Nothing where that
    compiler is not there.

    Raises:
        HostError: it does not start.
    """
    compiler = next(iter(find_compilers(environ, only=[program])), None)
    if compiler is None:
        return ()
    with tempfile.TemporaryDirectory(prefix="axletree-order-") as scratch:
        folders, _, ran = look(compiler, (), environ, Path(scratch))
    if folders is None:
        message = f"{compiler.path} does not report its search path: {ran.trouble}"
        raise HostError(message, hint="a library in the environment may break the compiler")
    actual = [os.path.realpath(folder) for folder in folders.angle]
    moved = []
    for number, folder in enumerate(wanted):
        real = os.path.realpath(folder)
        behind = [os.path.realpath(other) for other in wanted[number + 1 :]]
        if real in actual and any(other in actual and actual.index(other) < actual.index(real) for other in behind):
            moved.append(folder)
    return tuple(moved)


def copy_headers(source: Path, target: Path) -> int:
    """Have every file of a folder under another one, as links to the files; how many there are.

    The folders are real ones, so the compiler takes them for another place; the files are the same ones, so
    ``#pragma once`` knows them again and no disk is filled.

    Raises:
        HostError: a folder can't be read or written.
    """
    count = 0
    with file_errors(target, "the folder cannot be copied", precise=True):
        for folder, below, files in os.walk(source, followlinks=True):
            below[:] = [name for name in below if not _leads_back(Path(folder) / name)]
            place = target / Path(folder).relative_to(source)
            place.mkdir(parents=True, exist_ok=True)
            for name in files:
                (place / name).symlink_to(Path(folder) / name)
                count += 1
    return count


def _leads_back(folder: Path) -> bool:
    """Whether a link leads to a folder that it lies in: there is no end to that."""
    return folder.is_symlink() and folder.resolve() in [parent.resolve() for parent in folder.parents]
