"""A new loaded segment at the end of a file, for tables that outgrew their place.

The table of program headers stays where it is, behind the ELF header, where old kernels, ``strip`` and ``objcopy``
expect it. Room for its one new entry comes from an unused entry, or from moving the notes and tables behind it (all of
them position-independent, and found through headers) into the new segment too. Only where that can't be done, the
table itself moves there, to an address as far from its offset as the first segment's is: kernels before 5.18 compute
AT_PHDR from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.edits import Blank, Edit, Put
from axletree.binary.elf.layout import (
    DT_GNU_HASH,
    DT_HASH,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    EM_MIPS,
    PF_R,
    PF_W,
    PT_DYNAMIC,
    PT_GNU_PROPERTY,
    PT_GNU_STACK,
    PT_INTERP,
    PT_LOAD,
    PT_NOTE,
    PT_NULL,
    PT_PHDR,
    SHF_ALLOC,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_GNU_HASH,
    SHT_HASH,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_STRTAB,
    Image,
    Program,
    SectionHeader,
    interpreter_place,
    refused,
)
from axletree.binary.elf.strings import merged_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOVABLE_SECTIONS = {SHT_NOTE, SHT_HASH, SHT_GNU_HASH, SHT_DYNSYM}
_MOVABLE_PROGRAMS = {PT_NOTE, PT_GNU_PROPERTY, PT_INTERP}
_ADDRESSES = {DT_HASH, DT_GNU_HASH, DT_SYMTAB, DT_STRTAB}
_FIXED_ADDRESSES = {3, 7, 12, 13, 17, 23, 25, 26, 32, 34, 36, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE}
"""DT_PLTGOT, DT_RELA, DT_INIT, DT_FINI, DT_REL, DT_JMPREL, arrays of functions, DT_RELR, symbol versions."""
_SMALLEST_PAGE, _LARGEST_PAGE = 1 << 12, 1 << 24
GRAIN = 64
"""What a table keeps its alignment to when it moves."""
_MAX_SPANS = 64
_MAX_HOLE = 64 << 20
_FILLING = b"\0XZ"
"""What linkers leave between tables, and patchelf where tables were."""
_HEAD = -1
"""Instead of an address: the table of segments itself."""
SPARE_ENTRIES = 8
"""Unused entries behind a dynamic section that was moved."""


class AnnexBlock(NamedTuple):
    """A stretch of the file that goes into the new segment."""

    offset: int
    """Where it was."""
    size: int
    addr: int
    data: bytes
    """What it holds from now on."""

    @property
    def end(self) -> int:
        """The first byte after its old place."""
        return self.offset + self.size


class Moved(NamedTuple):
    """A block at its new place."""

    block: AnnexBlock
    offset: int
    addr: int


class Annex(NamedTuple):
    """A planned segment: what changes in the rest of the file because of it."""

    edits: tuple[Edit, ...]
    """Everything but the dynamic section's content."""
    dynamic_at: int
    """Where in the file the dynamic section starts now."""
    dynamic: tuple[tuple[int, int], ...]
    """Its entries, with the new addresses."""
    slots: int
    """Entries that it has room for."""
    strings: bool
    """Whether the string table moved."""


