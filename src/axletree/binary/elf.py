"""What a loader, an auditor and a tag need to know of an ELF file, read from its headers alone.

The layout is that of the System V ABI ("ELF-64 Object File Format" and the gABI chapters on dynamic linking); symbol
versions are as in "ELF Symbol Versioning" (Drepper). Every count and offset of the file is taken as hostile: it is
checked against the size of the file and against fixed bounds before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from axletree.binary.device import DeviceSection
from axletree.binary.elf_tables import MAGIC, Layout, Reader, read_layout
from axletree.binary.source import BufferSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.source import Source

_PT_INTERP, _PT_GNU_STACK, _PF_X = 3, 0x6474E551, 1
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH = 1, 4, 5, 6, 10, 14, 15
_DT_RUNPATH, _DT_GNU_HASH = 29, 0x6FFFFEF5
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_SHT_SYMTAB, _SHT_STRTAB, _SHT_NOBITS, _SHT_DYNSYM = 2, 3, 8, 11
_STB_WEAK, _SHN_UNDEF = 2, 0
_KINDS: dict[int, Literal["relocatable", "executable", "shared", "core"]] = {
    1: "relocatable",
    2: "executable",
    3: "shared",
    4: "core",
}
_ARCHITECTURES = {
    (3, 32, "little"): "i686",
    (62, 64, "little"): "x86_64",
    (183, 64, "little"): "aarch64",
    (40, 32, "little"): "armv7l",
    (21, 64, "little"): "ppc64le",
    (22, 64, "big"): "s390x",
    (243, 64, "little"): "riscv64",
    (258, 64, "little"): "loongarch64",
}
_MAX_STRING_TABLE = 256 << 20
_MAX_SYMBOLS = 8_000_000
_MAX_STRING = 1 << 16
_PIECE = 1 << 20


class VersionNeed(msgspec.Struct, frozen=True, kw_only=True):
    """The symbol versions that a file needs of one library (``.gnu.version_r``)."""

    file: str
    """SONAME of the library."""
    versions: tuple[str, ...]
    """``GLIBC_2.17``, ``GLIBCXX_3.4.21`` and the like, as in the file."""


class SectionSize(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many bytes of the file a section takes."""

    name: str
    size: int
    loaded: bool = False
    """Whether a loader maps it (``SHF_ALLOC``)."""


class AbiUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which foreign interfaces the undefined symbols of a file name, weak ones left out. Counts of symbols."""

    torch_cxx: int = 0
    """Mangled names of torch's C++ namespaces (``c10``, ``at``, ``torch``, ``caffe2``): fit one torch release only."""
    torch_shims: int = 0
    """torch's stable C interface (``aoti_torch_*``, ``torch_*``)."""
    cxx11: int = 0
    """C++ names with the new ``std::string`` (``__cxx11``), undefined or exported."""
    old_strings: int = 0
    """C++ names with the old one (``Ss``)."""


class ElfFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts of one ELF file. Tuples keep the order of the file."""

    bits: Literal[32, 64]
    order: Literal["little", "big"]
    kind: Literal["relocatable", "executable", "shared", "core", "other"]
    """``e_type``; a position-independent executable says ``shared`` and has an interpreter."""
    machine: int
    """``e_machine``."""
    dynamic: bool = False
    """Whether it has a dynamic section at all."""
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    """Entries of DT_RPATH."""
    runpath: tuple[str, ...] = ()
    """Entries of DT_RUNPATH; where there are any, the loader ignores DT_RPATH."""
    versions_needed: tuple[VersionNeed, ...] = ()
    versions_defined: tuple[str, ...] = ()
    """Symbol versions that it defines; the first is usually its SONAME (the base version)."""
    stack: Literal["plain", "executable", "unmarked"] = "unmarked"
    """``unmarked``: no PT_GNU_STACK header, which glibc takes as executable."""
    interpreter: str | None = None
    """PT_INTERP: who loads it when it is started as a program."""
    symbol_table: int = 0
    """Bytes of ``.symtab`` and its string table, which no loader reads."""
    debug: int = 0
    """Bytes of debug sections."""
    python_symbols: tuple[str, ...] = ()
    """Undefined, not weak ``Py*`` and ``_Py*`` symbols, sorted: it can't be loaded without CPython."""
    python_modules: tuple[str, ...] = ()
    """Extension modules that it is, from its ``PyInit_*`` functions, sorted."""
    abi: AbiUse = AbiUse()
    build_id: str | None = None
    """Hexadecimal, from its GNU build-id note."""
    first_load_writable: bool = False
    """Whether the first loaded segment may be written to, which kernels before 5.10 refuse in a program."""
    misaligned: tuple[str, ...] = ()
    """Loaded segments whose offset and address differ modulo their alignment, or that overlap in the file."""
    sections: tuple[SectionSize, ...] = ()
    """Sections that have bytes in the file."""
    device: tuple[DeviceSection, ...] = ()
    """GPU code in it, by section."""

    @property
    def architecture(self) -> str | None:
        """The machine as platform tags spell it (``x86_64``), ``None`` for others, such as GPU code."""
        return _ARCHITECTURES.get((self.machine, self.bits, self.order))


