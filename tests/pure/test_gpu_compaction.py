"""Bundles moved together in a library: found, planned, applied and proved; each planted fault is refused."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.binary.edits import EditedSource
from axletree.binary.elf.layout import read_image
from axletree.binary.gpu.compact import Compaction, kept_entries, plan_compaction, with_following
from axletree.binary.gpu.registered import Registered, read_registered
from axletree.binary.gpu.scan import GpuSection, SectionCode, read_containers
from axletree.binary.gpu.verify import verify_compaction
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from support.device import bundle, fat_container, fat_entry, packed_bundle
from support.hip_elf import ABSOLUTE, FATBIN, FATBIN_ADDR, FORMS, PAGE, RELATIVE, WRAPPER, make_hip_elf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from support.hip_elf import Form, HipElf

PREFIX = "hipv4-amdgcn-amd-amdhsa--"
TARGETS = ("gfx803", "gfx90a:xnack+", "gfx1030")
COUNT = 3
STEP = 4 * PAGE
"""From one plain bundle to the next."""


def code_object(number: int, target: str, size: int = 3000) -> bytes:
    return (f"{number} {target} ".encode() * size)[:size]


PLAIN = [bundle({PREFIX + target: code_object(number, target) for target in TARGETS}) for number in range(COUNT)]


def registered(elf: HipElf | bytes) -> Registered | str:
    data = elf if isinstance(elf, bytes) else elf.data
    source = BufferSource(data)
    section = read_image(source).sections[7]
    return read_registered(source, [read_containers(source, GpuSection(".hip_fatbin", section.offset, section.size))])


def compacted(elf: HipElf, kept: Mapping[int, Collection[int]]) -> tuple[Registered, Compaction, bytes]:
    """What was read, the plan, and the proved result."""
    source, code = BufferSource(elf.data), registered(elf)
    assert isinstance(code, Registered), code
    compaction = plan_compaction(source, code, kept)
    assert isinstance(compaction, Compaction), compaction
    result = compaction.source(source)
    verify_compaction(source, result, code, kept, compaction)
    return code, compaction, result.read(0, result.size)


def wrapped(elf: HipElf, data: bytes) -> list[int]:
    """Where in the file the bundles lie that wrappers lead to, by what a loader would write into them."""
    code = registered(data)
    assert isinstance(code, Registered), code
    image = code.image
    starts = {code.address(container): container.offset for container in code.containers}
    segment = image.sections[elf.parts[".hipFatBinSegment"].number]
    places = [segment.addr + WRAPPER * number + 8 for number in range(len(code.pointers))]
    assert [pointer.place for pointer in code.pointers] == places
    return [starts[pointer.target] for pointer in code.pointers]


@pytest.mark.parametrize("spare", [False, True])
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_every_wrapper_finds_its_code(form: Form, behind: bool, spare: bool) -> None:  # noqa: FBT001
    elf = make_hip_elf(PLAIN, form=form, behind=behind, spare=spare)
    kept = {FATBIN + STEP * number: (2,) for number in range(COUNT)}
    code, compaction, data = compacted(elf, kept)
    assert compaction.saved == len(elf.data) - len(data)
    assert 2 * COUNT * PAGE - PAGE <= compaction.saved <= 2 * COUNT * PAGE
    assert compaction.section == GpuSection(".hip_fatbin", FATBIN, compaction.section.size)
    assert [end - start for start, end in zip(kept, [end for _, end in with_following(code)], strict=True)] == [
        STEP
    ] * 3
    found = [read_containers(BufferSource(data), compaction.section).containers[n] for n in range(COUNT)]
    assert wrapped(elf, data) == [container.offset for container in found]
    for number, container in enumerate(found):
        (entry,) = (entry for entry in container.entries if entry.arch != "host")
        assert entry.arch == TARGETS[1]
        assert data[entry.offset : entry.offset + entry.size] == code_object(number, TARGETS[1])
    where = read_image(BufferSource(data)).sections[elf.parts[".hipFatBinSegment"].number].offset
    held = struct.unpack_from("<Q", data, where + WRAPPER + 8)[0]
    assert held == (0 if form in {"rela", "symbol"} else FATBIN_ADDR + found[1].offset - FATBIN)


CODES = st.dictionaries(st.sampled_from(TARGETS), st.binary(min_size=1, max_size=2000), min_size=1)


@settings(max_examples=50)
@given(
    contents=st.lists(CODES, min_size=1, max_size=4),
    data=st.data(),
    align=st.sampled_from([16, 256, 4096]),
    form=st.sampled_from(FORMS),
)
def test_any_bundles_come_out_as_they_went_in(
    contents: list[dict[str, bytes]], data: st.DataObject, align: int, form: Form
) -> None:
    bodies: list[bytes] = []
    for codes in contents:
        body = bundle({PREFIX + target: code for target, code in codes.items()}, align=align)
        packing = data.draw(st.sampled_from(["no", "2", "3"]))
        bodies.append(
            body + bytes(PAGE) if packing == "no" else packed_bundle(body, version=int(packing)) + bytes(PAGE)
        )
    elf = make_hip_elf(bodies, form=form)
    source, code = BufferSource(elf.data), registered(elf)
    assert isinstance(code, Registered)
    kept = {
        container.offset: frozenset(data.draw(st.sets(st.integers(0, len(container.entries) - 1))))
        for container in code.containers
    }
    compaction = plan_compaction(source, code, kept)
    if isinstance(compaction, str):
        assert compaction == "it would save less than one page (4096 bytes)"
        return
    result = compaction.source(source)
    verify_compaction(source, result, code, kept, compaction)
    after = read_containers(result, compaction.section)
    for number, (before, container) in enumerate(zip(code.containers, after.containers, strict=True)):
        wanted = [entry.arch for entry in kept_entries(before, kept[before.offset])]
        assert [entry.arch for entry in container.entries] == wanted
        for entry in container.entries if container.packing == "none" else ():
            assert entry.arch == "host" or result.read(entry.offset, entry.size) == contents[number][entry.arch]
            assert entry.arch == "host" or (entry.offset - container.offset) % align == 0


def test_compacting_twice_is_compacting_once() -> None:
    elf = make_hip_elf(PLAIN)
    both, one = (1, 3), (3,)
    _, first, data = compacted(elf, {FATBIN + STEP * number: both for number in range(COUNT)})
    again = registered(data)
    assert isinstance(again, Registered)
    kept = {container.offset: (2,) for container in again.containers}  # gfx1030 is the second after the host's now
    second = plan_compaction(BufferSource(data), again, kept)
    assert isinstance(second, Compaction)
    _, direct, wanted = compacted(elf, {FATBIN + STEP * number: one for number in range(COUNT)})
    result = second.source(BufferSource(data))
    assert direct.saved - PAGE <= first.saved + second.saved <= direct.saved  # tables may move once more
    assert (
        result.read(0, result.size)[FATBIN : FATBIN + direct.section.size]
        == wanted[FATBIN : FATBIN + direct.section.size]
    )
    third = registered(result.read(0, result.size))
    assert isinstance(third, Registered)
    assert isinstance(plan_compaction(result, third, {}), str)  # there is nothing left to gain


def test_containers_that_are_not_named_stay_whole() -> None:
    content = [PLAIN[0], packed_bundle(PLAIN[1], version=1), packed_bundle(PLAIN[2], version=3)]
    elf = make_hip_elf([data + bytes(2 * PAGE) for data in content])
    code, compaction, data = compacted(elf, {FATBIN: (1,)})
    found = read_containers(BufferSource(data), compaction.section).containers
    assert [len(container.entries) for container in found] == [2, 4, 4]
    assert content[1] in data
    assert content[2] in data
    assert kept_entries(code.containers[0], None) == code.containers[0].entries


def test_bundles_that_can_not_be_packed_as_well_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = bytes((index * index * 2654435761 >> 11) & 255 for index in range(3 * PAGE))
    tight = packed_bundle(bundle({PREFIX + "gfx803": noise, PREFIX + "gfx1030": b"x" * 10}, align=16), version=3)
    elf = make_hip_elf([tight])
    code = registered(elf)
    assert isinstance(code, Registered)
    monkeypatch.setattr("axletree.binary.gpu.compact.repack_bundle", lambda *_: tight + bytes(PAGE))
    reason = plan_compaction(BufferSource(elf.data), code, {FATBIN: (1,)})
    assert reason == "its bundles would be larger after recompression"


def test_code_that_overlaps_or_does_not_unpack_stays_where_it_is() -> None:
    elf = make_hip_elf(PLAIN)
    row = elf.data.index((PREFIX + TARGETS[1]).encode()) - 24
    code = registered(elf.spoilt((row, struct.pack("<Q", PAGE + 100))))
    assert isinstance(code, Registered)
    assert plan_compaction(BufferSource(elf.data), code, {}) == f"code objects in the bundle at offset {FATBIN} overlap"
    packed = bytearray(packed_bundle(PLAIN[0], version=2))
    packed[12] ^= 1  # of the unpacked size
    damaged = make_hip_elf([bytes(packed)])
    code = registered(damaged)
    assert isinstance(code, Registered)
    reason = plan_compaction(BufferSource(damaged.data), code, {FATBIN: (1,)})
    assert isinstance(reason, str)
    assert reason.startswith(f"the compressed offload bundle at offset {FATBIN} decompresses to")


ELF = make_hip_elf(PLAIN, words=[FATBIN_ADDR, 0])
REFUSED = {
    "it is linked at a fixed address, so its pointers cannot be distinguished from other numbers": ELF.spoilt(
        (16, b"\2")
    ),
    "its entry point is in .hip_fatbin": ELF.spoilt((24, struct.pack("<Q", FATBIN_ADDR + 9))),
    "the loader writes to .hip_fatbin": ELF.spoilt((ELF.parts[".rela.dyn"].offset, struct.pack("<Q", FATBIN_ADDR))),
    "it has 2 sections at the location of .hip_fatbin": ELF.spoilt(
        (ELF.header(".rodata") + 24, struct.pack("<QQ", FATBIN, ELF.parts[".hip_fatbin"].size))
    ),
    "something other than a bundle's wrapper points into .hip_fatbin": make_hip_elf(
        PLAIN, words=[0, 0], extra=[(1, RELATIVE, FATBIN_ADDR)]
    ).data,
    "a wrapper points into .hip_fatbin, but not to the start of a bundle": ELF.spoilt(
        (ELF.parts[".rela.dyn"].offset + 16, struct.pack("<Q", FATBIN_ADDR + 8))
    ),
    "some bundles in .hip_fatbin have no relocation that points to them": ELF.spoilt(
        (ELF.parts[".rela.dyn"].offset + 16, struct.pack("<Q", FATBIN_ADDR + STEP))
    ),
    "a symbol points into the middle of a bundle in .hip_fatbin": make_hip_elf(PLAIN, seen=[FATBIN_ADDR + 1]).data,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_may_be_pointed_to_otherwise_is_said(reason: str) -> None:
    assert registered(REFUSED[reason]) == reason


def test_a_symbol_with_an_addend_is_no_wrappers_pointer() -> None:
    """The wrapper is right, and the relocation is one that can't be followed: a symbol and a number."""
    elf = make_hip_elf(PLAIN, form="symbol")
    table = elf.parts[".rela.dyn"].offset
    other = elf.spoilt((table + 8, struct.pack("<QQ", 3 << 32 | ABSOLUTE, (1 << 64) - STEP)))
    assert registered(other) == "something other than a bundle's wrapper points into .hip_fatbin"


