"""What all facts of a host share: values, and where each came from."""

from __future__ import annotations

import msgspec

UNLIMITED = 2**63 - 1
"""A limit that is none. A number, so that comparisons hold."""


class FactGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group of facts.

    ``None`` is "not known", also for a tuple; ``()`` is "looked, and there are none". A rule is silent about what is
    not known. Sizes are bytes. Paths are of that host, with ``~`` for the home folder.
    """

    sources: dict[str, str] = {}
    """Field -> source of its value (a file, a command, a variable), or why it is not known."""


class HostLibrary(FactGroup, frozen=True, kw_only=True):
    """A shared library of the host."""

    name: str
    """Its name without ``lib`` and versions: ``cudnn``, ``mkl_rt``, ``gomp``, ``stdc++``."""
    path: str
    """Its path, with links not followed."""
    real: str | None = None
    """The file that links lead to."""
    soname: str | None = None
    version: str | None = None
    """The most precise version in its file name or header."""
    origin: str | None = None
    """What provides it: ``loader cache``, ``LD_LIBRARY_PATH``, ``conda``, ``wheel``, ``cuda toolkit``, ``rocm``."""


class HostTool(FactGroup, frozen=True, kw_only=True):
    """A program."""

    name: str
    """Its name: ``cmake``."""
    path: str
    """Its path on PATH, with links not followed."""
    version: str | None = None
    """``3.25.1``: only the numbers. ``None`` if it does not start; the source gives the reason."""
    release: str | None = None
    """The line with its version."""
