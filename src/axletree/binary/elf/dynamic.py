"""What the dynamic section of an ELF file points to: strings, search paths, symbol versions, symbols."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.elf.tables import ElfLayout, Reader

DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 14, 15, 29
_DT_TEXTREL, _DT_FLAGS, _DF_TEXTREL = 22, 30, 4
_DT_FLAGS_1, _DF_1_PIE = 0x6FFFFFFB, 0x08000000
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_GNU_HASH = 4, 5, 6, 10, 0x6FFFFEF5
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_SHT_DYNSYM = 11
_S390X = 22
_MAX_STRING_TABLE = 128 << 20
_MAX_SYMBOLS = 4_000_000
_MAX_STRING = 1 << 16
_PIECE = 1 << 16
_EXPECTED = {_DT_SYMTAB: 16 << 20, _DT_GNU_HASH: 1 << 20, _DT_HASH: 16, _DT_VERNEED: 1 << 18, _DT_VERDEF: 1 << 18}
"""Tables whose sizes the dynamic section does not tell, and how much of them a source should keep."""


class Dynamic(NamedTuple):
    """The dynamic section: tag -> values, and the string table that they point into."""

    values: dict[int, list[int]]
    strings: bytes

    def first(self, tag: int) -> int | None:
        """The first value of a tag."""
        found = self.values.get(tag)
        return found[0] if found else None


class SymbolPiece(NamedTuple):
    """Some symbols of the table, as two columns: a loop over objects would take most of the time of an audit."""

    names: array[int]
    """Offsets into the string table."""
    words: array[int]
    """The word that has binding and section index; see the three masks."""
    section: int
    """Mask of the section index: zero for what another file must bring."""
    binding: int
    """Mask of the binding: zero for local symbols."""
    weak: int
    """The binding of weak symbols."""


def read_dynamic_values(reader: Reader, layout: ElfLayout) -> dict[int, list[int]] | None:
    """The dynamic section, tag -> values in their order; ``None`` where there is none.

    Raises:
        IntegrityError: it does not fit into the file.
    """
    table = reader.dynamic_entries(layout)
    if table is None:
        return None
    values: dict[int, list[int]] = {}
    for tag, value in table:
        values.setdefault(tag, []).append(value)
    strings, length = values.get(_DT_STRTAB), values.get(_DT_STRSZ)
    expected = {tag: (values[tag][0], size) for tag, size in _EXPECTED.items() if tag in values}
    if strings and length:
        expected[_DT_STRTAB] = (strings[0], min(length[0], _MAX_STRING_TABLE))
    for address, size in expected.values():
        offset = layout.find_offset(address)
        if offset is not None:
            reader.expect(offset, size)
    return values


def read_dynamic(reader: Reader, layout: ElfLayout, values: dict[int, list[int]] | None = None) -> Dynamic | None:
    """The dynamic section with its strings; ``None`` where there is none.

    Args:
        reader: the file.
        layout: its tables.
        values: the section, where it was read before.

    Raises:
        IntegrityError: its tables do not fit into the file.
    """
    values = values or read_dynamic_values(reader, layout)
    if values is None:
        return None
    address, size = values.get(_DT_STRTAB), values.get(_DT_STRSZ)
    if not address or not size:
        return Dynamic(values, b"")
    if size[0] > _MAX_STRING_TABLE:
        raise reader.error(f"the string table has an implausible size: {size[0]} bytes")
    return Dynamic(values, reader.take(layout.offset_of(reader, address[0]), size[0], "string table"))


def has_text_relocations(dynamic: Dynamic) -> bool:
    """Whether relocations change segments that are not writable (``DT_TEXTREL``, or its flag in ``DT_FLAGS``)."""
    return _DT_TEXTREL in dynamic.values or bool((dynamic.first(_DT_FLAGS) or 0) & _DF_TEXTREL)


def says_program(dynamic: Dynamic) -> bool:
    """Whether it says that it is a position-independent program (``DF_1_PIE``); older linkers do not say so."""
    return bool((dynamic.first(_DT_FLAGS_1) or 0) & _DF_1_PIE)


def read_string(reader: Reader, dynamic: Dynamic, offset: int) -> str:
    """A name in the string table.

    Raises:
        IntegrityError: it lies outside of it, or is longer than any real name.
    """
    strings = dynamic.strings
    end = strings.find(b"\0", offset, offset + _MAX_STRING)
    if offset >= len(strings) or end < 0:
        raise reader.error(f"a name is outside its string table, or longer than {_MAX_STRING} bytes")
    reader.spend(1 + (end - offset) // 64)
    return strings[offset:end].decode("utf-8", "backslashreplace")


def read_strings(reader: Reader, dynamic: Dynamic | None, tag: int) -> tuple[str, ...]:
    """The names that all entries of a tag point to."""
    if dynamic is None:
        return ()
    return tuple(read_string(reader, dynamic, offset) for offset in dynamic.values.get(tag, []))


def _version_chain(
    reader: Reader, layout: ElfLayout, start: int | None, count: int | None, kind: Literal["need", "definition"]
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Walk Verneed or Verdef records: the record, and the name offsets of its auxiliary records."""
    if start is None or count is None:
        return
    record_format, aux_format, aux_name = ("HHIII", "IHHII", 3) if kind == "need" else ("HHHHIII", "II", 0)
    offset = layout.offset_of(reader, start)
    for _ in range(count):
        reader.spend()
        record = reader.unpack(record_format, offset, "version record")
        aux, names = offset + record[-2], []
        for _ in range(record[1] if kind == "need" else record[3]):
            reader.spend()
            fields = reader.unpack(aux_format, aux, "version record")
            names.append(fields[aux_name])
            if fields[-1] == 0:
                break
            aux += fields[-1]
        yield record, names
        if record[-1] == 0:
            return
        offset += record[-1]


