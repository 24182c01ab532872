"""GPU code inside a host file, as facts: which architectures, in which form, how many bytes.

NVIDIA fat binaries and clang offload bundles are read by :mod:`~axletree.binary.fatbin` and
:mod:`~axletree.binary.hip`; both say what they found in these terms.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Form = Literal["binary", "intermediate"]
"""``binary``: runs as it is (SASS, a code object); ``intermediate``: compiled by the driver (PTX)."""

Packing = Literal["none", "lz4", "zstd", "zlib"]


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All code of one architecture, form and packing in one section of a file."""

    section: str
    """``.nv_fatbin``, ``__nv_relfatbin``, ``.hip_fatbin``."""
    arch: str
    """``sm_90a``, ``compute_120`` (PTX) or ``gfx90a:xnack-``, as the maker's tools spell it."""
    form: Form
    packing: Packing
    count: int
    """Entries."""
    size: int
    """Bytes in the file, headers and padding included."""
    unpacked: int
    """Bytes once unpacked; ``size`` where nothing is packed, 0 where the format does not tell."""
    containers: int
    """Containers (fat binaries, bundles) of the section that have at least one such entry."""


class DeviceSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """GPU code of one section."""

    section: str
    containers: int
    size: int
    """Bytes of the section in the file."""
    code: tuple[DeviceCode, ...] = ()
    """Sorted by architecture and form."""
    damaged: str | None = None
    """What is wrong where its structure can't be followed to its end; ``code`` then holds what came before."""
