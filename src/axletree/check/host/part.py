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
    """Field -> where its value came from (a file, a command, a variable), or why it is not known."""


class HostLibrary(FactGroup, frozen=True, kw_only=True):
    """A shared library that lies on the host."""

    name: str
    """What it is, without ``lib`` and versions: ``cudnn``, ``mkl_rt``, ``gomp``, ``stdc++``."""
    path: str
    """As it is found, links not followed."""
    real: str | None = None
    """The file behind links."""
    soname: str | None = None
    version: str | None = None
    """The most exact that its file's name, or its header, tells."""
    origin: str | None = None
    """What brings it there: ``loader cache``, ``LD_LIBRARY_PATH``, ``conda``, ``wheel``, ``cuda toolkit``, ``rocm``."""


class HostTool(FactGroup, frozen=True, kw_only=True):
    """A program."""

    name: str
    """As it is called: ``cmake``."""
    path: str
    """As found on PATH, links not followed."""
    version: str | None = None
    """``3.25.1``: numbers alone. ``None`` where it does not start; the source says why."""
    release: str | None = None
    """The line in which it tells its version."""
