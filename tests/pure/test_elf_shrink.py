"""A section with fewer bytes: the file gets shorter, all else keeps its address and its content."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.binary.edits import EditedSource
from axletree.binary.elf.layout import SHT_NOBITS, read_image
from axletree.binary.elf.segments import find_misalignments
from axletree.binary.elf.shrink import plan_shrink
from axletree.binary.elf.tables import Reader, read_head
from axletree.binary.elf.verify import layout_faults
from axletree.binary.source import BufferSource
from support.hip_elf import FATBIN, FATBIN_ADDR, PAGE, make_hip_elf

if TYPE_CHECKING:
    from axletree.binary.elf.layout import Image
    from axletree.binary.elf.shrink import Shrunk
    from support.hip_elf import HipElf

CONTENT = [bytes([1 + number]) * (5 * PAGE) for number in range(2)]
OLD = 10 * PAGE
NUMBER = 7
LAYOUTS = {
    "split": make_hip_elf(CONTENT),
    "unused entry": make_hip_elf(CONTENT, spare=True),
    "at the end": make_hip_elf(CONTENT, behind=False),
}


def image_of(data: HipElf | bytes) -> Image:
    return read_image(BufferSource(data if isinstance(data, bytes) else data.data))


def shrunk(data: bytes, size: int) -> tuple[Shrunk, bytes]:
    """The plan, and the file as it is then; the section keeps the first of its bytes."""
    plan = plan_shrink(image_of(data), NUMBER, size)
    assert not isinstance(plan, str), plan
    moved = EditedSource(BufferSource(data), plan.moves, size=plan.size)
    result = EditedSource(moved, plan.puts)
    assert result.size == plan.size
    return plan, result.read(0, plan.size)


@settings(max_examples=60)
@given(name=st.sampled_from(sorted(LAYOUTS)), size=st.integers(0, OLD - PAGE - 2048))
def test_any_smaller_size_leaves_all_else_as_it_was(name: str, size: int) -> None:
    data = LAYOUTS[name].data
    plan, result = shrunk(data, size)
    before, after = image_of(data), image_of(result)
    assert len(data) - len(result) == plan.shift
    assert plan.shift % PAGE == 0
    assert OLD - size - 2 * PAGE < plan.shift <= OLD - size
    assert not list(layout_faults(after))
    assert not find_misalignments(read_head(Reader(BufferSource(result), "x")), len(result))
    assert len(after.programs) == len(before.programs) + (name == "split")
    for number, (old, new) in enumerate(zip(before.sections, after.sections, strict=True)):
        if number == NUMBER:
            assert new == old._replace(size=size)
            assert result[new.offset : new.offset + size] == data[old.offset : old.offset + size]
            continue
        assert new._replace(offset=old.offset, addr=old.addr) == old
        assert new.type in {0, SHT_NOBITS, 6} or result[new.offset : new.file_end] == data[old.offset : old.file_end]
        assert new.offset == (plan.follow(old.offset) if old.size else plan.place(old.offset))
        assert not new.addr or not new.size or after.offset_of(new.addr) == new.offset
        moved = any(start <= old.offset < end for start, end, _ in plan.tables)
        assert moved or new.addr == old.addr
    tables = {old.addr: new.addr for old, new in zip(before.sections, after.sections, strict=True) if old.addr}
    for (tag, old_value), (new_tag, value) in zip(before.dynamic, after.dynamic, strict=True):
        assert (new_tag, value) in {(tag, old_value), (tag, tables.get(old_value))}


def test_tables_make_room_for_a_program_header_only_where_it_is_needed() -> None:
    assert shrunk(LAYOUTS["unused entry"].data, PAGE)[0].tables == ()
    assert shrunk(LAYOUTS["at the end"].data, PAGE)[0].tables == ()
    elf = LAYOUTS["split"]
    plan, result = shrunk(elf.data, PAGE)
    note, hashes = elf.parts[".note.gnu.build-id"], elf.parts[".hash"]
    assert [(start, end) for start, end, _ in plan.tables] == [
        (part.offset, part.offset + part.size) for part in (note, hashes)
    ]
    place = plan.tables[0][2]
    assert place == FATBIN + PAGE + -(FATBIN_ADDR + PAGE - note.addr) % 64
    assert plan.follow(note.offset + 5) == place + 5
    assert result[place : place + note.size] == elf.data[note.offset : note.offset + note.size]
    assert plan.place(elf.parts[".rodata"].offset) == elf.parts[".rodata"].offset - plan.shift
    after = image_of(result)
    old, new = (next(each for each in image.programs if each.type == 4) for image in (image_of(elf), after))
    assert new == old._replace(offset=place, vaddr=after.sections[1].addr, paddr=after.sections[1].addr)
    assert read_head(Reader(BufferSource(result), "x")).find_offset(new.vaddr) == place


def test_the_table_of_segments_says_its_own_new_size() -> None:
    elf = LAYOUTS["split"]
    stack = 64 + 5 * 56  # the header of PT_GNU_STACK becomes one of PT_PHDR
    header = struct.pack("<IIQQQQQQ", 6, 4, 64, 64, 64, 6 * 56, 6 * 56, 8)
    _, result = shrunk(elf.spoilt((stack, header)), PAGE)
    table = next(each for each in image_of(result).programs if each.type == 6)
    assert (table.filesz, table.memsz) == (7 * 56, 7 * 56)


def word(value: int) -> bytes:
    return struct.pack("<Q", value)


LOAD = 64 + 56
"""The header of the segment with the section."""
SPLIT = LAYOUTS["split"]
SECTION = SPLIT.header(".hip_fatbin")
OBSTACLES = {
    "the section is not loaded": ((LOAD, struct.pack("<I", 0)),),
    "its segment is writable": ((LOAD + 4, struct.pack("<I", 6)),),
    "the section does not match its segment": ((SECTION + 16, word(FATBIN_ADDR + 16)),),
    "the section also contains other tables or sections": ((SPLIT.header(".rodata") + 24, word(FATBIN + 100)),),
    "it has no room for another program header": ((SPLIT.header(".note.gnu.build-id") + 4, b"\1"),),
}


@pytest.mark.parametrize("sentence", OBSTACLES)
def test_what_stands_against_it_is_said(sentence: str) -> None:
    assert plan_shrink(image_of(SPLIT.spoilt(*OBSTACLES[sentence])), NUMBER, PAGE) == sentence


def test_more_obstacles() -> None:
    longer = SPLIT.spoilt((LOAD + 40, word(OLD + PAGE)))
    assert plan_shrink(image_of(longer), NUMBER, PAGE) == "its segment is writable"
    far = SPLIT.spoilt((SECTION + 32, word(OLD + 2 * PAGE)))
    assert plan_shrink(image_of(far), NUMBER, PAGE) == "the section does not match its segment"
    assert plan_shrink(image_of(SPLIT), NUMBER, OLD - 100) == "it would save less than one page (4096 bytes)"
    order = image_of(SPLIT)._replace(wide=False)
    assert plan_shrink(order, NUMBER, PAGE) == "it is not a 64-bit little-endian file"
    unknown = make_hip_elf(CONTENT, filling=b"\7" * 8)
    assert plan_shrink(image_of(unknown), NUMBER, PAGE) == "it has no room for another program header"
    noted = SPLIT.spoilt((64 + 4 * 56 + 8, word(FATBIN + PAGE)))
    assert plan_shrink(image_of(noted), NUMBER, PAGE) == "the section also contains other tables or sections"


def test_larger_pages_save_whole_pages_only() -> None:
    aligned = [(64 + 56 * number + 48, word(PAGE * 4)) for number in range(3)]
    plan, _ = shrunk(LAYOUTS["at the end"].spoilt(*aligned), PAGE)
    assert plan.shift == 8 * PAGE
