"""GPU code inside a host file, as facts: which architectures, in which form, how many bytes.

NVIDIA fat binaries and clang offload bundles are read by :mod:`~axletree.binary.gpu.fatbin` and
:mod:`~axletree.binary.gpu.hip`; both say what they found in these terms.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal, NamedTuple

import msgspec

Form = Literal["binary", "intermediate"]
"""``binary``: runs as it is (SASS, a code object); ``intermediate``: compiled by the driver (PTX)."""

Packing = Literal["none", "lz4", "zstd", "zlib"]

MAX_ITEMS = 100_000
"""Most containers and entries of one file that are read. The largest library known (cuBLASLt) has 8,304."""
TOO_MANY = "the GPU code has an implausible number of containers and entries"


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


class CodeEntry(NamedTuple):
    """One piece of code in a container. A tuple, as a library has thousands of them."""

    offset: int
    """Where it begins in the file, its own header included."""
    size: int
    """Bytes in the file; of an entry that shares one packed stream with others, its part by unpacked size."""
    arch: str
    """As in :class:`DeviceCode`; ``host`` for the (empty) host part of an offload bundle."""
    form: Form
    packing: Packing
    unpacked: int
    """Bytes after decompression; 0 if the format does not state it."""
    id: str = ""
    """An offload bundle's own name of it: ``hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-``."""


class Container(NamedTuple):
    """A fat binary or offload bundle: what a runtime registers as a whole and picks one entry from."""

    maker: Literal["nvidia", "hip"]
    offset: int
    size: int
    """Bytes up to the end of its last part."""
    entries: tuple[CodeEntry, ...]
    packing: Packing = "none"
    """Of the container as a whole (``CCOB`` bundles); entries of NVIDIA's are packed one by one."""
    damaged: str | None = None
    """What is wrong with it; ``entries`` then holds what could be read."""
    loose: bool = False
    """Whether neither zeros nor another container follow it."""

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + self.size


class ByteRange(NamedTuple):
    """Bytes that a reader of containers asks for; ``offset`` never goes back within a container."""

    offset: int
    size: int


Reading = Generator[ByteRange, bytes, Container | None]
"""Reads one container: yields what it needs, is sent these bytes (fewer only at the end of the file), returns the
container, or ``None`` where the magic number was there by chance."""


class ReadLimit:
    """How many containers and entries one file may have in all: bounds the memory that a hostile one can take."""

    def __init__(self, items: int = MAX_ITEMS) -> None:
        """Allow so many."""
        self._left = items

    def spend(self, items: int = 1) -> bool:
        """Take some; ``False`` where not so many are left."""
        self._left -= items
        return self._left >= 0

    @property
    def spent(self) -> bool:
        """Whether somebody asked for more than there was."""
        return self._left < 0
