"""Archives that somebody made to harm whoever opens them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from support.wheels import wheel_bytes

NAME = "demo-1.0-py3-none-any.whl"
MEMBER = "demo/evil.txt"
"""The member that is at fault, where it is one."""

GOOD = {"demo/__init__.py": b"x = 1\n", "demo/good.txt": b"good", MEMBER: b"harmless " * 100}


def hostile_wheels() -> dict[str, tuple[bytes, str]]:
    """Kind -> archive, and what a refusal must name."""
    good = wheel_bytes(GOOD)
    return {
        "absolute name": (renamed(good, "/tmp/evil.tx"), "/tmp/evil.tx"),
        "name that climbs out": (renamed(good, "../../ev.txt"), "../../ev.txt"),
        "backslashes": (renamed(good, "..\\..\\e.txt"), "e.txt"),
        "drive letter": (renamed(good, "C:evil/e.txt"), "C:evil"),
        "NUL in a name": (renamed(good, "demo/ev\0.txt"), "demo/ev"),
        "symbolic link out": (linked(good), MEMBER),
        "one name twice": (renamed(good, "demo/good.txt"), "demo/good.txt"),
        "bomb": (patched(good, size=1 << 34), MEMBER),
        "size too small": (patched(good, size=100), MEMBER),
        "size too large": (patched(good, size=901), MEMBER),
        "wrong CRC": (patched(good, crc=1), MEMBER),
        "two headers that differ": (patched(good, size=899, local=False), MEMBER),
        "members that overlap": overlapping(),
        "cut off": (good[: len(good) // 2], NAME),
        "junk before": (b"#!/bin/sh\nrm -rf x\n" + good, NAME),
        "junk after": (good + b"more", NAME),
        "more members than there are": (counted(good, 60_000), "60000"),
        "past the end of the file": (patched(good, offset=1 << 30), MEMBER),
        "encrypted": (patched(good, flags=1), MEMBER),
        "unknown method": (patched(good, method=99), MEMBER),
    }


def renamed(data: bytes, name: str) -> bytes:
    """The member under another name, filled up to the same length."""
    assert len(name.encode()) <= len(MEMBER), name
    return data.replace(MEMBER.encode(), name.encode().ljust(len(MEMBER), b"x"))


def central(data: bytes) -> int:
    """Where the member's entry of the central directory begins."""
    return data.rindex(b"PK\x01\x02", 0, data.rindex(MEMBER.encode(), 0, data.rindex(b"PK\x05\x06")))


def local(data: bytes) -> int:
    """Where its local header begins."""
    return data.rindex(b"PK\x03\x04", 0, data.index(MEMBER.encode()))


def patched(
    data: bytes,
    *,
    size: int | None = None,
    crc: int | None = None,
    offset: int | None = None,
    flags: int | None = None,
    method: int | None = None,
    local: bool = True,
) -> bytes:
    """The archive with fields of the member's headers overwritten, in both places where both have them."""
    result = bytearray(data)
    places = [(central(data), 8, 10, 16, 24)]
    if local:
        places.append((globals()["local"](data), 6, 8, 14, 22))
    for start, at_flags, at_method, at_crc, at_size in places:
        for value, at, form in ((flags, at_flags, "<H"), (method, at_method, "<H"), (crc, at_crc, "<L")):
            if value is not None:
                struct.pack_into(form, result, start + at, value)
        if size is not None:
            struct.pack_into("<L", result, start + at_size, min(size, 0xFFFFFFFE))
    if offset is not None:
        struct.pack_into("<L", result, central(data) + 42, offset)
    return bytes(result)


def linked(data: bytes) -> bytes:
    """The member as a symbolic link (its content then would be the target)."""
    result = bytearray(data)
    struct.pack_into("<L", result, central(data) + 38, 0o120777 << 16)
    return bytes(result)


def counted(data: bytes, entries: int) -> bytes:
    """An end record that promises more members than the directory has."""
    result = bytearray(data)
    struct.pack_into("<2H", result, data.rindex(b"PK\x05\x06") + 8, entries, entries)
    return bytes(result)


def overlapping() -> tuple[bytes, str]:
    """A bomb without nesting: many entries of the directory share one stretch of compressed bytes."""
    payload = zlib.compress(bytes(1 << 20), 9)[2:-4]
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("demo/a.txt", bytes(1 << 20))
        archive.writestr("demo/b.txt", bytes(1 << 20))
    data = bytearray(sink.getvalue())
    assert len(payload) < 2000
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 1)
    inner = data.index(b"PK\x03\x04", 4)
    # The first member now claims to reach over the second one's header.
    for place, at in ((first, 20), (0, 18)):
        struct.pack_into("<L", data, place + at, inner + 40)
    assert second > first
    return bytes(data), "demo/a.txt"