def plan_annex(
    image: Image,
    *,
    table: tuple[int, bytes, bytes],
    strings: bool,
    entries: Sequence[tuple[int, int]],
    clear: bool,
    interpreter: bytes = b"",
) -> Annex:
    """Plan a segment with a new string table, a longer dynamic section, a longer interpreter's name, or several.

    Args:
        image: the file.
        table: place in the file, old content and, if it moves, new content of the string table.
        strings: whether the string table has to move. It also does where it is in the way.
        entries: what the dynamic section is to hold; if it is too short for them and DT_NULL, it moves.
        clear: whether nothing else uses the old string table, so that it can be filled with zeros.
        interpreter: the name that PT_INTERP is to have, if it moves.

    Raises:
        IntegrityError: the file leaves no room for another segment.
    """
    place, old, new = table
    plan = AnnexPlan(image, place if strings else None, None)
    slots, blocks = image.dynamic_slots, list[AnnexBlock]()
    if interpreter:
        start, size = interpreter_place(image)
        blocks.append(AnnexBlock(start, size, _address(image, start, size), interpreter + b"\0"))
        plan = plan._replace(interpreter=start)
    if strings:
        blocks.append(AnnexBlock(place, len(old), _address(image, place, len(old)), new))
    if len(entries) >= slots:
        if image.machine == EM_MIPS:
            # DT_MIPS_RLD_MAP_REL counts from the place of its own entry.
            raise refused(
                image.name,
                "the dynamic section has no unused entry, and on MIPS it cannot be moved to make room for one",
            )
        size = slots * image.entry_size
        slots = len(entries) + SPARE_ENTRIES
        data = bytes(slots * image.entry_size)
        blocks.append(AnnexBlock(image.dynamic_at, size, _address(image, image.dynamic_at, size), data))
        plan = plan._replace(dynamic=image.dynamic_at)
    unused = any(program.type == PT_NULL for program in image.programs)
    head_end = image.phoff + (len(image.programs) + (not unused)) * image.program_size
    evicted = [] if unused else evict(image, head_end, blocks)
    if not strings and any(block.offset < place + len(old) and place < block.end for block in evicted or ()):
        return plan_annex(image, table=table, strings=True, entries=entries, clear=clear, interpreter=interpreter)
    if evicted is None:
        size = len(image.programs) * image.program_size
        blocks.append(AnnexBlock(image.phoff, size, _HEAD, bytes(size + image.program_size)))
    moved = _place(image, sorted([*blocks, *(evicted or [])]))
    edits = [*_content_edits(plan, moved, head_end, clear=clear), *_table_edits(plan, moved)]
    dynamic = tuple((tag, new_value(plan, moved, tag, value)) for tag, value in entries)
    dynamic_at = next((each.offset for each in moved if each.block.offset == plan.dynamic), image.dynamic_at)
    return Annex(tuple(edits), dynamic_at, dynamic, slots, strings)


def extend_last(image: Image, place: int, old: bytes, new: bytes) -> tuple[Edit, ...] | None:
    """Make the string table longer where it stands, at the end of the file and of the last segment; else ``None``."""
    top = max(load.vaddr + load.memsz for load in image.loads)
    size, end = image.reader.size, place + len(old)
    if not end <= size < end + GRAIN or any(image.reader.read(end, size - end)) or len(new) < size - place:
        return None
    for index, load in enumerate(image.programs):
        if load.type != PT_LOAD or load.vaddr + load.memsz != top or load.filesz != load.memsz:
            continue
        if place < load.offset or load.file_end != size:
            continue
        longer = load._replace(filesz=place + len(new) - load.offset, memsz=place + len(new) - load.offset)
        at = image.phoff + index * image.program_size
        edits: list[Edit] = [Put(place, new[: size - place]), Put(size, new[size - place :])]
        edits.append(Put(at, image.pack_program(longer)))
        for number, section in enumerate(image.sections):
            if section.type == SHT_STRTAB and section.addr == image.first(DT_STRTAB):
                at = image.shoff + number * image.section_size
                edits.append(Put(at, image.pack_section(section._replace(size=len(new)))))
        return tuple(edits)
    return None


class AnnexPlan(NamedTuple):
    """What moves besides notes and tables that must go out of the way."""

    image: Image
    strings: int | None
    """Where the string table was, if it moves."""
    dynamic: int | None
    """Where the dynamic section was, if it moves."""
    interpreter: int | None = None
    """Where the interpreter's name was, if it moves."""


def _address(image: Image, offset: int, size: int) -> int:
    for load in image.loads:
        if load.offset <= offset and offset + size <= load.file_end:
            return load.vaddr + offset - load.offset
    raise image.reader.error(f"the table at offset {offset} is not loaded")


