"""Which GPU targets a library carries code for: heads of the containers that compilers put into it, and nothing more.

HIP: Clang's offload bundles in ``.hip_fatbin``, plain or compressed (LLVM, ``OffloadBundler.cpp``). CUDA: fat binaries
in ``.nv_fatbin``.
"""

from __future__ import annotations

import importlib
import mmap
import re
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._elf import read_elf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PLAIN, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_PACKED_HEADS = {1: struct.Struct("<4x2H I8x"), 2: struct.Struct("<4x2H II8x"), 3: struct.Struct("<4x2H QQ8x")}
_AMD = re.compile(r"[a-z0-9]+-amdgcn-amd-amdhsa-[^-]*-(gfx[0-9a-z-]+)")
_FATBIN = struct.pack("<IHH", 0xBA55ED50, 1, 16)
_FATBIN_ENTRY = struct.Struct("<H2xIQ 12xI 8xQ")
_EXACT, _FAMILY = 0x100000, 0x200000
_KINDS = {1: "compute_", 2: "sm_"}
_PAGE = 4096
_LONGEST_ID = 160
_MOST = 1 << 16
_TABLE = 1 << 16
"""Bytes in which the table of a compressed bundle ends, surely."""


@dataclass(frozen=True)
class GpuCode:
    """What the containers of a library say."""

    targets: frozenset[str]
    containers: int
    unread: int = 0
    """Containers that this Python can't unpack: before 3.14 it knows no zstd."""


def read_gpu_code(path: Path) -> GpuCode | None:
    """The targets of a library; None where it has no section for GPU code.

    Raises:
        ValueError: the library or a container is damaged.
        OSError: it can't be read.
    """
    elf = read_elf(path)
    places = [] if elf is None else [row for row in elf.sections if row[0] in (".hip_fatbin", ".nv_fatbin")]
    if not places:
        return None
    targets: set[str] = set()
    containers = unread = 0
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for name, offset, size in places:
                read = _bundles if name == ".hip_fatbin" else _fatbins
                for found in read(data, offset, min(offset + size, len(data))):
                    containers += 1
                    unread += found is None
                    targets.update(found or ())
    except (struct.error, zlib.error) as error:
        raise ValueError(f"the GPU code of {path} is damaged: {error}") from None
    return GpuCode(frozenset(targets), containers, unread)


def _bundles(data: mmap.mmap, start: int, end: int) -> Iterator[set[str] | None]:
    """Targets of each bundle of a section; bundles begin at multiples of a page in it."""
    at = start
    while at < end:
        if data[at : at + len(_PLAIN)] == _PLAIN:
            targets, size = _table(data[at : min(at + _TABLE, end)])
            if at + size > end:
                raise ValueError(f"the bundle at offset {at} is longer than its section")
            yield targets
        elif data[at : at + len(_PACKED)] == _PACKED:
            targets_of_packed, size = _unpack(data, at, end)
            yield targets_of_packed
        else:
            size = 1
        at = start + -(-(at + size - start) // _PAGE) * _PAGE


def _table(data: bytes) -> tuple[set[str], int]:
    """Targets with code of a plain bundle, and its size."""
    (count,) = struct.unpack_from("<Q", data, len(_PLAIN))
    if not 0 < count <= _MOST:
        raise ValueError(f"a bundle claims to have {count} entries")
    targets, at = set(), len(_PLAIN) + 8
    size = at
    for _ in range(count):
        offset, length, letters = struct.unpack_from("<QQQ", data, at)
        at += 24
        if not 0 < letters <= _LONGEST_ID or at + letters > len(data):
            raise ValueError("a bundle's table is damaged")
        found = _AMD.match(data[at : at + letters].decode("latin-1"))
        if found and length:
            targets.add(found[1])
        at += letters
        size = max(size, at, offset + length)
    return targets, size


def _unpack(data: mmap.mmap, at: int, end: int) -> tuple[set[str] | None, int]:
    """Targets of a compressed bundle (None where this Python can't tell), and its size."""
    version, method = struct.unpack_from("<4x2H", data, at)
    head = _PACKED_HEADS.get(version)
    if head is None:
        raise ValueError(f"the bundle at offset {at} has unsupported version {version}")
    size = head.unpack_from(data, at)[2] if version > 1 else end - at
    if method:
        try:
            zstd = importlib.import_module("compression.zstd")
        except ImportError:
            return None, size
        plain = zstd.ZstdDecompressor().decompress(data[at + head.size : at + size], _TABLE)
    else:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(data[at + head.size : at + size], _TABLE)
    if not plain.startswith(_PLAIN):
        raise ValueError(f"the compressed bundle at offset {at} does not contain a bundle")
    return _table(plain)[0], size


def _fatbins(data: mmap.mmap, start: int, end: int) -> Iterator[set[str]]:
    """Targets of each of NVIDIA's fat binaries of a section; they begin at multiples of 8."""
    at = start
    while at < end:
        if data[at : at + len(_FATBIN)] != _FATBIN:
            at += 8
            continue
        (size,) = struct.unpack_from("<Q", data, at + 8)
        at, stop, targets = at + 16, at + 16 + size, set()
        if stop > end:
            raise ValueError(f"the fat binary at offset {at - 16} is longer than its section")
        while at < stop:
            kind, head, payload, number, flags = _FATBIN_ENTRY.unpack_from(data, at)
            if head < _FATBIN_ENTRY.size:
                raise ValueError(f"invalid fat binary entry at offset {at}")
            if kind in _KINDS:
                targets.add(f"{_KINDS[kind]}{number}{'a' if flags & _EXACT else 'f' if flags & _FAMILY else ''}")
            at += head + payload
        yield targets
        at = start + -(-(at - start) // 8) * 8
