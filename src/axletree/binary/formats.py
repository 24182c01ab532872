"""Kinds of machine code by the first bytes of a file."""

from __future__ import annotations

from typing import Literal

CodeFormat = Literal["", "elf", "mach-o", "pe"]

HEAD = 4096
"""Bytes that suffice to tell."""

_THIN = (b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe")
_FAT = (b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf")
MAGICS = (b"\x7fELF", b"MZ", *_THIN, *_FAT)
"""What all machine code begins with, and some other files do."""
_MAX_FAT = 44
"""Most architectures of a universal file. Java classes begin with the same magic; 45 is the version of the oldest."""


def code_format(head: bytes) -> CodeFormat:
    """The kind of machine code that a file begins as; empty for anything else.

    Args:
        head: its first :data:`HEAD` bytes, or all where there are fewer.
    """
    magic = head[:4]
    if magic == b"\x7fELF":
        return "elf"
    if magic in _THIN or (magic in _FAT and 0 < int.from_bytes(head[4:8], "big") <= _MAX_FAT):
        return "mach-o"
    if magic[:2] == b"MZ" and len(head) >= 64:
        place = int.from_bytes(head[0x3C:0x40], "little")
        if head[place : place + 4] == b"PE\0\0":
            return "pe"
    return ""
