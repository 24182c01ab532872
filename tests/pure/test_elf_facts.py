"""What the ELF reader says beyond the dynamic section: ties to torch, strings, build-id, segments, sections."""

from __future__ import annotations

import re
import struct

import pytest

from axletree.binary.elf.facts import AbiUse, SectionSize, read_elf
from axletree.binary.elf.segments import read_only_ranges
from axletree.binary.elf.tables import PT_LOAD, ElfLayout, Segment, TableAt
from support.wheels import make_elf

TORCH_CXX = (
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",  # also new strings
    "_ZNK2at10TensorBase4sizeEv",
    "_ZTVN5torch3jit6ModuleE",
    "_ZTIN3c105ErrorE",
    "_ZN6caffe28TypeMeta13typeMetaDatasEv",
    "_ZGVZN2at5NameEvE1x",
    "_ZThn16_N5torch8autograd4NodeD0Ev",
)
NO_TORCH = (
    "_Z3addRKN2at6TensorES2_",  # a function of one's own that takes a tensor
    "_ZN5outer3c103addEv",
    "_ZN4torc3addEv",
    "torchvision_ops",
    "c10_add",
)


@pytest.mark.parametrize("count_by", ["sections", "hash", "gnu_hash"])
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("bits", [32, 64])
def test_ties_to_torch_are_counted(bits: int, order: str, count_by: str) -> None:
    data = make_elf(
        bits=bits,
        order=order,
        count_by=count_by,
        undefined=(*TORCH_CXX, *NO_TORCH, "aoti_torch_empty", "torch_call_dispatcher"),
        weak=("_ZN3c104weakEv", "torch_weak"),
        exported=("_ZN2at3ownEv", "torch_own", "_Z3getB5cxx11v"),
    )
    assert read_elf(data).abi == AbiUse(torch_cxx=len(TORCH_CXX), torch_shims=2, cxx11=2)


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("_ZN3c105ErrorC1ENS_14SourceLocationESs", 1),
        ("_ZNKSs4sizeEv", 1),
        ("_Z1fRKSsi", 1),
        ("_Z1fILi12EEvSs", 1),
        ("_ZNSs4_Rep20_S_empty_rep_storageE", 0),  # linked into everything by the compilers of old systems
        ("_ZN8ClassSsX3getEv", 0),
        ("_ZN6IsSsId3SsxES0_", 0),
        ("plain_Ss_name", 0),
        ("_Z2SsSt6vectorIiE", 0),
    ],
)
def test_old_strings_are_told_from_letters_in_names(name: str, old: int) -> None:
    assert read_elf(make_elf(undefined=(name,))).abi.old_strings == old
    assert read_elf(make_elf(exported=(name, "other"))).abi.old_strings == old
    assert read_elf(make_elf(weak=(name,))).abi == AbiUse()


def with_segment(data: bytes, index: int, **changes: int) -> bytes:
    """A little-endian 64-bit file with fields of one program header changed."""
    places = {"type": 0, "flags": 4, "offset": 8, "vaddr": 16, "filesz": 32, "memsz": 40, "align": 48}
    result = bytearray(data)
    for name, value in changes.items():
        form = "<I" if name in {"type", "flags"} else "<Q"
        struct.pack_into(form, result, 64 + 56 * index + places[name], value)
    return bytes(result)


def note(owner: bytes, kind: int, content: bytes) -> bytes:
    parts = struct.pack("<III", len(owner), len(content), kind) + owner + bytes(-len(owner) % 4)
    return parts + content + bytes(-len(content) % 4)


def test_the_build_id_comes_from_the_right_note() -> None:
    notes = note(b"GNU\0", 1, bytes(16)) + note(b"Go\0\0", 3, b"x") + note(b"GNU\0", 3, bytes.fromhex("c0ffee01"))
    data = make_elf(count_by="gnu_hash")
    place = len(data)
    data = with_segment(data + notes, 2, type=4, offset=place, vaddr=0, filesz=len(notes), memsz=len(notes), align=4)
    assert read_elf(data).build_id == "c0ffee01"
    assert read_elf(data[:-2]).build_id is None  # the last note is cut off
    assert read_elf(make_elf()).build_id is None