def test_what_is_no_library_of_hip_is_said() -> None:
    source = BufferSource(ELF.data)
    place = GpuSection(".hip_fatbin", FATBIN, ELF.parts[".hip_fatbin"].size)
    code = read_containers(source, place)
    nowhere = "its GPU code is not all in one .hip_fatbin section"
    assert read_registered(source, []) == nowhere
    assert read_registered(source, [code, code]) == nowhere
    nvidia = read_containers(BufferSource(fat_container(fat_entry("sm_90"))), GpuSection(".nv_fatbin", 0, 200))
    assert read_registered(source, [nvidia]) == nowhere
    assert read_registered(source, [SectionCode(place, code.containers, "is truncated")]) == "is truncated"
    short = read_registered(BufferSource(ELF.data[:100]), [code])
    assert isinstance(short, str)
    assert short.startswith("damaged ELF file: ")
    wrong_order = bytearray(make_hip_elf(PLAIN).data)
    wrong_order[4] = 1
    assert isinstance(read_registered(BufferSource(bytes(wrong_order)), [code]), str)


KEPT = {FATBIN + STEP * number: (2,) for number in range(COUNT)}
MIXED = make_hip_elf(
    [PLAIN[0], packed_bundle(PLAIN[1], version=2) + bytes(PAGE), packed_bundle(PLAIN[2], version=3) + bytes(PAGE)]
)


