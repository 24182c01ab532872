"""NVIDIA fat binaries: what ``.nv_fatbin`` and ``__nv_relfatbin`` hold.

NVIDIA publishes no description of the format. What is here was read from the output of nvcc 13.0 and of shipped
libraries, and agrees with ``cuobjdump`` entry by entry (``tests/host/test_device_code.py``). A section is a row of
containers, each at a multiple of 8::

    container  u32 magic BA55ED50, u16 version 1, u16 header size 16, u64 bytes after the header
    entry      0  u16 kind, u16 0x101, u32 header size, u64 payload size, padded
              16  u32 compressed size, u32 options, u16 minor, u16 major, u32 architecture, u32 name, u32 its length,
              40  u64 flags, u64 -, u64 uncompressed size (0 where the payload is raw)

Headers are 64 bytes or longer: names, options and the tables of newer architectures follow.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from axletree.binary.gpu.code import TOO_MANY, ByteRange, CodeEntry, Container

if TYPE_CHECKING:
    from axletree.binary.gpu.code import Form, Packing, Reading, ReadLimit

MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)
"""How a container begins: magic number, version, header size."""
HEADER = 16
ALIGNMENT = 8

_ENTRY = struct.Struct("<H2xIQ 12xI 8xQ8xQ")  # kind, header, payload, architecture, flags, uncompressed size
_SHORTEST, _LONGEST = _ENTRY.size, 1 << 16
_PTX, _CUBIN, _LTO = 1, 2, 8
_ZSTD, _LZ4, _EXACT, _FAMILY = 0x8000, 0x2000, 0x100000, 0x200000
_PREFIXES = {_PTX: "compute_", _CUBIN: "sm_", _LTO: "lto_"}


def read_fatbin(offset: int, budget: ReadLimit) -> Reading:
    """Read the container at an offset where :data:`MAGIC` was seen."""
    head = yield ByteRange(offset, HEADER)
    if len(head) < HEADER or not head.startswith(MAGIC):
        return None
    (size,) = struct.unpack_from("<Q", head, 8)
    entries: list[CodeEntry] = []
    position, end, damaged = offset + HEADER, offset + HEADER + size, None
    while position < end and damaged is None:
        data = yield ByteRange(position, _ENTRY.size)
        entry = _parse(data, position)
        if entry is None:
            damaged = f"no valid fat binary entry at offset {position}"
        elif entry.offset + entry.size > end:
            damaged = f"the entry at offset {position} is larger than its container"
        elif not budget.spend():
            damaged = TOO_MANY
        else:
            entries.append(entry)
            position += entry.size
    if damaged and not entries:
        return None  # compilers hold the magic number as a constant
    return Container("nvidia", offset, end - offset, tuple(entries), damaged=damaged)


def _parse(data: bytes, offset: int) -> CodeEntry | None:
    if len(data) < _ENTRY.size:
        return None
    kind, header, payload, arch, flags, unpacked = _ENTRY.unpack(data)
    if not _SHORTEST <= header <= _LONGEST or not 0 < arch < 10_000:
        return None
    suffix = "a" if flags & _EXACT else "f" if flags & _FAMILY else ""
    form: Form = "binary" if kind == _CUBIN else "intermediate"
    packing: Packing = "zstd" if flags & _ZSTD else "lz4" if flags & _LZ4 else "none"
    name = f"{_PREFIXES.get(kind, f'kind{kind}_')}{arch}{suffix}"
    return CodeEntry(offset, header + payload, name, form, packing, unpacked or payload)
