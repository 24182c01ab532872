"""Changing names in ELF files of every class and byte order; files that lie; the proof that follows an edit."""

from __future__ import annotations

import contextlib
import io
import struct
from typing import Any

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.edits import EditedSource, Put
from axletree.binary.elf.edit import ElfChange, edited, plan_edit
from axletree.binary.elf.facts import read_elf
from axletree.binary.elf.layout import PT_INTERP, read_image, read_links
from axletree.binary.elf.verify import verify_edit
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from support.wheels import make_elf

NEEDS = {"libc.so.6": ("GLIBC_2.17", "GLIBC_2.2.5"), "libcudart.so.13": ("libcudart.so.13",)}
LONG = ("$ORIGIN/../../nvidia/cu13/lib", "$ORIGIN/../../nvidia/cudnn/lib", "$ORIGIN")
KINDS = [(bits, order, count) for bits in (32, 64) for order in ("little", "big") for count in ("sections", "gnu_hash")]


def library(bits: int = 64, order: str = "little", count_by: str = "sections", **more: object) -> bytes:
    parts: dict[str, object] = {
        "soname": "libdemo.so.1",
        "needed": ("libc.so.6", "libcudart.so.13"),
        "runpath": "$ORIGIN/lib:/opt/lib",
        "needs": NEEDS,
        "defines": ("libdemo.so.1", "DEMO_2"),
        "undefined": ("PyLong_FromLong", "malloc"),
        "exported": ("demo",),
        **more,
    }
    return make_elf(bits=bits, order=order, count_by=count_by, **parts)  # type: ignore[arg-type]


def change_bytes(data: bytes, change: ElfChange) -> bytes:
    """The file once changed, proved to be so."""
    source = BufferSource(data)
    new = edited(source, change, name="lib.so")
    verify_edit(source, new, change, name="lib.so")
    return new.read(0, new.size)


def symbols_by_peer(data: bytes) -> list[str]:
    """Names of the dynamic symbols as pyelftools reads them."""
    section: Any = ELFFile(io.BytesIO(data)).get_section_by_name(".dynsym")
    return [symbol.name for symbol in section.iter_symbols()]


@pytest.mark.parametrize(("bits", "order", "count_by"), KINDS)
def test_every_class_and_order(bits: int, order: str, count_by: str) -> None:
    change = ElfChange(
        rpath=LONG,
        soname="libdemo-0123abcd.so.1",
        replace_needed={"libcudart.so.13": "libcudart-89abcdef.so.13.0.96"},
        add_needed=("libone.so", "libtwo.so"),
    )
    before = library(bits, order, count_by)
    after = change_bytes(before, change)
    old, new = read_elf(before), read_elf(after)
    assert new.needed == ("libc.so.6", "libcudart-89abcdef.so.13.0.96", "libone.so", "libtwo.so")
    assert (new.rpath, new.runpath, new.soname) == (LONG, (), "libdemo-0123abcd.so.1")
    assert [need.file for need in new.versions_needed] == ["libc.so.6", "libcudart-89abcdef.so.13.0.96"]
    assert [need.versions for need in new.versions_needed] == [need.versions for need in old.versions_needed]
    assert new.versions_defined == old.versions_defined
    assert new.python_symbols == old.python_symbols == ("PyLong_FromLong",)
    # A later edit fits into the room that this one left.
    again = change_bytes(after, ElfChange(rpath=(*LONG, "$ORIGIN/more"), soname="libx.so"))
    assert len(again) == len(after)