class Result:
    """A compaction, ready to be spoilt."""

    def __init__(self, elf: HipElf, kept: Mapping[int, Collection[int]]) -> None:
        self.elf, self.kept = elf, kept
        self.code, self.compaction, self.data = compacted(elf, kept)
        self.image = read_image(BufferSource(self.data))

    def at(self, name: str) -> int:
        """Where a section begins now."""
        return self.image.sections[self.elf.parts[name].number].offset

    def header(self, name: str) -> int:
        return self.image.shoff + 64 * self.elf.parts[name].number

    def refused(self, *changes: tuple[int, bytes], size: int | None = None) -> str:
        """What is said of the result with bytes overwritten; it must be refused."""
        data = bytearray(self.data[:size])
        for offset, new in changes:
            assert data[offset : offset + len(new)] != new, "the fault changes nothing"
            data[offset : offset + len(new)] = new
        with pytest.raises(IntegrityError) as error:
            verify_compaction(
                BufferSource(self.elf.data), BufferSource(bytes(data)), self.code, self.kept, self.compaction
            )
        return str(error.value)


@pytest.fixture(scope="module")
def result() -> Result:
    return Result(make_hip_elf(PLAIN, words=[1, 2], extra=[(1, RELATIVE, 0x40)]), KEPT)


def word(value: int) -> bytes:
    return struct.pack("<Q", value)