def evict(image: Image, end: int, taken: Sequence[AnnexBlock]) -> list[AnnexBlock] | None:
    """The blocks that must go so that the segment table can reach to an offset; ``None``: it can't.

    Args:
        image: the file.
        end: that offset.
        taken: blocks that go in any case.
    """
    start = image.phoff + len(image.programs) * image.program_size
    head = next((load for load in image.loads if load.offset <= image.phoff and start <= load.file_end), None)
    if not image.sections or head is None or end > head.file_end or (start <= image.shoff < end):
        return None
    spans: list[tuple[int, int]] = []
    reach = [(start, end)]
    while reach:
        low, high = reach.pop()
        for first, last, movable in _parts(image):
            if first < high and last > low and (first, last) not in spans:
                if any(block.offset <= first and last <= block.end for block in taken):
                    continue
                if not movable or first < start or len(spans) > _MAX_SPANS:
                    return None
                spans.append((first, last))
                reach.append((first, last))
    blocks: list[AnnexBlock] = []
    for first, last in merged_spans(spans):
        data = image.reader.take(first, last - first, "tables")
        blocks.append(AnnexBlock(first, last - first, _address(image, first, last - first), data))
    fixed = {value for tag, value in image.dynamic if tag in _FIXED_ADDRESSES}
    gap = bytearray(image.reader.take(start, end - start, "segment table"))
    for block in (*blocks, *taken):
        if any(block.addr <= address < block.addr + block.size for address in fixed):
            return None
        low, high = max(block.offset, start) - start, min(block.end, end) - start
        gap[low:high] = bytes(max(0, high - low))
    return None if gap.strip(_FILLING) else blocks  # what is left belongs to something that no header tells of


