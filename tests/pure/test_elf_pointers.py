"""What of a library points into its GPU code: every kind of relocation, symbols, the header."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.binary.elf import pointers
from axletree.binary.elf.layout import read_image
from axletree.binary.elf.pointers import (
    Pointer,
    dynamic_symbols,
    entries_within,
    pointers_into,
    relocated_within,
    static_symbols,
    word_at,
)
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from support.device import bundle
from support.hip_elf import ABSOLUTE, DATA_SHIFT, FATBIN_ADDR, FORMS, PAGE, WRAPPER, make_hip_elf

if TYPE_CHECKING:
    from axletree.binary.elf.layout import Image
    from support.hip_elf import Form, HipElf

COUNT = 3
BUNDLES = [bundle({"hipv4-amdgcn-amd-amdhsa--gfx90a": bytes([number]) * 5000}) for number in range(COUNT)]
STEP = 3 * PAGE
LOW, HIGH = FATBIN_ADDR, FATBIN_ADDR + COUNT * STEP
NUMBER = 7
"""Of the section with GPU code."""


def image_of(elf: HipElf | bytes) -> Image:
    return read_image(BufferSource(elf if isinstance(elf, bytes) else elf.data))


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_relocation_says_what_it_points_to(form: Form) -> None:
    elf = make_hip_elf(BUNDLES, form=form)
    assert elf.parts[".hip_fatbin"].number == NUMBER
    places = [elf.parts[".hipFatBinSegment"].addr + WRAPPER * number + 8 for number in range(COUNT)]
    addends: list[int | None] = [None] * COUNT
    if form in {"rela", "filled"}:
        addends = [elf.parts[".rela.dyn"].offset + 24 * number + 16 for number in range(COUNT)]
    kind: Literal["symbol", "relative"] = "symbol" if form == "symbol" else "relative"
    assert pointers_into(image_of(elf), LOW, HIGH) == tuple(
        Pointer(place, LOW + STEP * number, kind, addend)
        for number, (place, addend) in enumerate(zip(places, addends, strict=True))
    )
    assert pointers_into(image_of(elf), LOW + STEP, LOW + STEP + 1) == pointers_into(image_of(elf), LOW, HIGH)[1:2]
    assert pointers_into(image_of(elf), HIGH, HIGH + PAGE) == ()


@pytest.mark.parametrize("form", ["rela", "rel"])
def test_relocations_that_are_more_than_an_address_are_of_another_kind(form: Form) -> None:
    """A symbol with an addend, a type that is no address, a symbol that there is none of or that is not here."""
    words = [0x40, LOW + 0x50, 0, LOW, 0]
    extra = [
        (0, 2 << 32 | ABSOLUTE, 0x40),
        (1, 10, LOW + 0x50),  # R_X86_64_32
        (2, 2 << 32 | ABSOLUTE, 0),
        (3, 99 << 32 | ABSOLUTE, LOW),
        (4, 1 << 32 | ABSOLUTE, 0),  # the symbol is in another section
    ]
    elf = make_hip_elf(BUNDLES, form=form, words=words, extra=extra, seen=[LOW + 0x10])
    data = elf.parts[".data"].addr
    found = {each.place: each for each in pointers_into(image_of(elf), LOW, HIGH) if each.place < data + 40}
    assert [(place - data, each.target, each.kind) for place, each in found.items()] == [
        (0, LOW + 0x50, "other"),
        (8, LOW + 0x50, "other"),
        (16, LOW + 0x10, "symbol"),
    ]


@settings(max_examples=50)
@given(
    words=st.lists(st.sampled_from([0, LOW - 1, LOW, LOW + 8, HIGH - 1, HIGH, 1 << 63]), min_size=1, max_size=300),
    data=st.data(),
)
def test_any_packed_relocations_are_those_that_a_linker_packed(words: list[int], data: st.DataObject) -> None:
    packed = data.draw(st.sets(st.integers(0, len(words) - 1)))
    elf = make_hip_elf(BUNDLES, form="relr", words=words, packed=packed)
    start = elf.parts[".data"].addr
    wanted = [(start + 8 * index, words[index]) for index in sorted(packed) if LOW <= words[index] < HIGH]
    found = [(each.place, each.target) for each in pointers_into(image_of(elf), LOW, HIGH)]
    assert found[:-COUNT] == wanted
    for index in (0, len(words) // 2, len(words) - 1):
        place = start + 8 * index
        assert relocated_within(image_of(elf), place, place + 8) == (index in packed)


def test_long_runs_of_packed_relocations() -> None:
    """Several maps behind one address."""
    elf = make_hip_elf(BUNDLES, form="relr", words=range(LOW, LOW + 300), packed=range(300))
    assert elf.parts[".relr.dyn"].size < 8 * 10
    found = pointers_into(image_of(elf), LOW, LOW + 300)
    assert [each.target for each in found if each.place < elf.parts[".hipFatBinSegment"].addr] == [
        *range(LOW, LOW + 300)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_where_the_loader_writes(form: Form) -> None:
    elf = make_hip_elf(BUNDLES, form=form)
    place = elf.parts[".hipFatBinSegment"].addr + 8
    assert relocated_within(image_of(elf), place, place + 1)
    assert not relocated_within(image_of(elf), place + 1, place + WRAPPER)
    assert not relocated_within(image_of(elf), LOW, HIGH)


def test_the_header_and_the_dynamic_section_may_point_too() -> None:
    elf = make_hip_elf(BUNDLES)
    assert entries_within(image_of(elf), LOW, HIGH) is None
    entered = elf.spoilt((24, struct.pack("<Q", LOW + 4)))
    assert entries_within(image_of(entered), LOW, HIGH) == "its entry point"
    strings = elf.parts[".dynstr"].addr
    assert entries_within(image_of(elf), strings, strings + 1) == "an entry of its dynamic section"
    size = elf.parts[".dynstr"].size  # DT_STRSZ is no address, whatever number it is
    assert entries_within(image_of(elf), size, size + 1) is None


@pytest.mark.parametrize("counted", ["section", "hash"])
def test_symbols_of_bundles_are_found_with_where_their_values_stand(counted: str) -> None:
    elf = make_hip_elf(BUNDLES, seen=[LOW, HIGH - 1], counted=counted)  # type: ignore[arg-type]
    table, static = elf.parts[".dynsym"].offset, elf.parts[".symtab"].offset
    assert dynamic_symbols(image_of(elf), NUMBER) == ((table + 2 * 24 + 8, LOW), (table + 3 * 24 + 8, HIGH - 1))
    assert static_symbols(image_of(elf), NUMBER) == tuple(  # the symbol of the section itself is left out
        (static + 24 * (2 + number) + 8, LOW + STEP * number) for number in range(COUNT)
    )
    section = table + 2 * 24 + 6  # a symbol that names another section, and lies in this one all the same
    assert dynamic_symbols(image_of(elf.spoilt((section, b"\x08\0"))), NUMBER)[0] == (section + 2, LOW)
    absolute = elf.spoilt((section, struct.pack("<H", 0xFFF1)))
    assert len(dynamic_symbols(image_of(absolute), NUMBER)) == 1
    thread_local = elf.spoilt((section - 2, b"\x16\0\x08\0"))
    assert len(dynamic_symbols(image_of(thread_local), NUMBER)) == 1


def test_words_are_read_by_address() -> None:
    elf = make_hip_elf(BUNDLES, form="filled", words=[7, 1 << 63])
    image = image_of(elf)
    assert word_at(image, elf.parts[".data"].addr + 8) == 1 << 63
    with pytest.raises(
        IntegrityError, match="a table refers to address 0x5000000, but no part of the file is loaded there"
    ):
        word_at(image, 0x500_0000)


def test_tables_that_claim_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    elf = make_hip_elf(BUNDLES)
    large = elf.spoilt((elf.dynamic(8), struct.pack("<Q", 1 << 40)))
    with pytest.raises(IntegrityError, match="one of its tables has an implausible size: 109951162776"):
        pointers_into(image_of(large), LOW, HIGH)
    beyond = elf.spoilt((elf.dynamic(8), struct.pack("<Q", 24 << 16)))
    with pytest.raises(IntegrityError, match="the table extends past the end of the file"):
        relocated_within(image_of(beyond), LOW, HIGH)
    elsewhere = elf.spoilt((elf.dynamic(7), struct.pack("<Q", 0x7000_0000)))
    with pytest.raises(IntegrityError, match="a table refers to address 0x70000000, but no part"):
        pointers_into(image_of(elsewhere), LOW, HIGH)
    packed = image_of(make_hip_elf(BUNDLES, form="relr", words=[0] * 40, packed=range(40)))
    monkeypatch.setattr(pointers, "_MAX_ENTRIES", 40)
    with pytest.raises(IntegrityError, match="it declares an implausible number of packed relocations"):
        pointers_into(packed, LOW, HIGH)


def test_a_packed_relocation_of_what_the_file_does_not_have_is_damage() -> None:
    elf = make_hip_elf(BUNDLES, form="relr")
    last = elf.parts[".dynamic"].addr + elf.parts[".dynamic"].size - 4
    half = elf.spoilt((elf.parts[".relr.dyn"].offset, struct.pack("<Q", last)))
    with pytest.raises(IntegrityError, match=f"no part of the file is loaded at address {last:#x}"):
        pointers_into(image_of(half), LOW, HIGH)
    nowhere = elf.spoilt((elf.parts[".relr.dyn"].offset, struct.pack("<Q", DATA_SHIFT - 8)))
    with pytest.raises(IntegrityError, match="no part of the file is loaded"):
        pointers_into(image_of(nowhere), LOW, HIGH)