@pytest.mark.parametrize(("bits", "order"), [(32, "little"), (32, "big"), (64, "little"), (64, "big")])
def test_pyelftools_reads_the_same(bits: int, order: str) -> None:
    after = change_bytes(library(bits, order), ElfChange(rpath=LONG, add_needed=("libone.so",), kind="rpath"))
    elf = ELFFile(io.BytesIO(after))
    section = elf.get_section_by_name(".dynamic")
    assert isinstance(section, DynamicSection)
    tags: list[Any] = list(section.iter_tags())
    needed = [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
    assert needed == ["libc.so.6", "libcudart.so.13", "libone.so"]
    assert [tag.rpath for tag in tags if tag.entry.d_tag == "DT_RPATH"] == [":".join(LONG)]
    assert symbols_by_peer(after) == ["", "PyLong_FromLong", "malloc", "demo"]
    loads = [segment.header for segment in elf.iter_segments("PT_LOAD")]
    assert len(loads) == 2
    assert loads[1].p_vaddr > loads[0].p_vaddr + loads[0].p_memsz
    assert (loads[1].p_vaddr - loads[1].p_offset) % loads[1].p_align == 0
    assert loads[1].p_offset + loads[1].p_filesz == len(after)


@pytest.mark.parametrize(("bits", "order"), [(32, "little"), (32, "big"), (64, "little"), (64, "big")])
def test_the_loader_of_a_program(bits: int, order: str) -> None:
    before = library(bits, order, interpreter="/lib/ld-linux.so.2")
    for name in ("/lib/ld.so", "/opt/python/libc/ld-linux-x86-64.so.2"):
        after = change_bytes(before, ElfChange(interpreter=name, add_needed=("libone.so",)))
        program: Any = next(ELFFile(io.BytesIO(after)).iter_segments("PT_INTERP"))
        assert program.get_interp_name() == read_elf(after).interpreter == name
        assert read_elf(after).needed == ("libc.so.6", "libcudart.so.13", "libone.so")
        assert plan_edit(BufferSource(after), ElfChange(interpreter=name)) == ()


@pytest.mark.parametrize("fault", ["other", "unended", "unloaded"])
def test_a_wrong_loader_is_noticed(fault: str) -> None:
    before = library(interpreter="/lib/ld-linux.so.2")
    change = ElfChange(interpreter="/opt/python/libc/ld-linux-x86-64.so.2")
    data = bytearray(change_bytes(before, change))
    image = read_image(BufferSource(bytes(data)))
    index, program = next((i, each) for i, each in enumerate(image.programs) if each.type == PT_INTERP)
    at = image.phoff + index * image.program_size
    match fault:
        case "other":
            data[program.offset + 5] ^= 1
        case "unended":
            data[at : at + image.program_size] = image.pack_program(program._replace(filesz=program.filesz - 1))
        case _:
            data[at : at + image.program_size] = image.pack_program(program._replace(vaddr=program.vaddr + 1))
    with pytest.raises(IntegrityError, match=r"(its|the) interpreter"):
        verify_edit(BufferSource(before), BufferSource(bytes(data)), change)


def test_a_shorter_path_stays_in_place() -> None:
    before = library()
    edits = plan_edit(BufferSource(before), ElfChange(rpath=("$ORIGIN",), kind="runpath"))
    assert all(isinstance(edit, Put) and edit.end <= len(before) for edit in edits)
    assert sum(edit.end - edit.offset for edit in edits) < 400
    after = change_bytes(before, ElfChange(rpath=("$ORIGIN",), kind="runpath"))
    assert len(after) == len(before)
    assert b"/opt/lib" not in after  # the rest of the old path is gone
    back = change_bytes(after, ElfChange(rpath=("$ORIGIN/lib", "/opt/lib"), kind="runpath"))
    assert len(back) == len(before)


def test_nothing_to_do_is_no_edit() -> None:
    source = BufferSource(library())
    same = ElfChange(
        rpath=("$ORIGIN/lib", "/opt/lib"), kind="runpath", soname="libdemo.so.1", add_needed=("libc.so.6",)
    )
    assert plan_edit(source, ElfChange()) == ()
    assert plan_edit(source, same) == ()
    assert len(change_bytes(library(), ElfChange(rpath=("$ORIGIN/lib", "/opt/lib")))) == source.size  # only the tag


def test_the_other_tag_goes() -> None:
    both = library(rpath="/build/lib")
    assert read_links(BufferSource(both))[2:4] == (("/build/lib",), ("$ORIGIN/lib", "/opt/lib"))
    for kind in ("rpath", "runpath"):
        links = read_links(BufferSource(change_bytes(both, ElfChange(rpath=("$ORIGIN",), kind=kind))))
        assert (links.rpath, links.runpath) == ((("$ORIGIN",), ()) if kind == "rpath" else ((), ("$ORIGIN",)))
    links = read_links(BufferSource(change_bytes(both, ElfChange(rpath=()))))
    assert links.rpath == links.runpath == ()


def test_a_shared_tail_is_not_overwritten() -> None:
    """A symbol whose name is the end of the path: linkers store such a name only once."""
    before = library(runpath="/opt/demo_function")
    image = read_image(BufferSource(before))
    path = image.first(29)
    symbols = image.first(6)
    assert path is not None
    assert symbols is not None
    shared = bytearray(before)
    struct.pack_into("<I", shared, image.offset_of(symbols) + 3 * 24, path + len("/opt/"))
    change = ElfChange(rpath=("$ORIGIN",), kind="runpath")
    after = change_bytes(bytes(shared), change)
    assert symbols_by_peer(after)[3] == "demo_function"
    short = change_bytes(bytes(shared), ElfChange(rpath=("abc",), kind="runpath"))
    assert len(short) == len(before)  # "/opt" is free, the tail is not


def test_a_path_that_is_the_tail_of_a_name() -> None:
    before = library(runpath="function", exported=("demo_function",))
    image = read_image(BufferSource(before))
    at = before.index(struct.pack("<qQ", 29, image.first(29) or 0)) + 8
    place = before.index(b"demo_function\0") - image.offset_of(image.first(5) or 0) + len("demo_")
    merged = before[:at] + struct.pack("<Q", place) + before[at + 8 :]
    assert read_links(BufferSource(merged)).runpath == ("function",)
    after = change_bytes(merged, ElfChange(rpath=("x",), kind="runpath"))
    assert b"demo_function\0" in after
    assert read_links(BufferSource(after)).runpath == ("x",)


@pytest.mark.parametrize("bits", [32, 64])
def test_fifty_edits_keep_the_size(bits: int) -> None:
    data = change_bytes(library(bits), ElfChange(rpath=LONG))
    size = len(data)
    for number in range(50):
        paths = tuple("$ORIGIN/" + "x" * (number * 7 % 23) + str(each) for each in range(number % 5))
        soname = "lib" + "s" * (number % 11) + ".so"
        data = change_bytes(data, ElfChange(rpath=paths, soname=soname, kind="rpath" if number % 2 else "runpath"))
        assert len(data) == size


def test_a_dynamic_section_without_room_moves() -> None:
    wanted = tuple(f"lib{number}.so" for number in range(20))
    before = library()
    after = change_bytes(before, ElfChange(add_needed=wanted))
    assert read_elf(after).needed == ("libc.so.6", "libcudart.so.13", *wanted)
    assert read_image(BufferSource(after)).loads[-1].flags == 6  # the loader writes DT_DEBUG
    fewer = change_bytes(after, ElfChange(remove_needed=wanted[:15]))
    assert len(fewer) == len(after)
    assert len(change_bytes(fewer, ElfChange(add_needed=wanted[:15]))) == len(after)


def test_what_is_not_there_or_still_used() -> None:
    source = BufferSource(library())
    with pytest.raises(
        IntegrityError,
        match=r"lib\.so: the file has no NEEDED entry for libx\.so(.|\n)*has no NEEDED entry for liby\.so",
    ):
        plan_edit(source, ElfChange(replace_needed={"libx.so": "libz.so"}, remove_needed=("liby.so",)), name="lib.so")
    with pytest.raises(IntegrityError, match=r"needs symbol versions from libcudart\.so\.13"):
        plan_edit(source, ElfChange(remove_needed=("libcudart.so.13",)))
    with pytest.raises(
        IntegrityError, match=r"'a:b' is not a valid search path entry(.|\n)*'' is not a valid search path entry"
    ):
        plan_edit(source, ElfChange(rpath=("a:b", "")))
    with pytest.raises(IntegrityError, match="'' is not a valid library name"):
        plan_edit(source, ElfChange(soname=""))


def test_what_can_not_be_edited() -> None:
    for data, message in (
        (b"!<arch>\n" + bytes(100), "does not start with the ELF magic"),
        (library(kind=1), "neither an executable nor a shared library"),
        (library()[:100], "extends past the end of the file"),
        (library().replace(struct.pack("<II", 2, 6), struct.pack("<II", 0x6FFFFFF0, 6)), "has no dynamic section"),
    ):
        with pytest.raises(IntegrityError, match=message):
            plan_edit(BufferSource(data), ElfChange(rpath=LONG))


def test_a_static_program_is_left_alone() -> None:
    data = library(runpath="x" * 40)
    entry = struct.pack("<q", 14)  # its SONAME entry becomes DT_FLAGS_1 with DF_1_PIE
    at = data.index(entry, data.index(struct.pack("<q", 29)) - 64)
    static = data[:at] + struct.pack("<qQ", 0x6FFFFFFB, 0x08000000) + data[at + 16 :]
    with pytest.raises(IntegrityError, match="statically linked"):
        plan_edit(BufferSource(static), ElfChange(rpath=LONG))


def spoil(data: bytes, find: bytes, put: bytes) -> EditedSource:
    return EditedSource(BufferSource(data), [Put(data.rindex(find), put)])


def test_the_proof_finds_what_other_tools_break() -> None:
    before = library()
    change = ElfChange(rpath=LONG, soname="libother.so")
    after = change_bytes(before, change)
    image = read_image(BufferSource(after))
    annex = image.loads[-1]
    crooked = spoil(after, image.pack_program(annex), image.pack_program(annex._replace(vaddr=annex.vaddr + 16)))
    first = after.index(b"libc.so.6")  # the string that DT_NEEDED uses
    for broken, message in (
        (crooked, "offset and address are not congruent modulo the segment's alignment"),
        (spoil(after, b"malloc\0", b"mallox\0"), "the name of symbol malloc changed"),
        (spoil(after, b"libother.so\0", b"libothex.so\0"), "the SONAME is now libothex.so"),
        (spoil(after, b"$ORIGIN/../../nvidia/cu13", b"$ORIGIN/../../nvidia/cu12"), "the search path is now"),
        (spoil(after, b"GLIBC_2.17\0", b"GLIBC_2.18\0"), "the symbol versions changed"),
        (EditedSource(BufferSource(after), [Put(first, b"libc.so.7")]), "it now needs libc.so.7, libcudart.so.13"),
    ):
        with pytest.raises(IntegrityError, match=message):
            verify_edit(BufferSource(before), broken, change)


CHANGES = st.builds(
    ElfChange,
    rpath=st.none() | st.lists(st.sampled_from(LONG), max_size=3).map(tuple),
    kind=st.sampled_from(["rpath", "runpath"]),
    soname=st.none() | st.text("abc.", min_size=1, max_size=40),
    replace_needed=st.sampled_from([{}, {"libc.so.6": "libd.so"}, {"libcudart.so.13": "libcudart-12345678.so.13"}]),
    add_needed=st.lists(st.text("xyz", min_size=1, max_size=30), max_size=12).map(tuple),
)


WORDS = [0, 1, 1000, (1 << 16) - 1, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1]


@given(
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.integers(0, 3000), st.sampled_from([1, 4, 8]), st.sampled_from(WORDS)), min_size=1),
    CHANGES,
)
def test_random_damage_raises_nothing_else(
    kind: tuple[int, str, str], damage: list[tuple[int, int, int]], change: ElfChange
) -> None:
    data = bytearray(library(*kind))
    for place, size, value in damage:
        place = place % len(data) // size * size  # noqa: PLW2901 (fields are aligned)
        data[place : place + size] = (value % (1 << 8 * size)).to_bytes(
            size, "little" if kind[1] == "little" else "big"
        )
    source = BufferSource(bytes(data))
    with contextlib.suppress(IntegrityError):
        new = edited(source, change)
        verify_edit(source, new, change)


@given(st.sampled_from(KINDS), st.lists(CHANGES, min_size=1, max_size=6))
def test_random_changes_come_out_as_asked(kind: tuple[int, str, str], changes: list[ElfChange]) -> None:
    data = library(*kind)
    for change in changes:
        needed = read_links(BufferSource(data)).needed
        possible = {one: two for one, two in change.replace_needed.items() if one in needed}
        change = ElfChange(  # noqa: PLW2901 (what of it applies)
            rpath=change.rpath,
            kind=change.kind,
            soname=change.soname,
            replace_needed=possible,
            add_needed=change.add_needed,
        )
        data = change_bytes(data, change)
