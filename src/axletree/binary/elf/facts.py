"""What a loader, an auditor and a tag need to know of an ELF file, read from its headers alone.

The layout is that of the System V ABI ("ELF-64 Object File Format" and the gABI chapters on dynamic linking); symbol
versions are as in "ELF Symbol Versioning" (Drepper). Every count and offset of the file is taken as hostile: it is
checked against the size of the file and against fixed bounds before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.binary.elf.dynamic import (
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    Dynamic,
    has_text_relocations,
    read_dynamic,
    read_dynamic_values,
    read_string,
    read_strings,
    says_program,
    versions_defined,
    versions_needed,
)
from axletree.binary.elf.segments import (
    expect_segments,
    find_misalignments,
    first_load_writable,
    read_build_id,
    read_interpreter,
    read_only_ranges,
    stack_kind,
)
from axletree.binary.elf.symbol_use import read_symbol_use
from axletree.binary.elf.tables import MAGIC, ElfLayout, Reader, expect_section_names, read_head, read_sections
from axletree.binary.gpu.code import DeviceSection
from axletree.binary.gpu.scan import SECTIONS, read_device
from axletree.binary.gpu.scan import GpuSection as Place
from axletree.binary.source import BufferSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.source import Source

_SHT_NULL, _SHT_SYMTAB, _SHT_STRTAB, _SHT_NOBITS = 0, 2, 3, 8
_SHF_ALLOC = 2
_DEVICE_SECTIONS = frozenset(name.encode() for name in SECTIONS)
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
    """``e_type``; a position-independent program says ``shared`` and has an interpreter, or is ``static_program``."""
    machine: int
    """``e_machine``."""
    dynamic: bool = False
    """Whether it has a dynamic section at all."""
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    """Entries of DT_RPATH."""
    runpath: tuple[str, ...] = ()
    """Entries of DT_RUNPATH; if there are any, the loader ignores DT_RPATH."""
    versions_needed: tuple[VersionNeed, ...] = ()
    versions_defined: tuple[str, ...] = ()
    """Symbol versions that it defines; the first is usually its SONAME (the base version)."""
    stack: Literal["plain", "executable", "unmarked"] = "unmarked"
    """``unmarked``: no PT_GNU_STACK header, which glibc takes as executable."""
    interpreter: str | None = None
    """PT_INTERP: who loads it when it is started as a program."""
    static_program: bool = False
    """Position-independent and linked statically: ``shared`` and without an interpreter, but no library."""
    symbol_table: int = 0
    """Bytes of ``.symtab`` and its string table, which no loader reads."""
    debug: int = 0
    """Bytes of debug sections."""
    python_symbols: tuple[str, ...] = ()
    """Undefined, not weak ``Py*`` and ``_Py*`` symbols, sorted: it can't be loaded without CPython."""
    python_modules: tuple[str, ...] = ()
    """Extension modules that it is, from its ``PyInit_*`` functions, sorted."""
    driver_symbols: tuple[str, ...] = ()
    """Undefined symbols, also weak ones, with names as GPU drivers export them (``cuInit``, ``nvmlInit``), sorted."""
    abi: AbiUse = AbiUse()
    build_id: str | None = None
    """Hexadecimal, from its GNU build-id note."""
    text_relocations: bool = False
    """Whether the loader must write into its code to load it."""
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


def is_elf(head: bytes) -> bool:
    """Whether a file that starts like this is an ELF file."""
    return head.startswith(MAGIC)


def read_elf(data: Source | bytes | memoryview, *, name: str = "ELF file") -> ElfFacts:
    """Read the facts of an ELF file of either class and byte order.

    Args:
        data: the whole file, or a source that reads any range of it.
        name: what errors call the file.

    Raises:
        IntegrityError: the file is no ELF file, or its tables contradict each other or its size.
    """
    source = BufferSource(data) if isinstance(data, bytes | memoryview) else data
    facts, places = read_host_facts(source, name=name)
    return msgspec.structs.replace(facts, device=read_device(source, places)) if places else facts