class _Dynamic(NamedTuple):
    """The dynamic section: tag -> values, and the string table that they point into."""

    values: dict[int, list[int]]
    strings: bytes

    def first(self, tag: int) -> int | None:
        found = self.values.get(tag)
        return found[0] if found else None


def is_elf(head: bytes) -> bool:
    """Whether a file that starts like this is an ELF file."""
    return head.startswith(MAGIC)


def read_elf(data: Source | bytes | memoryview, *, name: str = "ELF file") -> ElfFacts:
    """Read the facts of an ELF file of either class and byte order.

    Args:
        data: the whole file, or a source that reads it in pieces.
        name: what errors call the file.

    Raises:
        IntegrityError: the file is no ELF file, or its tables contradict each other or its size.
    """
    source = BufferSource(data) if isinstance(data, bytes | memoryview) else data
    reader = Reader(source, name)
    layout = read_layout(reader)
    dynamic = _read_dynamic(reader, layout)
    undefined, modules = _python_symbols(reader, layout, dynamic)
    symbol_table, debug = _unloaded_sections(layout)
    soname = dynamic.first(_DT_SONAME) if dynamic else None
    return ElfFacts(
        bits=layout.bits,
        order=layout.order,
        kind=_KINDS.get(layout.kind, "other"),
        machine=layout.machine,
        dynamic=dynamic is not None,
        soname=None if soname is None or dynamic is None else _string(reader, dynamic, soname),
        needed=_strings(reader, dynamic, _DT_NEEDED),
        rpath=_search_path(reader, dynamic, _DT_RPATH),
        runpath=_search_path(reader, dynamic, _DT_RUNPATH),
        versions_needed=tuple(_versions_needed(reader, layout, dynamic)),
        versions_defined=tuple(_versions_defined(reader, layout, dynamic)),
        stack=_stack(layout),
        interpreter=_interpreter(reader, layout),
        symbol_table=symbol_table,
        debug=debug,
        python_symbols=undefined,
        python_modules=modules,
    )


def _stack(layout: Layout) -> Literal["plain", "executable", "unmarked"]:
    flags = next((segment.flags for segment in layout.segments if segment.type == _PT_GNU_STACK), None)
    if flags is None:
        return "unmarked"
    return "executable" if flags & _PF_X else "plain"


def _interpreter(reader: Reader, layout: Layout) -> str | None:
    segment = next((segment for segment in layout.segments if segment.type == _PT_INTERP), None)
    if segment is None:
        return None
    path = reader.take(segment.offset, min(segment.filesz, _MAX_STRING), "interpreter")
    return path.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _read_dynamic(reader: Reader, layout: Layout) -> _Dynamic | None:
    table = reader.dynamic_entries(layout)
    if table is None:
        return None
    values: dict[int, list[int]] = {}
    for tag, value in table:
        values.setdefault(tag, []).append(value)
    address, size = values.get(_DT_STRTAB), values.get(_DT_STRSZ)
    if not address or not size:
        return _Dynamic(values, b"")
    if size[0] > _MAX_STRING_TABLE:
        raise reader.error(f"its string table claims {size[0]} bytes")
    return _Dynamic(values, reader.take(layout.offset_of(reader, address[0]), size[0], "string table"))


