"""gzip without compression, so that no version of a compressor decides about the bytes (RFC 1951, 1952)."""

from __future__ import annotations

import struct
from zlib import crc32

_BLOCK = 0xFFFF
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
"""Deflate, no date, no name, no system."""


def gzip_stored(data: bytes) -> bytes:
    """A gzip file of some content."""
    parts = [_HEAD]
    for start in range(0, max(1, len(data)), _BLOCK):
        block = data[start : start + _BLOCK]
        last = start + _BLOCK >= len(data)
        parts += [struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF), block]
    return b"".join([*parts, struct.pack("<II", crc32(data), len(data) & 0xFFFFFFFF)])