def versions_needed(reader: Reader, layout: ElfLayout, dynamic: Dynamic) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(library, versions) of each record of ``.gnu.version_r``."""
    chain = _version_chain(reader, layout, dynamic.first(_DT_VERNEED), dynamic.first(_DT_VERNEEDNUM), "need")
    for record, names in chain:
        file = read_string(reader, dynamic, record[2])
        yield file, tuple(read_string(reader, dynamic, name) for name in names)


def versions_defined(reader: Reader, layout: ElfLayout, dynamic: Dynamic) -> Iterator[str]:
    """The versions of ``.gnu.version_d``."""
    chain = _version_chain(reader, layout, dynamic.first(_DT_VERDEF), dynamic.first(_DT_VERDEFNUM), "definition")
    for _, names in chain:
        if names:  # the first name is the version itself, others are those it inherits from
            yield read_string(reader, dynamic, names[0])


def read_symbols(reader: Reader, layout: ElfLayout, dynamic: Dynamic) -> Iterator[SymbolPiece]:
    """The dynamic symbols in pieces; none where there is no table of them.

    Raises:
        IntegrityError: the table does not fit into the file.
    """
    address = dynamic.first(_DT_SYMTAB)
    if address is None or not dynamic.strings:
        return
    words, column = (6, 1) if layout.bits == 64 else (4, 3)
    little = layout.order == "little"
    masks = (0xFFFF0000, 0xF0, 0x20) if little else (0xFFFF, 0xF0000000, 0x20000000)
    start = layout.offset_of(reader, address)
    count = _symbol_count(reader, layout, dynamic, address)
    if count > _MAX_SYMBOLS:
        raise reader.error(f"the file declares an implausible number of symbols: {count}")
    step = _PIECE // (words * 4)
    for first in range(0, count, step):
        size = min(step, count - first) * words * 4
        table = array("I", reader.take(start + first * words * 4, size, "symbol table"))
        if layout.order != sys.byteorder:
            table.byteswap()
        yield SymbolPiece(table[::words], table[column::words], *masks)


def _symbol_count(reader: Reader, layout: ElfLayout, dynamic: Dynamic, address: int) -> int:
    """Dynamic symbols: from the section header, else from the hash tables (the only other place that tells)."""
    entry = 24 if layout.bits == 64 else 16
    section = next((s for s in layout.sections if s.type == _SHT_DYNSYM and s.addr == address), None)
    if section is not None:
        return section.size // entry
    gnu_hash = dynamic.first(_DT_GNU_HASH)
    if gnu_hash is not None:
        return _count_by_gnu_hash(reader, layout, layout.offset_of(reader, gnu_hash))
    plain_hash = dynamic.first(_DT_HASH)
    if plain_hash is None:
        return 0
    word = "Q" if layout.machine == _S390X and layout.bits == 64 else "I"
    return reader.unpack(word * 2, layout.offset_of(reader, plain_hash), "hash table")[1]


def _count_by_gnu_hash(reader: Reader, layout: ElfLayout, offset: int) -> int:
    """The last chain ends with the last symbol; symbols before ``first`` are in no chain (the undefined ones)."""
    buckets, first, bloom, _ = reader.unpack("IIII", offset, "hash table")
    if buckets > _MAX_SYMBOLS:
        raise reader.error(f"the hash table has an implausible number of buckets: {buckets}")
    start = offset + 16 + bloom * (layout.bits // 8)
    words = reader.structure("I")
    table = reader.take(start, buckets * 4, "hash table")
    last = max((word for (word,) in words.iter_unpack(table)), default=0)
    if last < first:
        return first
    chains = start + buckets * 4
    position = chains + (last - first) * 4
    while True:
        piece = reader.read(position, _PIECE)
        piece = piece[: len(piece) // 4 * 4]
        if not piece:
            raise reader.error("the hash table has no end marker")
        for index, (word,) in enumerate(words.iter_unpack(piece)):
            if word & 1:
                return first + (position - chains) // 4 + index + 1
        position += len(piece)