def read_host_facts(source: Source, *, name: str) -> tuple[ElfFacts, tuple[Place, ...]]:
    """The facts of an ELF file but for its GPU code, and the sections where that lies.

    For content that goes by once: whatever lies behind what is read first (header, segments, dynamic section) is
    announced to the source before the sections at the end are read.

    Raises:
        IntegrityError: as :func:`read_elf`.
    """
    reader = Reader(source, name)
    layout = read_head(reader)
    expect_segments(reader, layout)
    values = read_dynamic_values(reader, layout)
    expect_section_names(reader, layout)
    layout = read_sections(reader, layout)
    dynamic = read_dynamic(reader, layout, values)
    facts = _facts_of_tables(reader, layout)
    places = tuple(
        Place(section.name.decode(), section.offset, section.size)
        for section in layout.sections
        if section.name in _DEVICE_SECTIONS and section.type != _SHT_NOBITS
    )
    return (facts if dynamic is None else _add_dynamic(facts, reader, layout, dynamic)), places


def constant_ranges(source: Source, *, name: str) -> tuple[tuple[int, int], ...]:
    """(start, end) of what can hold GPU code, from the segments; empty where all of the file can.

    Raises:
        IntegrityError: the header or the segments are damaged.
    """
    return read_only_ranges(read_head(Reader(source, name)))


def _facts_of_tables(reader: Reader, layout: ElfLayout) -> ElfFacts:
    symbol_table, debug = _unloaded_sections(layout)
    return ElfFacts(
        bits=layout.bits,
        order=layout.order,
        kind=_KINDS.get(layout.kind, "other"),
        machine=layout.machine,
        stack=stack_kind(layout),
        interpreter=read_interpreter(reader, layout),
        symbol_table=symbol_table,
        debug=debug,
        build_id=read_build_id(reader, layout),
        first_load_writable=first_load_writable(layout),
        misaligned=find_misalignments(layout, reader.size),
        sections=tuple(_section_sizes(layout, reader.size)),
    )


def _add_dynamic(facts: ElfFacts, reader: Reader, layout: ElfLayout, dynamic: Dynamic) -> ElfFacts:
    soname = dynamic.first(DT_SONAME)
    use = read_symbol_use(reader, layout, dynamic)
    return msgspec.structs.replace(
        facts,
        dynamic=True,
        static_program=facts.interpreter is None and says_program(dynamic) and not dynamic.values.get(DT_NEEDED),
        soname=None if soname is None else read_string(reader, dynamic, soname),
        needed=read_strings(reader, dynamic, DT_NEEDED),
        rpath=_search_path(reader, dynamic, DT_RPATH),
        runpath=_search_path(reader, dynamic, DT_RUNPATH),
        versions_needed=tuple(
            VersionNeed(file=file, versions=versions) for file, versions in versions_needed(reader, layout, dynamic)
        ),
        versions_defined=tuple(versions_defined(reader, layout, dynamic)),
        text_relocations=has_text_relocations(dynamic),
        python_symbols=use.python_symbols,
        python_modules=use.python_modules,
        driver_symbols=use.driver_symbols,
        abi=AbiUse(torch_cxx=use.torch_cxx, torch_shims=use.torch_shims, cxx11=use.cxx11, old_strings=use.old_strings),
    )


def _search_path(reader: Reader, dynamic: Dynamic, tag: int) -> tuple[str, ...]:
    paths = read_strings(reader, dynamic, tag)
    # An empty entry means the working directory to the loader, so it is kept; an empty path has no entries.
    return tuple(entry for path in paths if path for entry in path.split(":"))


def _unloaded_sections(layout: ElfLayout) -> tuple[int, int]:
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


def _section_sizes(layout: ElfLayout, size: int) -> Iterator[SectionSize]:
    for section in layout.sections:
        taken = min(section.size, size - section.offset)  # what a damaged table claims beyond the end is not there
        if section.type not in {_SHT_NULL, _SHT_NOBITS} and taken > 0:
            yield SectionSize(
                name=section.name.decode("utf-8", "backslashreplace"),
                size=taken,
                loaded=bool(section.flags & _SHF_ALLOC),
            )
