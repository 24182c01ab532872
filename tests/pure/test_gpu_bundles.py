"""Offload bundles with fewer entries: laid out anew, packed anew, and the same code."""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.binary.gpu import repack
from axletree.binary.gpu.hip import BundleRow, parse_table
from axletree.binary.gpu.repack import alignment, lay_out, repack_bundle, unpacked_digests
from axletree.binary.gpu.scan import GpuSection, read_containers
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from support.device import bundle, packed_bundle

if TYPE_CHECKING:
    from axletree.binary.gpu.code import Container

PREFIX = "hipv4-amdgcn-amd-amdhsa--"
TARGETS = ("gfx803", "gfx90a:xnack+", "gfx1030")
CODES = st.dictionaries(st.sampled_from(TARGETS), st.binary(min_size=1, max_size=3000), min_size=1)
HEADS = {1: "<4s2HI8s", 2: "<4s2HII8s", 3: "<4s2HQQ8s"}
START = 4096


def container_of(packed: bytes, *, behind: int = 0) -> tuple[BufferSource, Container, int]:
    """A source with a packed bundle, what is read of it, and where it must have ended."""
    source = BufferSource(bytes(START) + packed + bytes(behind))
    (container,) = read_containers(source, GpuSection(".hip_fatbin", START, len(packed) + behind)).containers
    return source, container, START + len(packed) + behind


def kernels(plain: bytes) -> dict[str, bytes]:
    rows = parse_table(plain)
    assert rows is not None
    return {row.id.removeprefix(PREFIX): plain[row.offset : row.offset + row.size] for row in rows if row.size}


def unpack(data: bytes, version: int) -> tuple[bytes, list[int | bytes]]:
    """The plain bundle, and the fields of the head."""
    fields = list(struct.unpack_from(HEADS[version], data))
    stream = data[struct.calcsize(HEADS[version]) :]
    if fields[2] == 0:
        return zlib.decompress(stream), fields
    return zstandard.ZstdDecompressor().decompressobj().decompress(stream), fields


@settings(max_examples=40)
@given(
    codes=CODES,
    version=st.sampled_from([1, 2, 3]),
    method=st.sampled_from([0, 1]),
    align=st.sampled_from([1, 16, 256, 4096]),
    data=st.data(),
)
def test_what_is_kept_comes_out_as_it_went_in(
    codes: dict[str, bytes], version: int, method: int, align: int, data: st.DataObject
) -> None:
    plain = bundle({PREFIX + target: code for target, code in codes.items()}, align=align)
    source, container, following = container_of(packed_bundle(plain, version=version, method=method), behind=100)
    kept = data.draw(st.sets(st.integers(0, len(codes))))
    packed = repack_bundle(source, container, kept, following)
    again, fields = unpack(packed, version)
    wanted = {target: code for index, (target, code) in enumerate(codes.items(), start=1) if index in kept}
    assert kernels(again) == wanted
    rows = parse_table(again)
    assert rows is not None
    assert rows[0].id.startswith("host-")
    assert all(row.offset % align == 0 for row in rows if row.size)
    assert (fields[:3], fields[-2]) == ([b"CCOB", version, method], len(again))
    assert fields[-1] == hashlib.md5(again, usedforsecurity=False).digest()[:8]
    assert version == 1 or fields[3] == len(packed)
    entries = {entry.id for index, entry in enumerate(container.entries) if index in kept or entry.arch == "host"}
    before = [each for each in unpacked_digests(source, container, following) if each[0] in entries]
    new_source, new, end = container_of(packed)
    assert [*unpacked_digests(new_source, new, end)] == before
    assert {each[0].removeprefix(PREFIX): each[2] for each in before if each[1]} == {
        target: hashlib.sha256(code).digest() for target, code in wanted.items()
    }


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3000), st.sampled_from(TARGETS)), min_size=1, max_size=8)
)
def test_a_layout_keeps_order_and_alignment(rows: list[tuple[int, int, str]]) -> None:
    end, given_rows = 4096, list[BundleRow]()
    for gap, size, target in rows:
        given_rows.append(BundleRow(end + gap * 512, size, PREFIX + target))
        end += gap * 512 + size
    layout = lay_out(given_rows)
    assert layout is not None
    table = parse_table(layout.table)
    assert table is not None
    assert [(row.size, row.id) for row in table] == [(row.size, row.id) for row in given_rows]
    assert all(
        alignment(new.offset) >= alignment(old.offset) for new, old in zip(table, given_rows, strict=True) if old.size
    )
    full = [row for row in table if row.size]
    assert [row.offset for row in full] == sorted(row.offset for row in full)
    assert all(row.offset >= len(layout.table) and row.offset + row.size <= layout.size for row in full)
    again = lay_out(table)  # laid out twice is laid out once
    assert again is not None
    assert (again.table, again.size) == (layout.table, layout.size)


