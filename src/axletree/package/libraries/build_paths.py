"""Search path entries that lead into what builds: the interpreter, and folders of the store.

A Python that lies in a folder of its own (pyenv, uv, conda) passes ``-rpath`` with its ``lib`` to whatever setuptools
links. The project did not ask for that, and nobody else has the folder.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_STORE = re.compile(r"/(environments|work|workspaces)/[0-9a-f]{24,}(?:-[0-9a-z-]+)?(?:/(?P<inside>.*))?$")
"""Folders of a store, by their shape: the tree may have been built with another store than it is packed with."""
_SHARED = frozenset({"/", "/usr", "/usr/local", "/opt", "/opt/local"})


def interpreter_folders(programs: Iterable[str]) -> tuple[str, ...]:
    """The folders that belong to interpreters alone, sorted: not ``/usr``, where others have libraries, too.

    Args:
        programs: paths of interpreters, ``/opt/python/3.11/bin/python3.11``.
    """
    folders = {posixpath.dirname(posixpath.dirname(posixpath.normpath(program))) for program in programs}
    return tuple(sorted(folders - _SHARED - {""}))


def build_paths(entries: Iterable[str], interpreters: Collection[str]) -> tuple[str, ...]:
    """The entries of a search path that lead into an interpreter's folder or into a store."""
    return tuple(entry for entry in entries if entry.startswith("/") and _of_build(entry, interpreters))


def beside(entry: str, place: str) -> str | None:
    """An entry that leads into an environment of the build, as one that leads to the same folder where it is installed.

    Args:
        entry: of a search path.
        place: of the file, below the prefix that it is installed in.
    """
    found = _STORE.search(posixpath.normpath(entry))
    if found is None or found[1] != "environments" or not found["inside"]:
        return None
    steps = posixpath.relpath(found["inside"], posixpath.dirname(place) or ".")
    return "$ORIGIN" if steps == "." else f"$ORIGIN/{steps}"


def _of_build(entry: str, interpreters: Collection[str]) -> bool:
    folder = posixpath.normpath(entry)
    inside = any(folder == each or folder.startswith(f"{each}/") for each in interpreters)
    return inside or _STORE.search(folder) is not None