SEGMENT = 64
FAULTS: dict[str, Callable[[Result], list[tuple[int, bytes]]]] = {
    "the segment at address 0x0 changed": lambda r: [(SEGMENT + 4, struct.pack("<I", 5))],
    "the size of the segment at address 0x0 changed": lambda r: [
        (SEGMENT + 32, word(r.image.programs[0].filesz + 8) * 2)
    ],
    "the part after the GPU code is mapped differently": lambda r: [(SEGMENT + 2 * 56 + 4, struct.pack("<I", 5))],
    "not all of the GPU code is loaded": lambda r: [(SEGMENT + 56 + 32, word(PAGE) * 2)],
    "the part after the GPU code is not fully loaded": lambda r: [(SEGMENT + 2 * 56 + 32, word(32) * 2)],
    "its segments changed": lambda r: [(SEGMENT + 6 * 56 + 4, struct.pack("<I", 7))],
    "offset and address are not congruent modulo the segment's alignment": lambda r: [
        (SEGMENT + 3 * 56 + 48, word(1 << 20))
    ],
    "its alignment 0x3000 is not a power of two": lambda r: [(SEGMENT + 56 + 48, word(0x3000))],
    "it has 14 sections instead of 15": lambda r: [(60, struct.pack("<H", 14))],
    ".hip_fatbin is a different section": lambda r: [(r.header(".hip_fatbin"), struct.pack("<I", 1))],
    "section 8 changed": lambda r: [(r.header(".rodata") + 32, word(63))],
    "section 8 is loaded differently": lambda r: [(r.header(".rodata") + 16, word(0x100))],
    "the content of section 8 changed": lambda r: [(r.at(".rodata") + 63, b"\xff")],
    "the content of section 9 changed": lambda r: [(r.at(".data"), b"\xff")],
    "the content of section 10 changed": lambda r: [(r.at(".hipFatBinSegment") + 16, b"\xff")],
    "the content of section 5 changed": lambda r: [(r.at(".rela.dyn") + 3 * 24 + 16, b"\x41")],
    "the content of section 1 changed": lambda r: [(r.at(".note.gnu.build-id") + 20, b"\xff")],
    "its dynamic section changed": lambda r: [(r.at(".dynamic") + 8, word(9))],
    "a wrapper points into .hip_fatbin, but not to the start of a bundle": lambda r: [
        (r.at(".rela.dyn") + 16, word(FATBIN_ADDR + 64))
    ],
    "the pointers to its bundles changed": lambda r: [
        (r.at(".rela.dyn") + 16, word(FATBIN_ADDR + 2 * PAGE)),
        (r.at(".rela.dyn") + 40, word(FATBIN_ADDR)),
    ],
    "the symbols of its bundles changed": lambda r: [(r.at(".symtab") + 56, word(FATBIN_ADDR + 2 * PAGE))],
    f"the bundle that was at offset {FATBIN} contains the wrong code": lambda r: [
        (r.data.index(b"gfx90a", FATBIN), b"gfx90b")
    ],
    f"code in the bundle that was at offset {FATBIN + STEP} changed": lambda r: [
        (r.code.containers[0].offset + 3 * PAGE + 2999, b"\xff")
    ],
}