def test_overlapping_code_has_no_layout_and_shared_code_is_kept_once() -> None:
    one, two = BundleRow(4096, 100, "host-x"), BundleRow(4150, 100, PREFIX + "gfx803")
    assert lay_out([one, two]) is None
    layout = lay_out([one, one._replace(id=PREFIX + "gfx803")])
    assert layout is not None
    assert len(layout.spans) == 1
    assert [alignment(number) for number in (0, 1, 24, 4096, 3 * 4096, 1 << 20)] == [4096, 1, 8, 4096, 4096, 4096]


PLAIN = bundle({f"{PREFIX}gfx803": b"a" * 5000, f"{PREFIX}gfx1030": b"b" * 5000})
SIZE_AT = {1: 8, 2: 12, 3: 16}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
@pytest.mark.parametrize("change", [1, -1, 4096])
def test_a_head_that_tells_another_size_is_damage(version: int, method: int, change: int) -> None:
    packed = bytearray(packed_bundle(PLAIN, version=version, method=method))
    size = len(PLAIN) + change
    packed[SIZE_AT[version] : SIZE_AT[version] + 4] = struct.pack("<I", size)
    source, container, end = container_of(bytes(packed))
    for act in (
        lambda: repack_bundle(source, container, {1, 2}, end),
        lambda: unpacked_digests(source, container, end),
    ):
        with pytest.raises(IntegrityError, match=f"at offset {START} decompresses to .* instead of {size}"):
            act()


def replaced(packed: bytes, offset: int, new: bytes) -> bytes:
    return packed[:offset] + new + packed[offset + len(new) :]


def test_other_damage_is_named() -> None:
    sound = packed_bundle(PLAIN, version=2)
    source, container, end = container_of(sound)

    def refused(data: bytes, message: str) -> None:
        damaged = BufferSource(bytes(START) + data)
        with pytest.raises(IntegrityError, match=f"the compressed offload bundle at offset {START} {message}"):
            repack_bundle(damaged, container, {1}, end)

    refused(replaced(sound, 4, b"\x09"), "has an unknown version")
    refused(replaced(sound, 0, b"XXXX"), "has an unknown version")
    refused(sound[:6], "has an unknown version")
    refused(replaced(sound, 24, b"\0\0\0\0"), r"cannot be decompressed \(zstd")
    whole = packed_bundle(PLAIN, version=3)
    refused(
        replaced(whole, 16, struct.pack("<Q", 1 << 40)),
        "declares an implausible uncompressed size of 1099511627776 bytes",
    )
    refused(packed_bundle(b"no bundle" * 1000), "does not decompress to a bundle")
    assert repack_bundle(source, container, {1}, end)


def test_a_damaged_zlib_stream_is_named() -> None:
    packed = packed_bundle(PLAIN, method=0)
    _, container, end = container_of(packed)
    damaged = BufferSource(bytes(START) + replaced(packed, len(packed) - 4, b"\xff\xff\xff\xff"))
    with pytest.raises(IntegrityError, match="cannot be decompressed"):
        unpacked_digests(damaged, container, end)


def test_code_that_overlaps_is_not_packed_again() -> None:
    rows = parse_table(PLAIN)
    assert rows is not None
    place = PLAIN.index(rows[2].id.encode()) - 24
    packed = packed_bundle(replaced(PLAIN, place, struct.pack("<Q", rows[1].offset + 100)))
    source, container, end = container_of(packed)
    with pytest.raises(IntegrityError, match="contains overlapping code"):
        repack_bundle(source, container, {1, 2}, end)


def test_small_pieces_give_the_same_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that lies in many pieces of the stream, or ends where one ends."""
    source, container, end = container_of(packed_bundle(PLAIN))
    whole = repack_bundle(source, container, {2}, end), unpacked_digests(source, container, end)
    for piece in (4096, 1000):
        monkeypatch.setattr(repack, "_PIECE", piece)
        again, digests = repack_bundle(source, container, {2}, end), unpacked_digests(source, container, end)
        assert (unpack(again, 2)[0], digests) == (unpack(whole[0], 2)[0], whole[1])
