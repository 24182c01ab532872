"""Members whose content goes by once: the same bytes as with random access, in bounded memory."""

from __future__ import annotations

import random
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.elf.facts import read_elf, read_host_facts
from axletree.binary.source import PassingSource
from axletree.binary.zip import members
from axletree.binary.zip.directory import ZipEntry, read_directory
from axletree.binary.zip.inflate import CHUNK, inflate, inflate_at_once
from axletree.binary.zip.members import MemberSource, PassingMember
from axletree.core.errors import IntegrityError
from support.wheels import make_elf, zip_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

BODY = random.Random(1).randbytes(5 * CHUNK) + bytes(9 * CHUNK + 77)


def archive(body: bytes, method: int = zipfile.ZIP_DEFLATED) -> tuple[bytes, ZipEntry]:
    data = zip_bytes({"big": body}, method=method)
    return data, read_directory(data)[0]


@pytest.fixture
def no_going_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> bytes:
        raise AssertionError("it was read a second time")

    monkeypatch.setattr(PassingMember, "_read_again", never)


@given(st.lists(st.tuples(st.integers(0, len(BODY)), st.integers(0, 3 * CHUNK), st.booleans()), max_size=8))
def test_any_order_of_reads_gives_the_same_bytes(reads: list[tuple[int, int, bool]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(members, "HEAD", CHUNK)
        member = PassingMember(*archive(BODY))
        for offset, size, held in reads:
            if held:
                member.hold(offset, size)
        for offset, size, _ in reads:
            assert member.read(offset, size) == BODY[offset : offset + size]
        member.finish()


@pytest.mark.usefixtures("no_going_back")
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_was_announced_is_kept(monkeypatch: pytest.MonkeyPatch, method: int) -> None:
    monkeypatch.setattr(members, "HEAD", CHUNK)
    seen: list[tuple[int, bytes]] = []
    member = PassingMember(*archive(BODY, method), watch=lambda offset, chunk: seen.append((offset, chunk)))
    assert isinstance(member, PassingSource)
    assert member.size == len(BODY)
    member.hold(4 * CHUNK - 5, 10)
    member.finish()
    assert member.read(4 * CHUNK - 5, 10) == BODY[4 * CHUNK - 5 : 4 * CHUNK + 5]
    assert member.read(3, 20) == BODY[3:23]
    assert member.read(len(BODY) - 9, 100) == BODY[-9:]
    assert b"".join(chunk for _, chunk in seen) == BODY
    assert [offset for offset, _ in seen] == [sum(len(chunk) for _, chunk in seen[:i]) for i in range(len(seen))]


def test_trouble_comes_again_however_it_was_met() -> None:
    data, entry = archive(BODY)
    entry = ZipEntry(**{name: getattr(entry, name) for name in entry.__struct_fields__} | {"crc": entry.crc ^ 1})
    member = PassingMember(data, entry)
    for _ in range(2):
        with pytest.raises(IntegrityError, match="the content has CRC"):
            member.finish()


@pytest.mark.usefixtures("no_going_back")
@pytest.mark.parametrize("symtab", [0, 20 * CHUNK])
@pytest.mark.parametrize("count_by", ["sections", "hash", "gnu_hash"])
def test_an_elf_file_is_read_in_one_pass(count_by: str, symtab: int) -> None:
    body = make_elf(
        undefined=tuple(f"_ZN3c10{number}fEv" for number in range(10, 99)),
        exported=("PyInit_x",),
        needs={"libc.so.6": ("GLIBC_2.17",)},
        runpath="$ORIGIN",
        count_by=count_by,
        symtab=symtab,
    )
    member = PassingMember(*archive(body))
    facts, places = read_host_facts(member, name="big")
    member.finish()
    assert facts == read_elf(body)
    assert places == ()


@given(st.binary(max_size=3000), st.sampled_from([0, 1, 6, 9]), st.integers(-3, 3), st.binary(max_size=2))
def test_a_stream_ends_where_it_is_declared_to_end(body: bytes, level: int, more: int, tail: bytes) -> None:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    packed = packer.compress(body) + packer.flush() + tail
    size = len(body) + more
    if size < 0:
        return
    whole, results = memoryview(packed), list[bytes]()
    reads: list[Callable[[], bytes]] = [
        lambda: inflate_at_once(whole, size, IntegrityError),
        lambda: b"".join(inflate(whole, 0, len(packed), size=size, failed=IntegrityError)),
    ]
    for read in reads:
        try:
            results.append(read())
        except IntegrityError:
            results.append(b"refused")
    assert results == ([body] * 2 if more == 0 and not tail else [b"refused"] * 2)


@given(st.binary(min_size=1, max_size=300), st.integers(0, 5000))
def test_garbage_is_refused_or_inflated_never_anything_else(packed: bytes, size: int) -> None:
    try:
        found = inflate_at_once(memoryview(packed), size, IntegrityError)
    except IntegrityError:
        return
    assert found == zlib.decompress(packed, -15)


def test_random_access_without_a_scan_before() -> None:
    member = MemberSource(*archive(BODY))
    for offset in (len(BODY) - 10, 0, len(BODY) // 2):
        assert member.read(offset, 20) == BODY[offset : offset + 20]


def test_states_stand_further_apart_in_very_long_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "STEP", 1 << 12)
    monkeypatch.setattr(members, "_MAX_STATES", 16)
    body = random.Random(2).randbytes(300_000)
    member = MemberSource(*archive(body))
    assert b"".join(member.scan()) == body
    for offset in range(0, len(body), 7001):
        assert member.read(offset, 5000) == body[offset : offset + 5000]
    assert len(member._states) <= 16
