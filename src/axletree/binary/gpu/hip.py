"""Clang's offload bundles, plain and compressed: what ``.hip_fatbin`` holds.

The formats are those of LLVM's ``clang-offload-bundler`` ("Bundled Binary File Layout" and "Compression and
Decompression" in its documentation, ``OffloadBundler.cpp``)::

    plain       __CLANG_OFFLOAD_BUNDLE__, u64 n, n x (u64 offset in the bundle, u64 size, u64 length of id, id)
    compressed  CCOB, u16 version, u16 method (0 zlib, 1 zstd), then
                version 1  u32 unpacked size, u64 hash                      (the end is told by nothing)
                version 2  u32 size with header, u32 unpacked size, u64 hash
                version 3  u64 size with header, u64 unpacked size, u64 hash
                and a plain bundle, packed

A section holds one bundle for each object that was linked, each at a multiple of 4096.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.gpu.code import TOO_MANY, ByteRange, CodeEntry, Container

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.binary.gpu.code import Packing, Reading, ReadLimit

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
PACKED_MAGIC = b"CCOB"
ALIGNMENT = 4096
"""Bundles begin at multiples of it in linked files."""

MAX_TARGETS = 1024
_MAX_ID = 160
_HEAD = len(MAGIC) + 8
_ROW = struct.Struct("<QQQ")
_PACKED_HEADS = {1: struct.Struct("<4x2H I8x"), 2: struct.Struct("<4x2H II8x"), 3: struct.Struct("<4x2H QQ8x")}
_LONGEST_PACKED_HEAD = 32
_PEEK = 1 << 18
"""Packed bytes that are looked at for the table; a block of zstd has 128 KiB at most."""
_TABLE = 1 << 16
"""Bytes of the table that are unpacked."""
WINDOW = 1 << 30
"""Bundles are packed with windows up to their size; of that much address space little is ever touched here."""
_ID = re.compile(r"[!-~]+")
_TARGET = re.compile(r"(?:hip|hipv4|openmp)-amdgcn-amd-amdhsa-[^-]*-(gfx[0-9a-z-]+(?::[a-z]+[+-])*)")


class BundleRow(NamedTuple):
    """A line of a bundle's table."""

    offset: int
    """From the start of the bundle."""
    size: int
    id: str


def arch_of(identifier: str) -> str:
    """``gfx90a:xnack-`` of an entry's id; ``host`` for the host part, the id itself for others."""
    if identifier.startswith("host-"):
        return "host"
    found = _TARGET.fullmatch(identifier)
    return found[1] if found else identifier


def render_table(rows: Sequence[BundleRow]) -> bytes:
    """The head of a plain bundle, up to the end of its table."""
    parts = [MAGIC, struct.pack("<Q", len(rows))]
    for row in rows:
        identifier = row.id.encode("ascii")
        parts += [_ROW.pack(row.offset, row.size, len(identifier)), identifier]
    return b"".join(parts)


def read_bundle(offset: int, budget: ReadLimit) -> Reading:
    """Read the plain bundle at an offset where :data:`MAGIC` was seen."""
    head = yield ByteRange(offset, _HEAD)
    if len(head) < _HEAD or not head.startswith(MAGIC):
        return None
    (count,) = struct.unpack_from("<Q", head, len(MAGIC))
    if not 0 < count <= MAX_TARGETS:
        return None
    entries: list[CodeEntry] = []
    position, damaged = offset + _HEAD, None
    for _ in range(count):
        data = yield ByteRange(position, _ROW.size)
        start, size, length = _ROW.unpack(data) if len(data) == _ROW.size else (0, 0, 0)
        if not 0 < length <= _MAX_ID:
            damaged = f"no valid offload bundle table entry at offset {position}"
            break
        name = (yield ByteRange(position + _ROW.size, length)).decode("latin-1")
        if not budget.spend():
            damaged = TOO_MANY
            break
        if len(name) < length or not _ID.fullmatch(name):
            damaged = f"no valid offload bundle table entry at offset {position}"
            break
        entries.append(CodeEntry(offset + start, size, arch_of(name), "binary", "none", size, name))
        position += _ROW.size + length
    if damaged is None and any(entry.size and entry.offset < position for entry in entries):
        damaged = f"code in the offload bundle at offset {offset} overlaps the bundle's table"
    end = max([position, *(entry.offset + entry.size for entry in entries)]) if damaged is None else position
    return Container("hip", offset, end - offset, tuple(entries), damaged=damaged)


def read_packed_bundle(offset: int, budget: ReadLimit) -> Reading:
    """Read the compressed bundle at an offset where :data:`PACKED_MAGIC` was seen; only its table is unpacked."""
    head = yield ByteRange(offset, _LONGEST_PACKED_HEAD)
    version, method = struct.unpack_from("<4x2H", head) if len(head) >= 8 else (0, 0)
    form = _PACKED_HEADS.get(version)
    if form is None or method > 1 or len(head) < form.size or not head.startswith(PACKED_MAGIC):
        return None
    sizes = form.unpack_from(head)[2:]
    total = sizes[0] if version > 1 else form.size
    if total < form.size:
        return None
    wanted = min(_PEEK, total - form.size) if version > 1 else _PEEK
    stream = yield ByteRange(offset + form.size, wanted)
    packing: Packing = "zstd" if method else "zlib"
    table = _unpack_start(stream, packing)
    rows = parse_table(table)
    if rows is None:
        damaged = f"the compressed offload bundle at offset {offset} does not decompress to a bundle"
        return Container("hip", offset, total, (), packing, damaged)
    if not all(budget.spend() for _ in rows):
        return Container("hip", offset, total, (), packing, TOO_MANY)
    unpacked = max(1, sum(row.size for row in rows))
    entries = tuple(
        CodeEntry(
            offset, (total - form.size) * row.size // unpacked, arch_of(row.id), "binary", packing, row.size, row.id
        )
        for row in rows
    )
    return Container("hip", offset, total, entries, packing)


def parse_table(data: bytes) -> tuple[BundleRow, ...] | None:
    """The table of a plain bundle from its first bytes; ``None`` where it is none, or is longer than they are."""
    if len(data) < _HEAD or not data.startswith(MAGIC):
        return None
    (count,) = struct.unpack_from("<Q", data, len(MAGIC))
    if not 0 < count <= MAX_TARGETS:
        return None
    rows: list[BundleRow] = []
    position = _HEAD
    for _ in range(count):
        if position + _ROW.size > len(data):
            return None
        start, size, length = _ROW.unpack_from(data, position)
        position += _ROW.size
        name = data[position : position + length].decode("latin-1") if length <= _MAX_ID else ""
        if not name or len(name) < length or not _ID.fullmatch(name):
            return None
        position += length
        rows.append(BundleRow(start, size, name))
    return tuple(rows)


def _unpack_start(stream: bytes, packing: Packing) -> bytes:
    """At most :data:`_TABLE` unpacked bytes; none where the stream is damaged."""
    if packing == "zlib":
        try:
            return zlib.decompressobj().decompress(stream, _TABLE)
        except zlib.error:
            return b""
    import zstandard  # noqa: PLC0415 (few files have such bundles, and every command that reads ELF files comes by here)

    try:
        reader = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(io.BytesIO(stream))
        return reader.read(_TABLE)
    except zstandard.ZstdError:
        return b""
