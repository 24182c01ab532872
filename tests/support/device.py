"""Small fat binaries and offload bundles, built byte by byte."""

from __future__ import annotations

import struct
import zlib

import zstandard

FLAG_A, FLAG_F, FLAG_ZSTD, FLAG_LZ4 = 0x100000, 0x200000, 0x8000, 0x2000
_KINDS = {"compute": 1, "sm": 2, "lto": 8}


def fat_entry(arch: str, size: int = 64, *, flags: int = 0x11, header: int = 64, fill: int = 1) -> bytes:
    """An entry such as ``sm_90a`` or ``compute_120``, with a payload of ``size`` bytes."""
    kind, _, number = arch.partition("_")
    flags |= {"a": FLAG_A, "f": FLAG_F}.get(number[-1], 0)
    payload = bytes([fill]) * size
    payload += bytes(-size % 8)
    packed = flags & (FLAG_ZSTD | FLAG_LZ4)
    fields = (_KINDS[kind], 0x101, header, len(payload), size if packed else 0, 0, 8, 1, int(number.rstrip("af")), 0, 0)
    head = struct.pack("<HHIQIIHHIIIQQQ", *fields, flags, 0, size * 3 if packed else 0)
    return head + bytes(header - len(head)) + payload


def fat_container(*entries: bytes) -> bytes:
    """A container of entries."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def bundle(targets: dict[str, bytes], *, align: int = 4096, host: bool = True) -> bytes:
    """A plain offload bundle: id -> code object."""
    entries = {"host-x86_64-unknown-linux-gnu-": b"", **targets} if host else targets
    position = 32 + sum(24 + len(name) for name in entries)
    head, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
    start = position
    for name, code in entries.items():
        if code:
            body += bytes(-(start + len(body)) % align)
        head += struct.pack("<QQQ", start + len(body), len(code), len(name)) + name.encode()
        body += code
    return head + body


def packed_bundle(plain: bytes, *, version: int = 2, method: int = 1) -> bytes:
    """The same, compressed."""
    stream = zstandard.compress(plain) if method else zlib.compress(plain)
    head = struct.pack("<4sHH", b"CCOB", version, method)
    total = len(stream) + {1: 20, 2: 24, 3: 32}[version]
    sizes = {1: ("I", len(plain)), 2: ("II", total, len(plain)), 3: ("QQ", total, len(plain))}[version]
    return head + struct.pack(f"<{sizes[0]}Q", *sizes[1:], 0x1234) + stream