def _parts(image: Image) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it may move) of all that headers know of in the file, but loaded segments."""
    interpreters = {program.offset for program in image.programs if program.type == PT_INTERP}
    for section in image.sections:
        if section.type not in {0, SHT_NOBITS} and section.size:
            movable = section.type in _MOVABLE_SECTIONS or section.offset in interpreters
            movable |= section.type == SHT_STRTAB and section.addr == image.first(DT_STRTAB)
            yield section.offset, section.file_end, movable and bool(section.flags & SHF_ALLOC)
    for program in image.programs:
        if program.type not in {PT_LOAD, PT_NULL, PT_PHDR, PT_GNU_STACK} and program.filesz:
            yield program.offset, program.file_end, program.type in _MOVABLE_PROGRAMS


def _place(image: Image, blocks: Sequence[AnnexBlock]) -> list[Moved]:
    """Give each block a place behind the end of the file, and an address above all others."""
    page = page_of(image)
    top = -(-max(load.vaddr + load.memsz for load in image.loads) // page) * page
    start = image.reader.size + -image.reader.size % GRAIN
    shift = top + start % page - start
    started = any(program.type in {PT_PHDR, PT_INTERP} for program in image.programs)
    if started and any(block.addr == _HEAD for block in blocks):
        shift = image.loads[0].vaddr - image.loads[0].offset
        hole = max(0, top - shift - start)
        if hole > _MAX_HOLE or shift % page:
            raise refused(image.name, "the file has no room for another segment")
        start += hole
    moved: list[Moved] = []
    offset = start
    for block in blocks:
        offset += (max(block.addr, 0) - offset - shift) % GRAIN
        moved.append(Moved(block, offset, offset + shift))
        offset += len(block.data)
    if offset + shift >= 1 << (47 if image.wide else 31):
        raise refused(image.name, "the file has no free addresses for another segment")
    return moved


def page_of(image: Image) -> int:
    """What loaded segments are aligned to.

    Raises:
        IntegrityError: it is no power of two, or larger than any page.
    """
    page = max([_SMALLEST_PAGE, *(load.align for load in image.loads)])
    if page & (page - 1) or page > _LARGEST_PAGE:
        raise image.reader.error(f"the segment alignment of {page} bytes is not supported")
    return page


def _content_edits(plan: AnnexPlan, moved: Sequence[Moved], head_end: int, *, clear: bool) -> Iterator[Edit]:
    """The blocks at their new places, and zeros where they were (which compress well)."""
    for block, offset, _ in moved:
        if block.addr == _HEAD or block.offset == plan.dynamic:
            continue  # their content is rendered last; what reads _DYNAMIC by its symbol still finds the old one
        yield Put(offset, block.data)
        if clear or block.offset != plan.strings:
            start = max(block.offset, head_end) if block.offset >= plan.image.phoff else block.offset
            yield Blank(start, max(0, block.end - start))


def _table_edits(plan: AnnexPlan, moved: Sequence[Moved]) -> Iterator[Edit]:
    """The ELF header and the tables of segments and sections."""
    image = plan.image
    head = next((each for each in moved if each.block.addr == _HEAD), None)
    head_at = image.phoff if head is None else head.offset
    start, last = moved[0], moved[-1]
    size = last.offset + len(last.block.data) - start.offset
    flags = PF_R if plan.dynamic is None else PF_R | PF_W
    annex = Program(PT_LOAD, flags, start.offset, start.addr, start.addr, size, size, page_of(image))
    programs = [moved_program(plan, moved, program) for program in image.programs]
    unused = next((index for index, program in enumerate(programs) if program.type == PT_NULL), None)
    if unused is not None:
        del programs[unused]
    place = 1 + max(index for index, program in enumerate(programs) if program.type == PT_LOAD)
    programs.insert(place, annex)
    size = len(programs) * image.program_size
    for index, program in enumerate(programs):
        if program.type == PT_PHDR:
            programs[index] = program._replace(filesz=size, memsz=size)
            if head is not None:
                programs[index] = programs[index]._replace(offset=head.offset, vaddr=head.addr, paddr=head.addr)
    yield Put(head_at, b"".join(image.pack_program(program) for program in programs))
    yield Put(32 if image.wide else 28, image.reader.structure("Q" if image.wide else "I").pack(head_at))
    yield Put(56 if image.wide else 44, image.reader.structure("H").pack(len(programs)))
    for index, section in enumerate(image.sections):
        new = moved_section(plan, moved, section)
        if new != section:
            yield Put(image.shoff + index * image.section_size, image.pack_section(new))


def moved_program(plan: AnnexPlan, moved: Sequence[Moved], program: Program) -> Program:
    """The header of a segment that lies in a moved block; of others as it was."""
    if program.type not in {*_MOVABLE_PROGRAMS, PT_DYNAMIC} or not program.filesz:
        return program
    for block, offset, addr in moved:
        if block.addr != _HEAD and block.offset <= program.offset and program.file_end <= block.end:
            into = program.offset - block.offset
            program = program._replace(offset=offset + into, vaddr=addr + into, paddr=addr + into)
            if block.offset in {plan.dynamic, plan.interpreter}:
                return program._replace(filesz=len(block.data), memsz=len(block.data))
            return program
    return program


def moved_section(plan: AnnexPlan, moved: Sequence[Moved], section: SectionHeader) -> SectionHeader:
    """The header of a section that lies in a moved block; of others as it was."""
    if not section.flags & SHF_ALLOC or section.type == SHT_NOBITS or not section.size:
        return section
    for block, offset, addr in moved:
        if block.addr == _HEAD or not block.offset <= section.offset < block.end:
            continue
        if block.offset in {plan.strings, plan.dynamic}:
            if section.offset != block.offset or section.type not in {SHT_STRTAB, SHT_DYNAMIC}:
                continue
            return section._replace(offset=offset, addr=addr, size=len(block.data))
        if block.offset == plan.interpreter:
            return section._replace(offset=offset, addr=addr, size=len(block.data))
        into = section.offset - block.offset
        return section._replace(offset=offset + into, addr=addr + into)
    return section


def new_value(plan: AnnexPlan, moved: Sequence[Moved], tag: int, value: int) -> int:
    """The value of a dynamic entry once blocks have moved."""
    for block, _, addr in moved:
        if tag == DT_STRSZ and block.offset == plan.strings:
            return len(block.data)
        if tag in _ADDRESSES and block.addr <= value < block.addr + block.size and block.addr != _HEAD:
            return addr + value - block.addr
    return value
