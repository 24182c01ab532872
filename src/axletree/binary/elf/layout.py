"""All fields of an ELF file's tables with the places where they stand, for whoever changes a file.

:mod:`axletree.binary.elf.tables` reads what an auditor needs; here nothing is left out, so that a table can be written
back. Formats: System V gABI, chapters 4 and 5.
"""

from __future__ import annotations

from array import array
from sys import byteorder
from typing import TYPE_CHECKING, Literal, NamedTuple

from axletree.binary.elf.tables import MAGIC, Reader
from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.binary.source import Source

PT_NULL, PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR, PT_GNU_PROPERTY, PT_GNU_STACK = (
    0,
    1,
    2,
    3,
    4,
    6,
    0x6474E553,
    0x6474E551,
)
PF_X, PF_W, PF_R = 1, 2, 4
SHT_SYMTAB, SHT_STRTAB, SHT_HASH, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 3, 5, 6, 7, 8, 11
SHT_GNU_HASH, SHT_GNU_VERDEF, SHT_GNU_VERNEED = 0x6FFFFFF6, 0x6FFFFFFD, 0x6FFFFFFE
SHF_ALLOC = 2
DT_NULL, DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_INIT = 0, 1, 4, 5, 6, 10, 12
DT_SONAME, DT_RPATH, DT_RUNPATH, DT_GNU_HASH, DT_FLAGS_1 = 14, 15, 29, 0x6FFFFEF5, 0x6FFFFFFB
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
EM_MIPS = 8
_ET_EXEC, _ET_DYN = 2, 3
_MAX_PROGRAMS = 4096
_MAX_SECTIONS = 100_000
_MAX_DYNAMIC = 10_000
_MAX_SYMBOLS = 8_000_000
MAX_STRINGS = 256 << 20
"""Most bytes of a dynamic string table."""
MAX_STRING = 1 << 16
"""Most bytes of one name or search path."""


class Program(NamedTuple):
    """A program header."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int

    @property
    def file_end(self) -> int:
        """The first byte of the file after it."""
        return self.offset + self.filesz


class SectionHeader(NamedTuple):
    """A section header."""

    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int

    @property
    def file_end(self) -> int:
        """The first byte of the file after it."""
        return self.offset + (0 if self.type == SHT_NOBITS else self.size)


class Image(NamedTuple):
    """The tables of a linked file that has a dynamic section."""

    name: str
    """What errors call it."""
    reader: Reader
    wide: bool
    """Class ELF64."""
    machine: int
    phoff: int
    shoff: int
    programs: tuple[Program, ...]
    sections: tuple[SectionHeader, ...]
    dynamic: tuple[tuple[int, int], ...]
    """(tag, value) up to DT_NULL, that not included."""
    dynamic_at: int
    """Where in the file it starts."""
    dynamic_slots: int
    """Entries that it has room for, all of them."""

    @property
    def program_size(self) -> int:
        """Bytes of a program header."""
        return 56 if self.wide else 32

    @property
    def section_size(self) -> int:
        """Bytes of a section header."""
        return 64 if self.wide else 40

    @property
    def entry_size(self) -> int:
        """Bytes of an entry of the dynamic section."""
        return 16 if self.wide else 8

    @property
    def loads(self) -> tuple[Program, ...]:
        """The loaded segments."""
        return tuple(program for program in self.programs if program.type == PT_LOAD)

    def first(self, tag: int) -> int | None:
        """The value of the first dynamic entry with a tag."""
        return next((value for each, value in self.dynamic if each == tag), None)

    def offset_of(self, address: int) -> int:
        """Where in the file the byte lies that is loaded at an address.

        Raises:
            IntegrityError: no loaded segment has it.
        """
        for load in self.loads:
            if load.vaddr <= address < load.vaddr + load.filesz:
                return load.offset + address - load.vaddr
        raise self.reader.error(f"a table refers to address {address:#x}, but no part of the file is loaded there")

    def string(self, offset: int) -> bytes:
        """A string of the dynamic string table, without reading the rest of it.

        Raises:
            IntegrityError: it lies outside, or does not end.
        """
        table, size = self.first(DT_STRTAB), self.first(DT_STRSZ)
        if table is None or size is None or not 0 <= offset < size:
            raise self.reader.error("a name is outside its string table")
        limit = min(MAX_STRING, size - offset)
        start = self.offset_of(table) + offset
        for length in (256, limit):
            text, end, _ = self.reader.read(start, min(length, limit)).partition(b"\0")
            if end:
                return text
        raise self.reader.error(
            f"a name extends past the end of its string table, or is longer than {MAX_STRING} bytes"
        )

    def pack_program(self, program: Program) -> bytes:
        """A program header as it stands in the file."""
        kind, flags, *rest, align = program
        if self.wide:
            return self.reader.structure("IIQQQQQQ").pack(*program)
        return self.reader.structure("IIIIIIII").pack(kind, *rest, flags, align)

    def pack_section(self, section: SectionHeader) -> bytes:
        """A section header as it stands in the file."""
        return self.reader.structure("IIQQQQIIQQ" if self.wide else "IIIIIIIIII").pack(*section)

    def pack_dynamic(self, entries: Sequence[tuple[int, int]], slots: int) -> bytes:
        """A dynamic section with DT_NULL in all slots that are left."""
        form = self.reader.structure("qQ" if self.wide else "iI")
        return b"".join(form.pack(*entry) for entry in entries) + bytes(form.size * (slots - len(entries)))


def refused(name: str, message: str, *, hint: str | None = None) -> IntegrityError:
    """A file that is sound but can't be changed as asked."""
    return IntegrityError(Problem(file=name, message=message, hint=hint))


