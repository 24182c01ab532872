"""The ELF reader: every class and byte order, and files that lie."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.elf import tables as elf_tables
from axletree.binary.elf.facts import VersionNeed, is_elf, read_elf
from axletree.core.errors import IntegrityError
from support.wheels import make_elf

NEEDS = {"libc.so.6": ("GLIBC_2.17", "GLIBC_2.2.5"), "libstdc++.so.6": ("GLIBCXX_3.4.21",)}


def full(**changes: object) -> bytes:
    """A file that has everything."""
    parts: dict[str, object] = {
        "soname": "libdemo.so.1",
        "needed": ("libc.so.6", "libstdc++.so.6"),
        "runpath": "$ORIGIN/lib:/opt/lib",
        "needs": NEEDS,
        "defines": ("libdemo.so.1", "DEMO_1"),
        "undefined": ("printf", "PyModule_Create2", "_Py_Dealloc"),
        "weak": ("PyWeak",),
        "exported": ("demo", "PyInit__core"),
        "interpreter": "/lib/ld.so",
    }
    return make_elf(**{**parts, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("count_by", ["sections", "hash", "gnu_hash"])
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("bits", [32, 64])
def test_everything_is_read(bits: int, order: str, count_by: str) -> None:
    facts = read_elf(full(bits=bits, order=order, count_by=count_by))
    assert (facts.bits, facts.order, facts.kind, facts.machine) == (bits, order, "shared", 62)
    assert facts.dynamic
    assert facts.soname == "libdemo.so.1"
    assert facts.needed == ("libc.so.6", "libstdc++.so.6")
    assert facts.rpath == ()
    assert facts.runpath == ("$ORIGIN/lib", "/opt/lib")
    assert facts.versions_needed == tuple(VersionNeed(file=file, versions=names) for file, names in NEEDS.items())
    assert facts.versions_defined == ("libdemo.so.1", "DEMO_1")
    assert facts.stack == "plain"
    assert facts.interpreter == "/lib/ld.so"
    assert facts.python_symbols == ("PyModule_Create2", "_Py_Dealloc")
    assert facts.python_modules == ("_core",)


def test_an_empty_file_of_its_kind() -> None:
    facts = read_elf(make_elf(stack=None, count_by="gnu_hash"))
    assert facts.needed == ()
    assert facts.soname is None
    assert facts.interpreter is None
    assert facts.stack == "unmarked"
    assert facts.versions_needed == ()


@pytest.mark.parametrize(("flags", "stack"), [(6, "plain"), (7, "executable"), (None, "unmarked")])
def test_the_stack(flags: int | None, stack: str) -> None:
    assert read_elf(make_elf(stack=flags)).stack == stack


def test_rpath_keeps_empty_entries() -> None:
    assert read_elf(make_elf(rpath="/a::$ORIGIN")).rpath == ("/a", "", "$ORIGIN")
    assert read_elf(make_elf(rpath="")).rpath == ()


def test_what_is_never_loaded_is_counted() -> None:
    facts = read_elf(make_elf(symtab=48))
    assert (facts.symbol_table, facts.debug) == (48, 8)


@pytest.mark.parametrize(
    ("machine", "bits", "order", "name"),
    [
        (62, 64, "little", "x86_64"),
        (3, 32, "little", "i686"),
        (183, 64, "little", "aarch64"),
        (21, 64, "little", "ppc64le"),
        (21, 64, "big", None),
        (22, 64, "big", "s390x"),
        (190, 64, "little", None),
    ],
)
def test_architectures(machine: int, bits: int, order: str, name: str | None) -> None:
    assert read_elf(make_elf(machine=machine, bits=bits, order=order)).architecture == name


def test_the_magic() -> None:
    assert is_elf(full())
    assert not is_elf(b"#!/bin/sh\n")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"PK\x03\x04" + bytes(100), b"\x7fELF" + bytes(100)])
def test_what_is_no_elf_file(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"^lib\.so: damaged ELF file"):
        read_elf(data, name="lib.so")


def test_every_cut_is_noticed_or_harmless() -> None:
    data = full()
    for length in range(len(data)):
        with pytest.raises(IntegrityError):  # the section table is the last thing in the file
            read_elf(data[:length])


def patch(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


def test_the_budget_ends_every_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf_tables, "MAX_STEPS", 10)
    with pytest.raises(IntegrityError, match="the tables are implausibly large"):
        read_elf(full())


def test_names_that_share_their_bytes_are_paid_for_by_length() -> None:
    """A table of n names inside one long string would cost n times its length."""
    data = make_elf(undefined=("Py" + "x" * 60_000, *("y",) * 4000), count_by="hash")
    place = data.index(struct.pack("<IBBH", 1 + 60_003, 0x12, 0, 0))  # the first symbol after the long name
    symbols = b"".join(struct.pack("<IBBHQQ", 1, 0x12, 0, 0, 0x10, 0) for _ in range(4000))
    with pytest.raises(IntegrityError, match="the tables are implausibly large"):
        read_elf(data[:place] + symbols + data[place + len(symbols) :])


def test_a_count_of_symbols_beyond_the_file() -> None:
    data = make_elf(count_by="hash", exported=("f",))
    words = struct.pack("<IIII", 1, 2, 1, 0)
    with pytest.raises(IntegrityError, match="symbol table extends past the end of the file"):
        read_elf(patch(data, words, struct.pack("<IIII", 1, 0x7FFF, 1, 0)))


def test_a_name_outside_the_string_table() -> None:
    data = make_elf(soname="libdemo.so")
    entry = struct.pack("<qQ", 14, 1)
    with pytest.raises(IntegrityError, match="outside its string table"):
        read_elf(patch(data, entry, struct.pack("<qQ", 14, 1 << 40)))


def test_a_table_at_an_address_that_is_not_loaded() -> None:
    data = make_elf(needs=NEEDS)
    entry = data.index(struct.pack("<q", 0x6FFFFFFE))
    with pytest.raises(IntegrityError, match="but no part of the file is loaded there"):
        read_elf(data[: entry + 8] + struct.pack("<Q", 1 << 50) + data[entry + 16 :])


@given(
    st.sampled_from(["sections", "hash", "gnu_hash"]),
    st.sampled_from([32, 64]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=12),
)
def test_random_damage_raises_nothing_else(count_by: str, bits: int, changes: list[tuple[float, int]]) -> None:
    data = bytearray(full(count_by=count_by, bits=bits))
    for place, value in changes:
        data[int(place * len(data))] = value
    with contextlib.suppress(IntegrityError):
        read_elf(bytes(data))


@given(st.binary(max_size=400))
def test_random_bytes_behind_a_header_raise_nothing_else(tail: bytes) -> None:
    with contextlib.suppress(IntegrityError):
        read_elf(full()[:64] + tail)