@pytest.mark.parametrize("message", FAULTS)
def test_each_planted_fault_is_refused(result: Result, message: str) -> None:
    said = result.refused(*FAULTS[message](result))
    assert f"moving the GPU code would damage the file: {message}" in said or message in said
    assert all(
        line.startswith("ELF file: nothing was written, because moving the GPU code would damage the file: ")
        for line in said.splitlines()
        if line and not line.startswith("  hint: report this")
    )


def test_a_result_that_is_cut_off_is_refused(result: Result) -> None:
    assert "extends past the end of the file" in result.refused(size=-1)


def test_a_table_that_moved_must_be_where_its_segment_has_it(result: Result) -> None:
    said = result.refused((result.header(".note.gnu.build-id") + 16, word(0x300)))
    assert "section 1 is loaded differently" in said


def test_every_byte_of_the_host_part_counts(result: Result) -> None:
    """But for the zeros that nothing reads: what a loader or a linker takes from it."""
    for name in (".hash", ".dynsym", ".dynstr", ".rela.dyn", ".rodata", ".data", ".symtab", ".shstrtab"):
        for place in (0, result.elf.parts[name].size - 1):
            at = result.at(name) + place
            assert "moving the GPU code would damage the file" in result.refused(
                (at, bytes([result.data[at] ^ 0x41]))
            ), name


def test_a_bundle_more_or_less_is_refused(result: Result) -> None:
    last = read_containers(BufferSource(result.data), result.compaction.section).containers[-1]
    assert "moving the GPU code would damage the file" in result.refused((last.offset, b"XX"))
    fewer = result.code._replace(
        containers=result.code.containers[:2], pointers=result.code.pointers[:2], symbols=result.code.symbols[:2]
    )
    with pytest.raises(IntegrityError, match="it has 3 bundles instead of 2"):
        verify_compaction(
            BufferSource(result.elf.data), BufferSource(result.data), fewer, result.kept, result.compaction
        )


def test_code_of_packed_bundles_is_compared_once_unpacked() -> None:
    elf = MIXED
    code = registered(elf)
    assert isinstance(code, Registered)
    second, third = (container.offset for container in code.containers[1:])
    good = Result(elf, {FATBIN: (1,), second: (2,), third: (0, 1, 2, 3)})
    found = read_containers(BufferSource(good.data), good.compaction.section).containers
    other = packed_bundle(bundle({PREFIX + TARGETS[1]: code_object(7, TARGETS[1])}), version=2)
    size = found[2].offset - found[1].offset
    replaced = good.refused((found[1].offset, other + bytes(size - len(other))))
    assert f"code in the bundle that was at offset {second} changed" in replaced
    assert f"code in the bundle that was at offset {third} changed" in good.refused((found[2].offset + 24, b"\1\2"))
    plain = EditedSource(BufferSource(good.data), ())
    verify_compaction(BufferSource(elf.data), plain, good.code, good.kept, good.compaction, name="libdemo.so")