def interpreter_place(image: Image) -> tuple[int, int]:
    """Where in the file the name of the interpreter stands, and the bytes that it has room for.

    Raises:
        IntegrityError: the file has none.
    """
    for program in image.programs:
        if program.type == PT_INTERP and program.filesz:
            return program.offset, program.filesz
    raise refused(image.name, "the file has no interpreter (PT_INTERP): only dynamically linked programs have one")


def read_image(source: Source, *, name: str = "ELF file") -> Image:
    """Read all tables of an executable or shared library.

    Raises:
        IntegrityError: it is no ELF file, its tables contradict each other or its size, or nothing loads it
            dynamically.
    """
    reader = Reader(source, name)
    head = reader.take(0, 16, "header")
    if not head.startswith(MAGIC):
        raise reader.error("the file does not start with the ELF magic number")
    if head[4] not in {1, 2} or head[5] not in {1, 2}:
        raise reader.error(f"the header has an unknown class ({head[4]}) or byte order ({head[5]})")
    reader.order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2
    kind, machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, _ = reader.unpack(
        "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH", 16, "header"
    )
    if kind not in {_ET_EXEC, _ET_DYN}:
        raise refused(name, "the file is neither an executable nor a shared library")
    program_form, section_form = ("IIQQQQQQ", "IIQQQQIIQQ") if wide else ("IIIIIIII", "IIIIIIIIII")
    if phnum > _MAX_PROGRAMS or phentsize != reader.structure(program_form).size:
        raise reader.error(f"the segment table has an implausible size: {phnum} entries of {phentsize} bytes")
    rows = _rows(reader, program_form, phoff, phnum, "segment table")
    programs = tuple(Program._make(row if wide else (row[0], row[6], *row[1:6], row[7])) for row in rows)
    if shoff and not shnum:
        shnum = reader.unpack(section_form, shoff, "section table")[5]
    if shoff and (shnum > _MAX_SECTIONS or shentsize != reader.structure(section_form).size):
        raise reader.error(f"the section table has an implausible size: {shnum} entries of {shentsize} bytes")
    rows = _rows(reader, section_form, shoff, shnum if shoff else 0, "section table")
    sections = tuple(SectionHeader._make(row) for row in rows)
    dynamic, place, slots = _read_dynamic(reader, programs, name=name, wide=wide)
    return Image(name, reader, wide, machine, phoff, shoff, programs, sections, dynamic, place, slots)


def _rows(reader: Reader, fields: str, offset: int, count: int, what: str) -> Iterator[tuple[int, ...]]:
    form = reader.structure(fields)
    return form.iter_unpack(reader.take(offset, form.size * count, what))


def _read_dynamic(
    reader: Reader, programs: tuple[Program, ...], *, name: str, wide: bool
) -> tuple[tuple[tuple[int, int], ...], int, int]:
    segment = next((program for program in programs if program.type == PT_DYNAMIC), None)
    if segment is None:
        raise refused(name, "the file has no dynamic section, so the loader never searches for libraries")
    form = "qQ" if wide else "iI"
    size = reader.structure(form).size
    slots = segment.filesz // size
    if slots > _MAX_DYNAMIC:
        raise reader.error(f"the dynamic section has an implausible number of entries: {slots}")
    entries: list[tuple[int, int]] = []
    for tag, value in _rows(reader, form, segment.offset, slots, "dynamic section"):
        if tag == DT_NULL:
            return tuple(entries), segment.offset, slots
        entries.append((tag, value))
    return tuple(entries), segment.offset, slots


class VersionName(NamedTuple):
    """A name in the tables of symbol versions."""

    kind: Literal["file", "need", "definition"]
    offset: int
    """In the string table."""
    field: int
    """Where in the file that offset stands (four bytes)."""


