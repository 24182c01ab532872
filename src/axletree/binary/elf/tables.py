"""The tables of an ELF file: header, segments, sections, dynamic entries. Bounded reading, no meaning.

:mod:`axletree.binary.elf.facts` says what the tables mean.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from axletree.binary.source import PassingSource
from axletree.core.errors import BUILD_AGAIN, IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.source import Source

MAGIC = b"\x7fELF"

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR, PT_GNU_STACK = 1, 2, 3, 4, 6, 0x6474E551
_PN_XNUM, _SHN_XINDEX = 0xFFFF, 0xFFFF
_MAX_TABLE = 8 << 20
MAX_STEPS = 500_000
"""Most entries, or stretches of 64 bytes of names, that are read of one file."""
_JUMP = 1 << 20
_JUMP_STEPS = 500
"""What it costs to read further than :data:`_JUMP` from the place before: of a compressed file, MiBs of inflating."""
_PIECE = 1 << 18
_BEHIND = 1 << 20
"""Bytes before the section table in which linkers put the names of sections."""


class Segment(NamedTuple):
    """A program header."""

    type: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int
    align: int


class Section(NamedTuple):
    """A section header."""

    name: bytes
    type: int
    flags: int
    addr: int
    offset: int
    size: int


class TableAt(NamedTuple):
    """Where a table of headers lies, as the header of the file says."""

    offset: int
    entry: int
    """Bytes of one entry."""
    entries: int
    names: int = 0
    """Of sections: index of the one that holds their names."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.entry * self.entries


