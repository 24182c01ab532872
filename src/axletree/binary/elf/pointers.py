"""What of a position-independent file points into a range of its addresses, as far as its loader and linker know.

Relocations in all their forms (RELA, REL, and RELR of the gABI), dynamic entries and symbols. Only 64-bit little-endian
files, the hosts that GPUs have. What code itself computes relative to its own place nobody records.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Literal, NamedTuple

from axletree.binary.elf.layout import DT_SYMTAB, SHT_SYMTAB, symbol_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.elf.layout import Image

_DT_PLTRELSZ, _DT_RELA, _DT_RELASZ, _DT_REL, _DT_RELSZ, _DT_PLTREL, _DT_JMPREL = 2, 7, 8, 17, 18, 20, 23
_DT_RELRSZ, _DT_RELR = 35, 36
_ADDRESSES = {3, 4, 5, 6, 7, 12, 13, 17, 23, 25, 26, 32, 36, 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE}
"""Tags of dynamic entries that are addresses."""
_RELATIVE = {62: 8, 183: 1027, 243: 3, 258: 3, 21: 22}
"""R_*_RELATIVE by machine: x86-64, AArch64, RISC-V, LoongArch, PowerPC."""
_ABSOLUTE = {62: 1, 183: 257, 243: 2, 258: 2, 21: 38}
"""Those that write the address of a symbol."""
_STT_SECTION, _STT_TLS = 3, 6
_SHN_ABS = 0xFFF1
_NOWHERE, _WORDS = 1 << 63, 1 << 64
_PIECE = 24 << 15
_MAX_ENTRIES = 1 << 24
"""Most entries of a table, far more than any real library has."""


class Pointer(NamedTuple):
    """An address that the loader writes."""

    place: int
    """Address where it is written."""
    target: int
    """What is written, before the address is added at which the file is loaded."""
    kind: Literal["relative", "symbol", "other"]
    """``relative``: the target stands in the file; ``symbol``: it is that of a symbol, and no more; or neither."""
    addend: int | None
    """Where in the file the relocation has a relative target (RELA); ``None``: the place itself has it."""


def pointers_into(image: Image, low: int, high: int) -> tuple[Pointer, ...]:
    """All pointers that relocations make to addresses from ``low`` up to ``high``, sorted by place.

    Raises:
        IntegrityError: the tables reach beyond the file, or relocate what is not in it.
    """
    values = _symbol_values(image)
    found: dict[int, Pointer] = {}
    for start, size, width in _tables(image):
        for pointer in (_explicit if width == 3 else _implicit)(image, (start, size), values, (low, high)):
            found[pointer.place] = pointer
    contents = _Contents(image)
    for place in _packed_places(image):
        target = contents.word(place)
        if low <= target < high:
            found[place] = Pointer(place, target, "relative", None)
    return tuple(found[place] for place in sorted(found))


def relocated_within(image: Image, low: int, high: int) -> bool:
    """Whether a relocation writes to an address in a range.

    Raises:
        IntegrityError: as :func:`pointers_into`.
    """
    for start, size, width in _tables(image):
        for _, words in _words(image, start, size, width):
            if any(low <= place < high for place in words[::width]):
                return True
    return any(low <= place < high for place in _packed_places(image))


def entries_within(image: Image, low: int, high: int) -> str | None:
    """What of the header and the dynamic section is an address in a range, as words; ``None``: nothing."""
    if low <= image.reader.unpack("Q", 24, "header")[0] < high:
        return "its entry point"
    if any(tag in _ADDRESSES and low <= value < high for tag, value in image.dynamic):
        return "an entry of its dynamic section"
    return None


def dynamic_symbols(image: Image, section: int) -> tuple[tuple[int, int], ...]:
    """(where in the file its value stands, value) of each symbol for the loader that lies in a section.

    Raises:
        IntegrityError: the table of symbols reaches beyond the file.
    """
    low, high = image.sections[section].addr, image.sections[section].addr + image.sections[section].size
    found: list[tuple[int, int]] = []
    for start, words in _dynamic_symbols(image):
        for number, (head, value) in enumerate(zip(words[::3], words[1::3], strict=True)):
            if head >> 48 == section or (_has_address(head) and low <= value < high):
                found.append((start + 24 * number + 8, value))
    return tuple(found)


def static_symbols(image: Image, section: int) -> tuple[tuple[int, int], ...]:
    """(where in the file its value stands, value) of each symbol of a section in the tables that only linkers read.

    The symbol that stands for the section itself is left out.

    Raises:
        IntegrityError: a table reaches beyond the file.
    """
    found: list[tuple[int, int]] = []
    for table in image.sections:
        if table.type != SHT_SYMTAB:
            continue
        for start, words in _words(image, table.offset, table.size, 3):
            for number, head in enumerate(words[::3]):
                if head >> 48 == section and head >> 32 & 15 != _STT_SECTION:
                    found.append((start + 24 * number + 8, words[3 * number + 1]))
    return tuple(found)


def word_at(image: Image, place: int) -> int:
    """The eight bytes that the file has for an address.

    Raises:
        IntegrityError: it has none.
    """
    return image.reader.unpack("Q", image.offset_of(place), "data")[0]


def _words(image: Image, offset: int, size: int, width: int) -> Iterator[tuple[int, array[int]]]:
    """(offset, words) of a table of ``width`` words an entry, in pieces."""
    size -= size % (8 * width)
    if size > 8 * width * _MAX_ENTRIES:
        raise image.reader.error(f"one of its tables has an implausible size: {size} bytes")
    step = _PIECE // width * width
    for start in range(0, size, step):
        words = array("Q", image.reader.take(offset + start, min(step, size - start), "table"))
        if sys.byteorder == "big":
            words.byteswap()
        yield offset + start, words


def _dynamic_symbols(image: Image) -> Iterator[tuple[int, array[int]]]:
    address = image.first(DT_SYMTAB)
    count = 0 if address is None else symbol_count(image, address) or 0
    if address is not None and count:
        yield from _words(image, image.offset_of(address), 24 * count, 3)


def _has_address(head: int) -> bool:
    """Whether a symbol is defined here, by its first eight bytes, and its value an address."""
    return 0 < head >> 48 < _SHN_ABS and head >> 32 & 15 != _STT_TLS


def _symbol_values(image: Image) -> array[int]:
    """The address of each dynamic symbol; a high number for those that have none here."""
    values = array("Q")
    for _, words in _dynamic_symbols(image):
        heads = zip(words[::3], words[1::3], strict=True)
        values.extend(value if _has_address(head) else _NOWHERE for head, value in heads)
    return values


def _tables(image: Image) -> Iterator[tuple[int, int, int]]:
    """(offset in the file, bytes, words of an entry) of each table of relocations but RELR."""
    plt = 3 if image.first(_DT_PLTREL) == _DT_RELA else 2
    for tag, size_tag, width in ((_DT_RELA, _DT_RELASZ, 3), (_DT_REL, _DT_RELSZ, 2), (_DT_JMPREL, _DT_PLTRELSZ, plt)):
        address, size = image.first(tag), image.first(size_tag)
        if address is not None and size:
            yield image.offset_of(address), size, width


def _explicit(image: Image, at: tuple[int, int], values: array[int], span: tuple[int, int]) -> Iterator[Pointer]:
    """The pointers into a range that a RELA table makes."""
    low, high = span
    for start, words in _words(image, *at, 3):
        places, kinds, addends = words[::3], words[1::3], words[2::3]
        plain = [number for number, addend in enumerate(addends) if low <= addend < high]
        named = [number for number, kind in enumerate(kinds) if kind >> 32]
        for number in sorted({*plain, *named}):
            target = (_base(values, kinds[number]) + addends[number]) % _WORDS
            if low <= target < high:
                kind = _kind(image, kinds[number], plain=not addends[number])
                yield Pointer(places[number], target, kind, start + 24 * number + 16 if kind == "relative" else None)


def _implicit(image: Image, at: tuple[int, int], values: array[int], span: tuple[int, int]) -> Iterator[Pointer]:
    """The same of a REL table, whose addends stand where they are written."""
    contents = _Contents(image)
    for _, words in _words(image, *at, 2):
        for place, kind in zip(words[::2], words[1::2], strict=True):
            addend = contents.word(place)
            target = (_base(values, kind) + addend) % _WORDS
            if span[0] <= target < span[1]:
                yield Pointer(place, target, _kind(image, kind, plain=not addend), None)


def _kind(image: Image, info: int, *, plain: bool) -> Literal["relative", "symbol", "other"]:
    if info == _RELATIVE.get(image.machine):
        return "relative"
    return "symbol" if plain and info >> 32 and info & 0xFFFFFFFF == _ABSOLUTE.get(image.machine) else "other"


def _base(values: array[int], kind: int) -> int:
    """The address of a relocation's symbol; 0 where it has none."""
    symbol = kind >> 32
    return 0 if not symbol else values[symbol] if symbol < len(values) else _NOWHERE


