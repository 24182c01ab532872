"""Fewer bytes for one section of a loaded segment: the file gets shorter, and no address changes.

The section keeps its start. What its segment holds behind it becomes a segment of its own, at the same address and
nearer in the file, where offset and address agree modulo the page; the addresses between the two are mapped by nothing.
Room for that one more program header comes from an unused entry, or from moving the notes and tables that stand behind
the headers (see :mod:`axletree.binary.elf.annex`) to the end of the shortened section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.edits import Blank, Edit, Move, Put
from axletree.binary.elf.annex import GRAIN, AnnexPlan, Moved, evict, moved_program, moved_section, new_value, page_of
from axletree.binary.elf.layout import (
    PF_W,
    PT_LOAD,
    PT_NULL,
    PT_PHDR,
    SHF_ALLOC,
    SHT_NOBITS,
    Image,
    Program,
    SectionHeader,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.elf.annex import AnnexBlock

_PHOFF, _SHOFF, _PHNUM = 32, 40, 56
"""Where ELF64's header says where its tables lie and how many segments there are."""


class Shrunk(NamedTuple):
    """How a file looks once a section is shorter."""

    size: int
    """Bytes of the file."""
    end: int
    """Where the section ended; what began there or later moved."""
    shift: int
    """By how many bytes."""
    moves: tuple[Edit, ...]
    """What goes where from the new end of the section on; the section's own content is up to the caller."""
    puts: tuple[Edit, ...]
    """Headers and moved tables, to be written over the result of ``moves``."""
    tables: tuple[tuple[int, int, int], ...]
    """(offset, end, new offset) of tables that made room for a program header."""

    def place(self, offset: int) -> int:
        """Where a byte of the original lies now, if it is neither of the section nor of a table that moved."""
        return offset - self.shift if offset >= self.end else offset

    def follow(self, offset: int) -> int:
        """Where a byte of the original lies now, if it is not of the section."""
        for start, end, place in self.tables:
            if start <= offset < end:
                return place + offset - start
        return self.place(offset)


def plan_shrink(image: Image, index: int, size: int) -> Shrunk | str:
    """Plan to let a section have so many bytes; a sentence on the file where that can't be done, or saves nothing.

    Raises:
        IntegrityError: the tables of the file are damaged.
    """
    section = image.sections[index]
    load = next((load for load in image.loads if load.offset <= section.offset < load.file_end), None)
    if load is None:
        return "the section is not loaded"
    obstacle = next(_obstacles(image, index, load), None)
    if obstacle is not None:
        return obstacle
    split = load.file_end > section.file_end
    begin = min(_begins(image, section.file_end, load.file_end), default=section.file_end)
    unused = any(program.type == PT_NULL for program in image.programs)
    head_end = image.phoff + (len(image.programs) + (split and not unused)) * image.program_size
    blocks = evict(image, head_end, ()) if split and not unused else []
    if blocks is None:
        return "it has no room for another program header"
    moved = _place(blocks, section.offset + size, load.vaddr - load.offset)
    last = moved[-1].offset + len(moved[-1].block.data) if moved else section.offset + size
    page = page_of(image)
    shift = (begin - last) // page * page
    if shift <= 0:
        return f"it would save less than one page ({page} bytes)"
    tables = tuple((block.offset, block.end, offset) for block, offset, _ in moved)
    new = Shrunk(image.reader.size - shift, section.file_end, shift, (), (), tables)
    first = load._replace(filesz=last - load.offset, memsz=last - load.offset)
    rest = load.file_end - begin
    away = begin - load.offset
    parts = [first, load._replace(offset=begin - shift, vaddr=load.vaddr + away, paddr=load.paddr + away)]
    parts[1] = parts[1]._replace(filesz=rest, memsz=rest)
    puts = [
        *_block_edits(image, new, moved, head_end),
        *_header_edits(image, new, moved, (load, parts if split else parts[:1])),
        *_section_edits(image, new, moved, (index, size)),
    ]
    start = section.offset + size
    moves = Blank(start, begin - shift - start), Move(begin - shift, image.reader.size - begin, begin)
    return new._replace(moves=moves, puts=tuple(puts))


