"""What the segments of an ELF file say: how it is loaded, and whether a loader will refuse it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal

from axletree.binary.elf.tables import PT_GNU_STACK, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.elf.tables import ElfLayout, Reader

_PF_X, _PF_W = 1, 2
_SHT_NOTE = 7
_NT_GNU_BUILD_ID = 3
_MAX_STRING = 1 << 16
_MAX_NOTES = 1 << 16
_MIN_PAGE = 4096
_SHOWN = 8


def expect_segments(reader: Reader, layout: ElfLayout) -> None:
    """Announce what the functions below will read."""
    for segment in layout.segments:
        if segment.type in {PT_INTERP, PT_NOTE}:
            reader.expect(segment.offset, min(segment.filesz, _MAX_NOTES))


def read_only_ranges(layout: ElfLayout) -> tuple[tuple[int, int], ...]:
    """(start, end) in the file of what can hold constant data such as GPU code; empty where all of it can.

    Linkers put constants into segments of their own (GNU ld behind the code, LLD before it) or, older ones, beside the
    code in the first segment; never into what is written to or not loaded.
    """
    loads = [segment for segment in layout.segments if segment.type == PT_LOAD]
    if loads and loads[0].flags & _PF_X:
        constant = [segment for segment in loads if not segment.flags & _PF_W]
    else:
        constant = [segment for segment in loads if not segment.flags & (_PF_W | _PF_X)]
        code = next((segment.vaddr for segment in loads if segment.flags & _PF_X), 0)
        constant = [segment for segment in constant if segment.vaddr > code] or constant
    return tuple((segment.offset, segment.offset + segment.filesz) for segment in constant or loads)


def stack_kind(layout: ElfLayout) -> Literal["plain", "executable", "unmarked"]:
    """What PT_GNU_STACK says."""
    flags = next((segment.flags for segment in layout.segments if segment.type == PT_GNU_STACK), None)
    if flags is None:
        return "unmarked"
    return "executable" if flags & _PF_X else "plain"


def first_load_writable(layout: ElfLayout) -> bool:
    """Whether the first loaded segment may be written to."""
    return next((bool(segment.flags & _PF_W) for segment in layout.segments if segment.type == PT_LOAD), False)


def read_interpreter(reader: Reader, layout: ElfLayout) -> str | None:
    """The path in PT_INTERP.

    Raises:
        IntegrityError: it lies outside of the file.
    """
    segment = next((segment for segment in layout.segments if segment.type == PT_INTERP), None)
    if segment is None:
        return None
    path = reader.take(segment.offset, min(segment.filesz, _MAX_STRING), "interpreter")
    return path.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def read_build_id(reader: Reader, layout: ElfLayout) -> str | None:
    """The GNU build-id in hexadecimal, from the notes that are loaded, else from those of the sections."""
    places = [(s.offset, s.filesz, s.align) for s in layout.segments if s.type == PT_NOTE]
    places = places or [(s.offset, s.size, 4) for s in layout.sections if s.type == _SHT_NOTE]
    for offset, size, align in places:
        for kind, owner, content in _notes(reader, reader.read(offset, min(size, _MAX_NOTES)), align):
            if (kind, owner) == (_NT_GNU_BUILD_ID, b"GNU\0"):
                return content.hex()
    return None


def _notes(reader: Reader, data: bytes, align: int) -> Iterator[tuple[int, bytes, bytes]]:
    """(type, owner, content) of each whole note."""
    form, step = reader.structure("III"), 8 if align == 8 else 4
    position = 0
    while position + form.size <= len(data):
        reader.spend()
        owner_size, size, kind = form.unpack_from(data, position)
        start = position + form.size
        content = start + owner_size + -owner_size % 4
        content += -content % step
        end = content + size
        if end > len(data):
            return
        yield kind, data[start : start + owner_size], data[content:end]
        position = end + -end % step


def find_misalignments(layout: ElfLayout, size: int) -> tuple[str, ...]:
    """Why a loader refuses the segments or maps wrong bytes, one sentence each: what glibc's and Linux' loaders check.

    Args:
        layout: the tables of the file.
        size: bytes of the file.
    """
    return tuple(itertools.islice(_misalignments(layout, size), _SHOWN))


def _misalignments(layout: ElfLayout, size: int) -> Iterator[str]:
    loads = [(index, segment) for index, segment in enumerate(layout.segments) if segment.type == PT_LOAD]
    for index, load in loads:
        where = f"LOAD segment {index}"
        if load.align > 1 and load.align & (load.align - 1):
            yield f"{where}: its alignment {load.align:#x} is not a power of two"
        elif load.align > 1 and (load.offset - load.vaddr) % load.align:
            place = f"offset {load.offset:#x} and address {load.vaddr:#x}"
            yield f"{where}: {place} are not congruent modulo the segment's alignment {load.align:#x}"
        elif load.align % _MIN_PAGE:
            yield f"{where}: its alignment {load.align:#x} is smaller than a page"
        if load.filesz > load.memsz:
            yield f"{where}: it is larger in the file ({load.filesz:#x}) than in memory ({load.memsz:#x})"
        if load.offset + load.filesz > size:
            yield f"{where}: it ends at {load.offset + load.filesz:#x}, past the end of the file ({size:#x})"
    for (before, low), (index, high) in itertools.pairwise(loads):
        if high.vaddr < low.vaddr:
            yield f"LOAD segment {index}: its address {high.vaddr:#x} is lower than that of segment {before}"
        elif high.vaddr < low.vaddr + low.memsz:
            yield f"LOAD segment {index}: it overlaps segment {before} in memory"
    parts = sorted((load.offset, load.offset + load.filesz, index) for index, load in loads if load.filesz)
    for (_, end, before), (start, _, index) in itertools.pairwise(parts):
        if start < end:
            yield f"LOAD segment {index}: it overlaps segment {before} in the file"
    for table in (segment for segment in layout.segments if segment.type == PT_PHDR):
        if layout.find_offset(table.vaddr) != layout.segment_table.offset:
            yield "PHDR segment: no loaded segment maps the program headers at its address"