def _packed_places(image: Image) -> Iterator[int]:
    """The addresses that a RELR table names: even words are one, odd ones a map of the 63 words that follow."""
    start, size = image.first(_DT_RELR), image.first(_DT_RELRSZ)
    base = found = 0
    for _, words in _words(image, image.offset_of(start), size, 1) if start is not None and size else ():
        for word in words:
            found += word.bit_count() if word & 1 else 1
            if found > _MAX_ENTRIES:
                raise image.reader.error("it declares an implausible number of packed relocations")
            if word & 1:
                bits, place = word >> 1, base
                while bits:
                    if bits & 1:
                        yield place
                    bits, place = bits >> 1, place + 8
                base += 63 * 8
            else:
                yield word
                base = word + 8


class _Contents:
    """Words of the file by address, read in pieces as they mostly are asked for in order."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._start = self._end = 0
        self._data = b""

    def word(self, place: int) -> int:
        """The eight bytes at an address."""
        if not self._start <= place <= self._end - 8:
            offset = self._image.offset_of(place)
            self._data = self._image.reader.read(offset, 1 << 18)
            load = next(load for load in self._image.loads if load.offset <= offset < load.file_end)
            self._data = self._data[: load.file_end - offset]
            self._start, self._end = place, place + len(self._data)
            if self._end - place < 8:
                raise self._image.reader.error(f"no part of the file is loaded at address {place:#x}")
        return int.from_bytes(self._data[place - self._start :][:8], "little")