def test_a_writable_first_segment() -> None:
    assert not read_elf(make_elf()).first_load_writable
    assert read_elf(with_segment(make_elf(), 0, flags=6)).first_load_writable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"align": 0x1800}, r"LOAD segment 0: its alignment 0x1800 is not a power of two"),
        (
            {"vaddr": 0x1010},
            r"LOAD segment 0: offset 0x0 and address 0x1010 are not congruent modulo the segment's alignment 0x1000",
        ),
        ({"align": 8}, r"LOAD segment 0: its alignment 0x8 is smaller than a page"),
        ({"memsz": 1}, r"LOAD segment 0: it is larger in the file"),
        ({"filesz": 1 << 20, "memsz": 1 << 20}, r"LOAD segment 0: it ends at 0x100000, past the end of the file"),
    ],
)
def test_a_segment_that_loaders_refuse(changes: dict[str, int], message: str) -> None:
    data = make_elf(count_by="gnu_hash")
    assert read_elf(data).misaligned == ()
    bare = with_segment(data, 1, type=0)  # no dynamic section: its addresses would be wrong as well
    assert re.match(message, read_elf(with_segment(bare, 0, **changes)).misaligned[0])


def test_two_segments_that_overlap() -> None:
    data = with_segment(make_elf(count_by="gnu_hash"), 1, type=0)
    second = with_segment(data, 2, type=1, flags=6, offset=0, vaddr=0x10000, filesz=16, memsz=16, align=0x1000)
    assert read_elf(second).misaligned == ("LOAD segment 0: it overlaps segment 2 in the file",)
    same = with_segment(second, 2, vaddr=0, filesz=0)
    assert read_elf(same).misaligned == ("LOAD segment 2: it overlaps segment 0 in memory",)
    before = with_segment(with_segment(second, 2, vaddr=0, filesz=0), 0, vaddr=0x10000)
    assert "its address 0x0 is lower than that of segment 0" in read_elf(before).misaligned[0]


def test_program_headers_must_be_mapped_where_they_say() -> None:
    data = with_segment(make_elf(count_by="gnu_hash"), 2, type=6, offset=64, vaddr=64, filesz=168, memsz=168)
    assert read_elf(data).misaligned == ()
    assert "PHDR segment" in read_elf(with_segment(data, 2, vaddr=128)).misaligned[0]


def test_sections_with_their_sizes() -> None:
    found = {section.name: section for section in read_elf(make_elf(symtab=48)).sections}
    assert found[".symtab"] == SectionSize(name=".symtab", size=48, loaded=True)
    assert found[".debug_info"].size == 8
    assert "" not in found


def test_a_section_never_has_more_bytes_than_the_file() -> None:
    data = make_elf(symtab=48)
    sizes = struct.pack("<Q", 48)
    place = data.rindex(sizes, 0, len(data))
    grown = data[:place] + struct.pack("<Q", 1 << 60) + data[place + 8 :]
    assert all(section.size <= len(grown) for section in read_elf(grown).sections)


def layout(*segments: tuple[int, int, int]) -> ElfLayout:
    parts = tuple(
        Segment(PT_LOAD, flags, start, start, end - start, end - start, 4096) for flags, start, end in segments
    )
    return ElfLayout(64, "little", 3, 62, parts, (), TableAt(64, 56, len(parts)), TableAt(0, 0, 0))


@pytest.mark.parametrize(
    ("segments", "ranges"),
    [
        (((4, 0, 10), (5, 10, 20), (4, 20, 30), (6, 30, 40)), ((20, 30),)),  # GNU ld today
        (((4, 0, 10), (5, 10, 20), (6, 20, 30)), ((0, 10),)),  # LLD
        (((5, 0, 20), (6, 30, 40)), ((0, 20),)),  # GNU ld of old, gold
        (((5, 0, 20), (6, 20, 30), (4, 30, 40)), ((0, 20), (30, 40))),  # with large constants apart
        (((7, 0, 20),), ((0, 20),)),
        ((), ()),
    ],
)
def test_where_constants_can_lie(
    segments: tuple[tuple[int, int, int], ...], ranges: tuple[tuple[int, int], ...]
) -> None:
    assert read_only_ranges(layout(*segments)) == ranges