class ElfLayout(NamedTuple):
    """The header of a file and its two tables."""

    bits: Literal[32, 64]
    order: Literal["little", "big"]
    kind: int
    machine: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    segment_table: TableAt
    section_table: TableAt

    def find_offset(self, address: int) -> int | None:
        """Where in the file the byte lies that is loaded at an address; ``None`` where no loaded segment has it."""
        for segment in self.segments:
            if segment.type == PT_LOAD and segment.vaddr <= address < segment.vaddr + segment.filesz:
                return segment.offset + address - segment.vaddr
        return None

    def offset_of(self, reader: Reader, address: int) -> int:
        """Where in the file the byte lies that is loaded at an address.

        Raises:
            IntegrityError: no loaded segment has it.
        """
        offset = self.find_offset(address)
        if offset is not None:
            return offset
        raise reader.error(
            f"the dynamic section refers to address {address:#x}, but no part of the file is loaded there"
        )


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
        self._place = 0
        self._passing = source if isinstance(source, PassingSource) else None
        self.order = "<"

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._source.size

    def error(self, message: str) -> IntegrityError:
        """An error that names the file."""
        return IntegrityError(Problem(file=self._name, message=f"damaged ELF file: {message}"), hint=BUILD_AGAIN)

    def spend(self, steps: int = 1) -> None:
        """Pay for steps of a chain.

        Raises:
            IntegrityError: the file makes the reader walk further than any real file does.
        """
        self._steps -= steps
        if self._steps < 0:
            raise self.error("the tables are implausibly large")

    @property
    def passing(self) -> bool:
        """Whether the content goes by once, so that going back is dear."""
        return self._passing is not None

    def expect(self, offset: int, size: int) -> None:
        """Say what will be read later, so that a source whose content goes by once keeps it."""
        if self._passing is not None and 0 <= offset < self.size and size > 0:
            self._passing.hold(offset, size)

    def read(self, offset: int, size: int) -> bytes:
        """At most ``size`` bytes; none beyond the end."""
        if not 0 <= offset < self.size:
            return b""
        if abs(offset - self._place) > _JUMP:
            self.spend(_JUMP_STEPS)
        self._place = offset + size
        return self._source.read(offset, size)

    def take(self, offset: int, size: int, what: str) -> bytes:
        """Exactly ``size`` bytes.

        Raises:
            IntegrityError: they are not all there.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.error(f"the {what} extends past the end of the file ({offset + size} of {self.size} bytes)")
        return self.read(offset, size)

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
            raise self.error(f"an entry of its {what} has {entry} bytes, expected at least {form.size}")
        if entry * count > _MAX_TABLE:
            raise self.error(f"the {what} has an implausible number of entries: {count}")
        data = self.take(offset, entry * count, what)
        for index in range(count):
            yield form.unpack_from(data, index * entry)

    def dynamic_entries(self, layout: ElfLayout) -> list[tuple[int, int]] | None:
        """(tag, value) of the dynamic section up to DT_NULL; ``None`` where there is no such section."""
        segment = next((segment for segment in layout.segments if segment.type == PT_DYNAMIC), None)
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


def read_head(reader: Reader) -> ElfLayout:
    """Read the header and the table of segments; sections, which usually lie at the end, are left out.

    Raises:
        IntegrityError: no ELF file, or one whose table does not fit into it.
    """
    head = reader.take(0, 16, "header")
    if not head.startswith(MAGIC):
        raise reader.error("the file does not start with the ELF magic number")
    bits: Literal[32, 64] | None = 64 if head[4] == 2 else 32 if head[4] == 1 else None
    order: Literal["little", "big"] | None = "little" if head[5] == 1 else "big" if head[5] == 2 else None
    if bits is None or order is None:
        raise reader.error(f"the header has an unknown class {head[4]} or byte order {head[5]}")
    reader.order = "<" if order == "little" else ">"
    kind, machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, shstrndx = reader.unpack(
        "HHIQQQIHHHHHH" if bits == 64 else "HHIIIIIHHHHHH", 16, "header"
    )
    if shoff and (shnum == 0 or phnum == _PN_XNUM or shstrndx == _SHN_XINDEX):
        # Counts that do not fit into the header stand in the first section header.
        first = reader.unpack(_section_form(bits), shoff, "section table")
        shnum = shnum or first[5]
        shstrndx = first[6] if shstrndx == _SHN_XINDEX else shstrndx
        phnum = first[7] if phnum == _PN_XNUM else phnum
    segment_table = TableAt(phoff, phentsize, phnum if phoff else 0)
    section_table = TableAt(shoff, shentsize, shnum if shoff else 0, shstrndx)
    if section_table.size <= _MAX_TABLE:
        reader.expect(max(0, shoff - _BEHIND), _BEHIND + section_table.size)
    segments = tuple(_segments(reader, bits, segment_table))
    return ElfLayout(bits, order, kind, machine, segments, (), segment_table, section_table)


def expect_section_names(reader: Reader, layout: ElfLayout) -> None:
    """Find the names of sections in content that goes by once, where they lie far before the table.

    Only LLD puts a large table (``.strtab``) between them; its version stands right behind what is loaded.
    """
    start = max((s.offset + s.filesz for s in layout.segments if s.type == PT_LOAD), default=0)
    stop = layout.section_table.offset
    if not reader.passing or stop - start <= _BEHIND or b"Linker: LLD" not in reader.read(start, _PIECE):
        return
    for position in range(start, stop, _PIECE):
        if b".shstrtab\0" in reader.read(position, _PIECE + 16):
            reader.expect(max(0, position - _PIECE), 3 * _PIECE)
            return


def _section_form(bits: int) -> str:
    return "IIQQQQIIQQ" if bits == 64 else "IIIIIIIIII"


def _segments(reader: Reader, bits: int, at: TableAt) -> Iterator[Segment]:
    place = (at.offset, at.entry, at.entries)
    if bits == 64:
        for kind, flags, offset, vaddr, _, filesz, memsz, align in reader.table("IIQQQQQQ", *place, "segment table"):
            yield Segment(kind, flags, offset, vaddr, filesz, memsz, align)
    else:
        for kind, offset, vaddr, _, filesz, memsz, flags, align in reader.table("IIIIIIII", *place, "segment table"):
            yield Segment(kind, flags, offset, vaddr, filesz, memsz, align)


def read_sections(reader: Reader, layout: ElfLayout) -> ElfLayout:
    """Add the table of sections to a layout.

    Raises:
        IntegrityError: the table or the names of the sections do not fit into the file.
    """
    at = layout.section_table
    headers = list(reader.table(_section_form(layout.bits), at.offset, at.entry, at.entries, "section table"))
    names = b""
    if 0 < at.names < len(headers):
        _, _, _, _, offset, size = headers[at.names][:6]
        if size > _MAX_TABLE:
            raise reader.error(f"the section name table has an implausible size: {size} bytes")
        names = reader.take(offset, size, "section names")
    sections = []
    for name, kind, flags, addr, offset, size, *_ in headers:
        end = names.find(b"\0", name, name + 256)
        sections.append(Section(names[name:end] if end >= 0 else b"", kind, flags, addr, offset, size))
    return layout._replace(sections=tuple(sections))
