"""Which pointers of a library lead to its offload bundles, and whether they are all that do.

Clang's host code knows a bundle only by its wrapper (``__hip_fatbin_wrapper`` in ``.hipFatBinSegment``, see
``CGCUDANV.cpp``), which it hands to ``__hipRegisterFatBinary``::

    u32 magic HIPF, u32 version, u64 address of the bundle, u64 0

The address is filled in by the loader, with a relocation. So a bundle may move if that relocation does its part, and
nothing else that is recorded in the file points to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.layout import read_image
from axletree.binary.elf.pointers import (
    dynamic_symbols,
    entries_within,
    pointers_into,
    relocated_within,
    static_symbols,
)
from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.binary.elf.layout import Image
    from axletree.binary.elf.pointers import Pointer
    from axletree.binary.gpu.code import Container
    from axletree.binary.gpu.scan import SectionCode
    from axletree.binary.source import Source

SECTION = ".hip_fatbin"
WRAPPER_MAGIC = b"FPIH"
"""``HIPF`` as a little-endian number."""
_ET_DYN = 3


class Registered(NamedTuple):
    """The offload bundles of a library with all that points to them."""

    image: Image
    number: int
    """Of the section that holds them."""
    containers: tuple[Container, ...]
    pointers: tuple[Pointer, ...]
    """In wrappers, sorted by place; each leads to the start of a container, and each container has one at least."""
    symbols: tuple[tuple[int, int], ...]
    """(where in the file its value stands, value) of symbols for bundles, of all tables. Relocatable device code has
    one for the loader, ``__hip_fatbin``."""

    def address(self, container: Container) -> int:
        """Where a container is loaded."""
        section = self.image.sections[self.number]
        return section.addr + container.offset - section.offset


def read_registered(source: Source, code: Sequence[SectionCode], *, name: str = "ELF file") -> Registered | str:
    """Find what points to the offload bundles of a library; why they can't move, as words, where they can't.

    Args:
        source: the file; only its tables are read.
        code: its sections with GPU code.
        name: what errors call it.
    """
    sections = [each for each in code if each.containers]
    if len(sections) != 1 or sections[0].section.name != SECTION:
        return f"its GPU code is not all in one {SECTION} section"
    if sections[0].damaged is not None:
        return sections[0].damaged
    try:
        return _read(read_image(source, name=name), sections[0])
    except IntegrityError as error:
        return error.problems[0].message


def _read(image: Image, code: SectionCode) -> Registered | str:
    place = code.section.offset, code.section.size
    found = [number for number, section in enumerate(image.sections) if (section.offset, section.size) == place]
    if len(found) != 1:
        return f"it has {len(found)} sections at the location of {SECTION}"
    if image.reader.unpack("H", 16, "header")[0] != _ET_DYN:
        return "it is linked at a fixed address, so its pointers cannot be distinguished from other numbers"
    if not image.wide or image.reader.order != "<":
        return "it is not a 64-bit little-endian file"
    section = image.sections[found[0]]
    low, high = section.addr, section.addr + section.size
    entry = entries_within(image, low, high)
    if entry is not None:
        return f"{entry} is in {SECTION}"
    if relocated_within(image, low, high):
        return f"the loader writes to {SECTION}"
    pointers = pointers_into(image, low, high)
    symbols = *dynamic_symbols(image, found[0]), *static_symbols(image, found[0])
    registered = Registered(image, found[0], code.containers, pointers, symbols)
    return _unregistered(registered) or registered


def _unregistered(code: Registered) -> str | None:
    """What points to containers beside wrappers, or to none; ``None``: nothing."""
    starts = {code.address(container) for container in code.containers}
    for pointer in code.pointers:
        offset = code.image.offset_of(pointer.place)
        if pointer.kind == "other" or code.image.reader.read(offset - 8, 4) != WRAPPER_MAGIC:
            return f"something other than a bundle's wrapper points into {SECTION}"
        if pointer.target not in starts:
            return f"a wrapper points into {SECTION}, but not to the start of a bundle"
    if {pointer.target for pointer in code.pointers} != starts:
        return f"some bundles in {SECTION} have no relocation that points to them"
    if any(value not in starts for _, value in code.symbols):
        return f"a symbol points into the middle of a bundle in {SECTION}"
    return None
