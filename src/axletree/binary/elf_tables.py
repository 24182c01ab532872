"""The tables of an ELF file: header, segments, sections, dynamic entries. Bounded reading, no meaning.

:mod:`axletree.binary.elf` says what the tables mean.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.source import Source

MAGIC = b"\x7fELF"

_PT_LOAD, _PT_DYNAMIC = 1, 2
_PN_XNUM, _SHN_XINDEX = 0xFFFF, 0xFFFF
_MAX_TABLE = 64 << 20
MAX_STEPS = 500_000
"""Most entries, or stretches of 64 bytes of names, that are read of one file."""


class Segment(NamedTuple):
    """A program header."""

    type: int
    flags: int
    offset: int
    vaddr: int
    filesz: int


class Section(NamedTuple):
    """A section header."""

    name: bytes
    type: int
    addr: int
    size: int


class Layout(NamedTuple):
    """The header of a file and its two tables."""

    bits: Literal[32, 64]
    order: Literal["little", "big"]
    kind: int
    machine: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]

    def offset_of(self, reader: Reader, address: int) -> int:
        """Where in the file the byte lies that is loaded at an address.

        Raises:
            IntegrityError: no loaded segment has it.
        """
        for segment in self.segments:
            if segment.type == _PT_LOAD and segment.vaddr <= address < segment.vaddr + segment.filesz:
                return segment.offset + address - segment.vaddr
        raise reader.error(f"nothing of the file is loaded at address {address:#x}, which its dynamic section names")


@lru_cache(maxsize=64)
def _structure(order: str, fields: str) -> struct.Struct:
    return struct.Struct(order + fields)


class Reader:
    """Bounded reads of one file, with errors that name it, and a budget of steps against crafted chains."""

    def __init__(self, source: Source, name: str) -> None:
        """Read from a source; the byte order is set once it is known."""
        self._source = source
        self._name = name
        self._steps = MAX_STEPS
        self.order = "<"

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._source.size

    def error(self, message: str) -> IntegrityError:
        """An error that names the file."""
        return IntegrityError(Problem(file=self._name, message=f"damaged ELF file: {message}"))

    def spend(self, steps: int = 1) -> None:
        """Pay for steps of a chain.

        Raises:
            IntegrityError: the file makes the reader walk further than any real file does.
        """
        self._steps -= steps
        if self._steps < 0:
            raise self.error("its tables are longer than those of any real file")

    def read(self, offset: int, size: int) -> bytes:
        """At most ``size`` bytes; none beyond the end."""
        return self._source.read(offset, size) if 0 <= offset < self.size else b""

    def take(self, offset: int, size: int, what: str) -> bytes:
        """Exactly ``size`` bytes.

        Raises:
            IntegrityError: they are not all there.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.error(f"its {what} reaches beyond its end ({offset + size} of {self.size} bytes)")
        return self._source.read(offset, size)

    def structure(self, fields: str) -> struct.Struct:
        """A structure in the byte order of the file."""
        return _structure(self.order, fields)

    def unpack(self, fields: str, offset: int, what: str) -> tuple[int, ...]:
        """One structure."""
        form = self.structure(fields)
        return form.unpack(self.take(offset, form.size, what))

    def table(self, fields: str, offset: int, entry: int, count: int, what: str) -> Iterator[tuple[int, ...]]:
        """``count`` structures, each ``entry`` bytes after the one before."""
        form = self.structure(fields)
        if count and entry < form.size:
            raise self.error(f"an entry of its {what} has {entry} bytes, less than the {form.size} needed")
        if entry * count > _MAX_TABLE:
            raise self.error(f"its {what} claims {count} entries")
        data = self.take(offset, entry * count, what)
        for index in range(count):
            yield form.unpack_from(data, index * entry)

    def dynamic_entries(self, layout: Layout) -> list[tuple[int, int]] | None:
        """(tag, value) of the dynamic section up to DT_NULL; ``None`` where there is no such section."""
        segment = next((segment for segment in layout.segments if segment.type == _PT_DYNAMIC), None)
        if segment is None or not segment.filesz:
            return None
        form = "qQ" if layout.bits == 64 else "iI"
        size = self.structure(form).size
        entries: list[tuple[int, int]] = []
        for tag, value in self.table(form, segment.offset, size, segment.filesz // size, "dynamic section"):
            if tag == 0:
                break
            self.spend()
            entries.append((tag, value))
        return entries


def read_layout(reader: Reader) -> Layout:
    """Read the header and the tables of segments and sections.

    Raises:
        IntegrityError: no ELF file, or one whose tables do not fit into it.
    """
    head = reader.take(0, 16, "header")
    if not head.startswith(MAGIC):
        raise reader.error("it does not start with the ELF magic")
    bits: Literal[32, 64] | None = 64 if head[4] == 2 else 32 if head[4] == 1 else None
    order: Literal["little", "big"] | None = "little" if head[5] == 1 else "big" if head[5] == 2 else None
    if bits is None or order is None:
        raise reader.error(f"unknown class {head[4]} or byte order {head[5]}")
    reader.order = "<" if order == "little" else ">"
    kind, machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, shstrndx = reader.unpack(
        "HHIQQQIHHHHHH" if bits == 64 else "HHIIIIIHHHHHH", 16, "header"
    )
    section_form = "IIQQQQIIQQ" if bits == 64 else "IIIIIIIIII"
    if shoff and (shnum == 0 or phnum == _PN_XNUM or shstrndx == _SHN_XINDEX):
        # Counts that do not fit into the header stand in the first section header.
        first = reader.unpack(section_form, shoff, "section table")
        shnum = shnum or first[5]
        shstrndx = first[6] if shstrndx == _SHN_XINDEX else shstrndx
        phnum = first[7] if phnum == _PN_XNUM else phnum
    segments = tuple(_segments(reader, bits, phoff, phentsize, phnum))
    headers = list(reader.table(section_form, shoff, shentsize, shnum, "section table")) if shoff else []
    sections = tuple(_sections(reader, headers, shstrndx))
    return Layout(bits, order, kind, machine, segments, sections)


def _segments(reader: Reader, bits: int, offset: int, entry: int, count: int) -> Iterator[Segment]:
    if not offset:
        return
    if bits == 64:
        for kind, flags, start, vaddr, _, filesz, _, _ in reader.table(
            "IIQQQQQQ", offset, entry, count, "segment table"
        ):
            yield Segment(kind, flags, start, vaddr, filesz)
    else:
        for kind, start, vaddr, _, filesz, _, flags, _ in reader.table(
            "IIIIIIII", offset, entry, count, "segment table"
        ):
            yield Segment(kind, flags, start, vaddr, filesz)


def _sections(reader: Reader, headers: list[tuple[int, ...]], names_index: int) -> Iterator[Section]:
    names = b""
    if 0 < names_index < len(headers):
        _, _, _, _, offset, size = headers[names_index][:6]
        if size > _MAX_TABLE:
            raise reader.error(f"its section names claim {size} bytes")
        names = reader.take(offset, size, "section names")
    for name, kind, _, addr, _, size, *_ in headers:
        end = names.find(b"\0", name, name + 256)
        yield Section(names[name:end] if end >= 0 else b"", kind, addr, size)
