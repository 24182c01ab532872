"""Data files that ship with Axletree, beside the code that understands them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib.resources import files

from axletree.core.errors import HostError

TABLES = "axletree.backends/data"
"""Where tables of names, providers, sizes and bounds lie."""


def read_shipped(folder: str, pattern: str) -> tuple[tuple[str, bytes], ...]:
    """Files of a package, by name: (name, content).

    Args:
        folder: package and folder in it: ``axletree.backends/data``.
        pattern: name of a file, or a pattern of several.

    Raises:
        HostError: there is none, or it can't be read.
    """
    package, _, inner = folder.partition("/")
    try:
        there = (files(package) / inner).iterdir()
        found = sorted((file.name, file.read_bytes()) for file in there if fnmatchcase(file.name, pattern))
    except OSError as error:
        raise HostError(f"{pattern} of {folder} cannot be read: {error}", hint="reinstall axletree") from error
    if not found:
        raise HostError(f"{pattern} of {folder} is missing", hint="reinstall axletree")
    return tuple(found)


def read_table(name: str) -> bytes:
    """A table that ships with Axletree.

    Raises:
        HostError: it is missing or can't be read.
    """
    ((_, data),) = read_shipped(TABLES, name)
    return data