def _obstacles(image: Image, index: int, load: Program) -> Iterator[str]:
    section = image.sections[index]
    if not image.wide or image.reader.order != "<":
        yield "it is not a 64-bit little-endian file"
    if load.flags & PF_W or load.filesz != load.memsz:
        yield "its segment is writable"
    if section.file_end > load.file_end or section.addr - load.vaddr != section.offset - load.offset:
        yield "the section does not match its segment"
    tables = [(image.phoff, len(image.programs) * image.program_size)]
    tables += [(image.shoff, len(image.sections) * image.section_size), (0, 64)]
    tables += [
        (other.offset, other.size)
        for number, other in enumerate(image.sections)
        if number != index and other.type not in {0, SHT_NOBITS}
    ]
    tables += [(program.offset, program.filesz) for program in image.programs if program != load]
    if any(size and start < section.file_end and section.offset < start + size for start, size in tables):
        yield "the section also contains other tables or sections"


def _begins(image: Image, low: int, high: int) -> Iterator[int]:
    """Offsets in a range where something begins that headers know of."""
    for section in image.sections:
        if section.flags & SHF_ALLOC and section.type != SHT_NOBITS and section.size and low <= section.offset < high:
            yield section.offset
    for program in image.programs:
        if program.type != PT_LOAD and program.filesz and low <= program.offset < high:
            yield program.offset


def _place(blocks: list[AnnexBlock], offset: int, shift: int) -> list[Moved]:
    moved: list[Moved] = []
    for block in blocks:
        offset += (block.addr - offset - shift) % GRAIN
        moved.append(Moved(block, offset, offset + shift))
        offset += len(block.data)
    return moved


def _block_edits(image: Image, new: Shrunk, moved: list[Moved], head_end: int) -> Iterator[Edit]:
    """Tables at their new places, zeros where they were, and the dynamic section that says where they are."""
    for block, offset, _ in moved:
        yield Put(offset, block.data)
        start = max(block.offset, head_end) if block.offset >= image.phoff else block.offset
        yield Blank(new.place(start), max(0, block.end - start))
    if moved:
        plan = AnnexPlan(image, None, None)
        entries = [(tag, new_value(plan, moved, tag, value)) for tag, value in image.dynamic]
        yield Put(new.place(image.dynamic_at), image.pack_dynamic(entries, image.dynamic_slots))


def _header_edits(
    image: Image, new: Shrunk, moved: list[Moved], split: tuple[Program, list[Program]]
) -> Iterator[Edit]:
    """The ELF header and the table of segments."""
    plan, (load, parts) = AnnexPlan(image, None, None), split
    programs: list[Program] = []
    for program in image.programs:
        if program == load:
            programs += parts
            continue
        changed = moved_program(plan, moved, program)
        programs.append(program._replace(offset=new.place(program.offset)) if changed == program else changed)
    unused = next((number for number, program in enumerate(programs) if program.type == PT_NULL), None)
    if len(parts) > 1 and unused is not None:
        del programs[unused]
    size = len(programs) * image.program_size
    programs = [
        program._replace(filesz=size, memsz=size) if program.type == PT_PHDR else program for program in programs
    ]
    word, half = image.reader.structure("Q"), image.reader.structure("H")
    yield Put(_PHOFF, word.pack(new.place(image.phoff)))
    yield Put(_SHOFF, word.pack(new.place(image.shoff)))
    yield Put(_PHNUM, half.pack(len(programs)))
    yield Put(new.place(image.phoff), b"".join(map(image.pack_program, programs)))


def _section_edits(image: Image, new: Shrunk, moved: list[Moved], shorter: tuple[int, int]) -> Iterator[Edit]:
    plan, (index, size) = AnnexPlan(image, None, None), shorter
    for number, section in enumerate(image.sections):
        changed: SectionHeader = moved_section(plan, moved, section)
        if number == index:
            changed = section._replace(size=size)
        elif changed == section:
            changed = section._replace(offset=new.place(section.offset))
        if changed != section:
            yield Put(new.place(image.shoff + number * image.section_size), image.pack_section(changed))