def _string(reader: Reader, dynamic: _Dynamic, offset: int) -> str:
    strings = dynamic.strings
    end = strings.find(b"\0", offset, offset + _MAX_STRING)
    if offset >= len(strings) or end < 0:
        raise reader.error(f"a name lies outside its string table, or is longer than {_MAX_STRING} bytes")
    reader.spend(1 + (end - offset) // 64)
    return strings[offset:end].decode("utf-8", "backslashreplace")


def _strings(reader: Reader, dynamic: _Dynamic | None, tag: int) -> tuple[str, ...]:
    if dynamic is None:
        return ()
    return tuple(_string(reader, dynamic, offset) for offset in dynamic.values.get(tag, []))


def _search_path(reader: Reader, dynamic: _Dynamic | None, tag: int) -> tuple[str, ...]:
    paths = _strings(reader, dynamic, tag)
    # An empty entry means the working directory to the loader, so it is kept; an empty path has no entries.
    return tuple(entry for path in paths if path for entry in path.split(":"))


def _version_chain(
    reader: Reader, layout: Layout, start: int | None, count: int | None, kind: Literal["need", "definition"]
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


def _versions_needed(reader: Reader, layout: Layout, dynamic: _Dynamic | None) -> Iterator[VersionNeed]:
    if dynamic is None:
        return
    chain = _version_chain(reader, layout, dynamic.first(_DT_VERNEED), dynamic.first(_DT_VERNEEDNUM), "need")
    for record, names in chain:
        file = _string(reader, dynamic, record[2])
        yield VersionNeed(file=file, versions=tuple(_string(reader, dynamic, name) for name in names))


def _versions_defined(reader: Reader, layout: Layout, dynamic: _Dynamic | None) -> Iterator[str]:
    if dynamic is None:
        return
    chain = _version_chain(reader, layout, dynamic.first(_DT_VERDEF), dynamic.first(_DT_VERDEFNUM), "definition")
    for _, names in chain:
        if names:  # the first name is the version itself, others are those it inherits from
            yield _string(reader, dynamic, names[0])


def _python_symbols(
    reader: Reader, layout: Layout, dynamic: _Dynamic | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Undefined CPython symbols, and the extension modules that the file defines."""
    if dynamic is None or not dynamic.strings:
        return (), ()
    address = dynamic.first(_DT_SYMTAB)
    if address is None:
        return (), ()
    undefined: set[str] = set()
    modules: set[str] = set()
    starts = dynamic.strings.startswith
    for name, info, section in _symbols(reader, layout, dynamic, address):
        if not starts((b"Py", b"_Py"), name):
            continue
        if section == _SHN_UNDEF:
            if info >> 4 != _STB_WEAK:  # a weak one is used only where it is there
                undefined.add(_string(reader, dynamic, name))
        elif starts((b"PyInit_", b"PyInitU_"), name):
            modules.add(_string(reader, dynamic, name).partition("_")[2])
    return tuple(sorted(undefined)), tuple(sorted(modules))


def _symbols(reader: Reader, layout: Layout, dynamic: _Dynamic, address: int) -> Iterator[tuple[int, int, int]]:
    """(name offset, info, section index) of each dynamic symbol."""
    unpacker = reader.structure("IBBHQQ" if layout.bits == 64 else "IIIBBH")
    info, section = (1, 3) if layout.bits == 64 else (3, 5)
    start = layout.offset_of(reader, address)
    count = _symbol_count(reader, layout, dynamic, address)
    if count > _MAX_SYMBOLS:
        raise reader.error(f"it claims {count} symbols")
    step = _PIECE // unpacker.size
    for first in range(0, count, step):
        size = min(step, count - first) * unpacker.size
        piece = reader.take(start + first * unpacker.size, size, "symbol table")
        for fields in unpacker.iter_unpack(piece):
            yield fields[0], fields[info], fields[section]


def _symbol_count(reader: Reader, layout: Layout, dynamic: _Dynamic, address: int) -> int:
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
    word = "Q" if layout.machine == 22 and layout.bits == 64 else "I"  # s390x: 64-bit words
    return reader.unpack(word * 2, layout.offset_of(reader, plain_hash), "hash table")[1]


def _count_by_gnu_hash(reader: Reader, layout: Layout, offset: int) -> int:
    """The last chain ends with the last symbol; symbols before ``first`` are in no chain (the undefined ones)."""
    buckets, first, bloom, _ = reader.unpack("IIII", offset, "hash table")
    if buckets > _MAX_SYMBOLS:
        raise reader.error(f"its hash table claims {buckets} buckets")
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
            raise reader.error("its hash table does not end")
        for index, (word,) in enumerate(words.iter_unpack(piece)):
            if word & 1:
                return first + (position - chains) // 4 + index + 1
        position += len(piece)


def _unloaded_sections(layout: Layout) -> tuple[int, int]:
    """Bytes of the static symbol table with its strings, and of debug sections."""
    table = debug = 0
    for section in layout.sections:
        if section.type == _SHT_NOBITS:
            continue
        if section.type == _SHT_SYMTAB or (section.type == _SHT_STRTAB and section.name == b".strtab"):
            table += section.size
        elif section.name.startswith((b".debug_", b".zdebug_")):
            debug += section.size
    return table, debug