def version_names(image: Image) -> Iterator[VersionName]:
    """Every name that the symbol versions of a file use ("ELF Symbol Versioning", Drepper).

    Raises:
        IntegrityError: the chains lead out of the file or do not end.
    """
    reader = image.reader
    for need, start, count in (
        (True, image.first(DT_VERNEED), image.first(DT_VERNEEDNUM)),
        (False, image.first(DT_VERDEF), image.first(DT_VERDEFNUM)),
    ):
        if start is None or count is None:
            continue
        offset = image.offset_of(start)
        for _ in range(count):
            reader.spend()
            record = reader.unpack("HHIII" if need else "HHHHIII", offset, "version record")
            if need:
                yield VersionName("file", record[2], offset + 4)
            yield from _auxiliary_names(reader, offset + record[-2], record[1] if need else record[3], need=need)
            if record[-1] == 0:
                break
            offset += record[-1]


def _auxiliary_names(reader: Reader, offset: int, count: int, *, need: bool) -> Iterator[VersionName]:
    for _ in range(count):
        reader.spend()
        fields = reader.unpack("IHHII" if need else "II", offset, "version record")
        yield VersionName("need" if need else "definition", fields[-2], offset + (8 if need else 0))
        if fields[-1] == 0:
            return
        offset += fields[-1]


def symbol_names(image: Image) -> array[int] | None:
    """Where in the string table the names of the dynamic symbols start; ``None``: nothing tells how many there are.

    Raises:
        IntegrityError: the table reaches beyond the file.
    """
    names = array("I")
    address = image.first(DT_SYMTAB)
    count = 0 if address is None else symbol_count(image, address)
    if address is None or not count:
        return None if count is None else names
    if count > _MAX_SYMBOLS:
        raise image.reader.error(f"the file declares an implausible number of symbols: {count}")
    words = 6 if image.wide else 4
    start, step = image.offset_of(address), (1 << 20) // (4 * words)
    for first in range(0, count, step):
        size = min(step, count - first) * 4 * words
        names.extend(array("I", image.reader.take(start + first * 4 * words, size, "symbol table"))[::words])
    if (image.reader.order == "<") != (byteorder == "little"):
        names.byteswap()
    return names


def symbol_count(image: Image, address: int) -> int | None:
    """How many dynamic symbols the table at an address has; ``None``: nothing tells.

    Raises:
        IntegrityError: the tables that tell are damaged.
    """
    for section in image.sections:
        if section.type == SHT_DYNSYM and section.addr == address:
            return section.size // (24 if image.wide else 16)
    table = image.first(DT_HASH)
    if table is not None:
        word = "Q" if image.machine == 22 and image.wide else "I"  # s390x: 64-bit words
        return image.reader.unpack(word * 2, image.offset_of(table), "hash table")[1]
    table = image.first(DT_GNU_HASH)
    return None if table is None else _count_by_gnu_hash(image, image.offset_of(table))


def _count_by_gnu_hash(image: Image, offset: int) -> int:
    """The last chain ends with the last symbol; symbols before ``first`` are in no chain (the undefined ones)."""
    reader = image.reader
    buckets, first, bloom, _ = reader.unpack("IIII", offset, "hash table")
    if max(buckets, bloom) > _MAX_SYMBOLS:
        raise reader.error(f"the hash table has an implausible number of buckets: {buckets}")
    start = offset + 16 + bloom * (8 if image.wide else 4)
    last = max((word for (word,) in _rows(reader, "I", start, buckets, "hash table")), default=0)
    if last < first:
        return first
    place = start + 4 * (buckets + last - first)
    for index in range(_MAX_SYMBOLS):
        reader.spend()
        if reader.unpack("I", place + 4 * index, "hash table")[0] & 1:
            return last + index + 1
    raise reader.error("the hash table has no end marker")


class Links(NamedTuple):
    """What a file says of names and search paths."""

    soname: str | None
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    interpreter: str | None


def read_links(source: Source, *, name: str = "ELF file") -> Links:
    """SONAME, NEEDED, search paths and interpreter alone: a few small reads, whatever the size of the file.

    Raises:
        IntegrityError: as :func:`read_image`, or a name lies outside the string table.
    """
    image = read_image(source, name=name)

    def texts(tag: int) -> list[str]:
        return [image.string(value).decode("utf-8", "backslashreplace") for each, value in image.dynamic if each == tag]

    def path(tag: int) -> tuple[str, ...]:
        return tuple(entry for text in texts(tag) if text for entry in text.split(":"))

    soname, interpreter = next(iter(texts(DT_SONAME)), None), None
    if any(program.type == PT_INTERP and program.filesz for program in image.programs):
        start, size = interpreter_place(image)
        text = image.reader.take(start, min(size, MAX_STRING), "interpreter").partition(b"\0")[0]
        interpreter = text.decode("utf-8", "backslashreplace")
    return Links(soname, tuple(texts(DT_NEEDED)), path(DT_RPATH), path(DT_RUNPATH), interpreter)
