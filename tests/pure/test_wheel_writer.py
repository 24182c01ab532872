"""The wheel writer: deterministic, bounded, strict about what it is given."""

from __future__ import annotations

import io
import random
import tracemalloc
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.zip import deflate as deflate_module
from axletree.binary.zip.deflate import BLOCK, cut, deflate
from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import read_member
from axletree.binary.zip.records import dos_time
from axletree.core.errors import IntegrityError
from axletree.package.wheel.repack import packed_members
from axletree.package.wheel.scan import scan_wheel
from axletree.package.wheel.writer import Member, WrittenWheel, write_wheel
from support.wheels import demo_info, demo_metadata, make_elf, wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAME = "demo-1.0-py3-none-any.whl"


def write(members: Sequence[Member], **options: int) -> tuple[bytes, WrittenWheel]:
    sink = io.BytesIO()
    written = write_wheel(sink, members, metadata=demo_metadata(), wheel_info=demo_info(), **options)
    return sink.getvalue(), written


def noise(size: int) -> bytes:
    source = random.Random(size)
    return b"".join(source.randbytes(64) + bytes(64) for _ in range(size // 128 + 1))[:size]


def in_chunks(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


BIG = noise(2 * BLOCK + 12345)
MEMBERS = [
    Member(path="demo/big.bin", data=lambda: in_chunks(BIG, 70_001), size=len(BIG)),
    Member(path="demo/__init__.py", data=b""),
    Member(path="demo/tool", data=b"#!/bin/sh\n" * 50, executable=True),
    Member(path="demo/random", data=random.Random(1).randbytes(5000)),
    Member(path="demo/block", data=noise(BLOCK)),
    Member(path="demo-1.0.dist-info/entry_points.txt", data=b"[console_scripts]\n"),
    Member(path="é.py", data=b"1\n"),
]
MEMBERS_BY_PATH = {member.path: member for member in MEMBERS}


def test_order_modes_dates_and_content() -> None:
    data, written = write(MEMBERS)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [
            "demo/__init__.py",
            "demo/big.bin",
            "demo/block",
            "demo/random",
            "demo/tool",
            "é.py",
            "demo-1.0.dist-info/METADATA",
            "demo-1.0.dist-info/WHEEL",
            "demo-1.0.dist-info/entry_points.txt",
            "demo-1.0.dist-info/RECORD",
        ]
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        assert modes["demo/tool"] == 0o100755
        assert modes["demo/__init__.py"] == 0o100644
        methods = {info.filename: info.compress_type for info in archive.infolist()}
        assert methods["demo/random"] == zipfile.ZIP_STORED  # deflate would make it larger
        assert methods["demo/big.bin"] == zipfile.ZIP_DEFLATED
        assert archive.read("demo/big.bin") == BIG
    assert written.size == len(data)
    assert written.record[-1].path == "demo-1.0.dist-info/RECORD"


def test_it_reads_back_without_a_word() -> None:
    data, written = write(MEMBERS)
    wheel = scan_wheel(data, filename=NAME).wheel
    assert (wheel.unreadable, wheel.record_issues) == ((), ())
    assert wheel.record == written.record


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_the_number_of_threads_changes_nothing(threads: int) -> None:
    assert write(MEMBERS, threads=threads)[0] == write(MEMBERS, threads=1)[0]


def test_the_order_and_the_chunks_of_the_input_change_nothing() -> None:
    other = [Member(path="demo/big.bin", data=BIG), *MEMBERS[:0:-1]]
    assert write(other)[0] == write(MEMBERS)[0]


def test_the_level_and_the_date_do() -> None:
    plain = write(MEMBERS)[0]
    assert len(write(MEMBERS, level=0)[0]) > len(plain)
    later = write(MEMBERS, epoch=1_700_000_000)[0]
    assert later != plain
    with zipfile.ZipFile(io.BytesIO(later)) as archive:
        assert archive.infolist()[0].date_time == (2023, 11, 14, 22, 13, 20)


@pytest.mark.parametrize(("epoch", "year"), [(-1, 1980), (0, 1980), (1 << 40, 2107)])
def test_dates_that_the_format_can_not_hold(epoch: int, year: int) -> None:
    assert (dos_time(epoch)[1] >> 9) + 1980 == year


def test_memory_stays_bounded() -> None:
    """Blocks are read as the writer needs them: a member may be larger than memory."""
    chunk = bytes(1 << 20)
    member = Member(path="zeros", data=lambda: (chunk for _ in range(100)), size=100 << 20)
    tracemalloc.start()
    try:
        write([member], threads=2, level=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 << 20


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([Member(path="../up", data=b"")], "../up: the path is not valid in a wheel"),
        ([Member(path="/abs", data=b"")], "/abs: the path is not valid in a wheel"),
        ([Member(path="a", data=b""), Member(path="a", data=b"")], "a: the wheel lists this file twice"),
        ([Member(path="a", data=b""), Member(path="a/b", data=b"")], "a: the path is both a file and a folder"),
        ([Member(path="demo-1.0.dist-info/RECORD", data=b"")], "RECORD: the wheel cannot contain this file"),
        ([Member(path="demo-1.0.dist-info/METADATA", data=b"")], "METADATA: the wheel lists this file twice"),
        (
            [Member(path="demo-0.9.dist-info/x", data=b"")],
            "demo-0.9.dist-info: a wheel can contain only one *.dist-info folder, but this one also contains demo-1.0",
        ),
        (
            [Member(path="a", data=lambda: [b""])],
            "a: the file's size must be specified, because its content is given in chunks",
        ),
        ([Member(path="a", data=lambda: [b"12"], size=3)], "a: the file was declared with 3 bytes, but has 2"),
    ],
)
def test_what_can_not_be_written(members: list[Member], message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        write(members)
    assert message in str(caught.value)


def test_a_source_that_fails_is_heard() -> None:
    def broken() -> Iterator[bytes]:
        yield b"1"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        write([Member(path="a", data=broken, size=2)], threads=2)


def test_more_members_than_zip_can_count() -> None:
    members = [Member(path=f"demo/{number}", data=b"") for number in range(66_000)]
    data, _ = write(members, level=0)
    assert len(read_directory(data)) == 66_003
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert len(archive.namelist()) == 66_003


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(1, 64), st.sampled_from([0, 1, 6, 9]))
def test_blocks_join_to_one_stream(chunks: list[bytes], block: int, level: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deflate_module, "BLOCK", block)
        blocks = list(cut(chunks))
    assert [each.last for each in blocks] == [False] * (len(blocks) - 1) + [True]
    assert all(len(each.data) == block for each in blocks[:-1])
    stream = b"".join(deflate(each, level) for each in blocks)
    inflater = zlib.decompressobj(-15)
    assert inflater.decompress(stream) == b"".join(chunks)
    assert inflater.eof
    assert inflater.unused_data == b""


def test_blocks_cost_little() -> None:
    whole = zlib.compressobj(6, zlib.DEFLATED, -15, 9)
    single = len(whole.compress(BIG) + whole.flush())
    assert sum(len(deflate(block, 6)) for block in cut([BIG])) < single * 1.002


PIECE = 64 << 10
RANDOM = random.Random(7).randbytes(PIECE)
TEXT = b"".join(b"line %d of a text that compresses well\n" % number for number in range(20_000))


@pytest.mark.parametrize(
    "data",
    [
        RANDOM * 8 + TEXT + RANDOM,
        TEXT[:PIECE] + RANDOM + TEXT[:100],
        TEXT + random.Random(8).randbytes(3 * PIECE),
        random.Random(9).randbytes(BLOCK + 12345) + TEXT,
    ],
)
@pytest.mark.parametrize("level", [1, 5, 9])
def test_dense_and_other_runs_join_to_one_stream(data: bytes, level: int) -> None:
    stream = b"".join(deflate(block, level) for block in cut([data]))
    inflater = zlib.decompressobj(-15)
    assert inflater.decompress(stream) == data
    assert inflater.eof
    assert not inflater.unused_data


def test_what_is_dense_is_stored_and_never_grows_much() -> None:
    data = random.Random(10).randbytes(3 * BLOCK + 77)
    assert sum(len(deflate(block, 1)) for block in cut([data])) < len(data) * 1.0002


def test_what_only_looks_dense_is_compressed() -> None:
    """Random bytes that stood just before, and each value as often as any other, in an order that repeats."""
    once = random.Random(11).randbytes(20_000)
    assert sum(len(deflate(block, 5)) for block in cut([once * 60])) < PIECE + 30_000
    assert sum(len(deflate(block, 5)) for block in cut([bytes(range(256)) * 4096])) < 20_000


def test_level_0_stores_members_of_any_size() -> None:
    with zipfile.ZipFile(io.BytesIO(write(MEMBERS, level=0)[0])) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.testzip() is None


@pytest.mark.parametrize("threads", [1, 3])
def test_packed_members_between_others(threads: int) -> None:
    """They keep their place, and the result is what compressing them here would give."""
    data, _ = write(MEMBERS)
    entries = [entry for entry in read_directory(data) if ".dist-info" not in entry.name]
    packed = packed_members(data, entries, (), folder="demo-1.0.dist-info")
    mixed = [each if index % 2 else MEMBERS_BY_PATH[each.path] for index, each in enumerate(packed)]
    rest = [member for member in MEMBERS if ".dist-info" in member.path]
    assert write([*mixed, *rest], threads=threads)[0] == data


def test_elf_files_survive() -> None:
    library = make_elf(soname="libdemo.so")
    data = wheel_bytes({"demo/libdemo.so": library})
    entries = {entry.name: entry for entry in read_directory(data)}
    assert read_member(data, entries["demo/libdemo.so"], limit=1 << 20) == library
