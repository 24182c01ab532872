"""What rules about hosts look at: a host's facts, what is to be done there, and what goes together."""

from __future__ import annotations

import msgspec

from axletree.backends.bounds import Bounds
from axletree.check.host.facts import HostFacts


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done on a host. Nothing said: build something, for whatever the host has."""

    variant: str = ""
    """Of a recipe; empty where none is named. Messages leave it out: what holds for many variants is said once."""
    cuda: str | None = None
    """CUDA release that it is built with: ``13.0``."""
    rocm: str | None = None
    """ROCm release: ``7.1``."""
    archs: tuple[str, ...] = ()
    """GPU generations that it is compiled for: ``8.0``, ``9.0``, ``gfx1100``."""
    pythons: tuple[str, ...] = ()
    """Versions of Python that its environments need and that this machine does not have: ``3.13t``."""
    torch: str | None = None
    """Release of PyTorch that is built from source."""
    own_cmake: bool = False
    """Whether its environments bring a CMake."""
    missing: tuple[str, ...] = ()
    """Programs that its stages need and that are not on PATH."""
    git: bool = False
    """Whether sources are fetched with git."""
    memory_per_job: int | None = None
    """Bytes that one compile process takes: declared, or learned from the last run."""
    memory: int | None = None
    """Bytes that its largest stage takes as a whole."""
    disk: int | None = None
    """Bytes of disk that its stages need."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """A host, examined for a wish."""

    host: HostFacts
    wish: Wish
    bounds: Bounds
