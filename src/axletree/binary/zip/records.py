"""The records of a ZIP archive as bytes (PKWARE APPNOTE 6.3), with ZIP64 ones where sizes or counts need them."""

from __future__ import annotations

import datetime as dt
import stat
import struct

import msgspec

EARLIEST = 315532800
"""1980-01-01, the first date that an archive can hold; what members get where nothing else is said."""

_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_UNIX, _VERSION, _VERSION_64, _UTF8 = 3, 20, 45, 0x800
_LATEST = 4354819199  # 2107-12-31
_SLACK = 1 << 20
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_PLAIN = (stat.S_IFREG | 0o644) << 16
_EXECUTABLE = (stat.S_IFREG | 0o755) << 16


class Written(msgspec.Struct, kw_only=True):
    """A member that is being written: what its headers must say."""

    path: str
    method: int
    executable: bool
    offset: int
    size: int
    crc: int = 0
    compressed: int = 0
    bound: int = 0
    """Bytes that it may have at most, where its size is known only at the end."""

    @property
    def large(self) -> bool:
        """Whether its local header has ZIP64 sizes; decided by the size or bound alone, before it is compressed."""
        size = max(self.size, self.bound)
        return size + (size >> 10) + _SLACK > _MAX_32


def dos_time(epoch: int) -> tuple[int, int]:
    """(time, date) of a ZIP header for seconds since 1970, in UTC, moved into the years 1980 to 2107."""
    moment = dt.datetime.fromtimestamp(min(max(epoch, EARLIEST), _LATEST), tz=dt.UTC)
    return (
        moment.hour << 11 | moment.minute << 5 | moment.second // 2,
        moment.year - 1980 << 9 | moment.month << 5 | moment.day,
    )


def local_header(member: Written, stamp: tuple[int, int]) -> bytes:
    """The header before the content; its length does not depend on what is filled in later."""
    name = member.path.encode()
    flags = 0 if name.isascii() else _UTF8
    size, compressed = member.size, member.compressed
    if not member.large:
        values = (_VERSION, flags, member.method, *stamp, member.crc, compressed, size, len(name), 0)
        return _LOCAL.pack(b"PK\x03\x04", *values) + name
    values = (_VERSION_64, flags, member.method, *stamp, member.crc, _MAX_32, _MAX_32, len(name), 20)
    return _LOCAL.pack(b"PK\x03\x04", *values) + name + struct.pack("<2H2Q", 1, 16, size, compressed)


def central_header(member: Written, stamp: tuple[int, int]) -> bytes:
    """The entry of the central directory."""
    name = member.path.encode()
    flags = 0 if name.isascii() else _UTF8
    size, compressed, offset = member.size, member.compressed, member.offset
    wide = [value for value in (size, compressed, offset) if value >= _MAX_32]
    extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    version = _VERSION_64 if wide or member.large else _VERSION
    if wide:
        size, compressed, offset = (min(value, _MAX_32) for value in (size, compressed, offset))
    values = (_UNIX << 8 | version, version, flags, member.method, *stamp, member.crc, compressed, size)
    mode = _EXECUTABLE if member.executable else _PLAIN
    return _CENTRAL.pack(b"PK\x01\x02", *values, len(name), len(extra), 0, 0, 0, mode, offset) + name + extra


def both_headers(member: Written, stamp: tuple[int, int]) -> tuple[bytes, bytes]:
    """(local, central) header of a member of which all is known."""
    name = member.path.encode()
    size, compressed, offset, length = member.size, member.compressed, member.offset, len(name)
    if member.large or max(compressed, offset) >= _MAX_32:
        return local_header(member, stamp), central_header(member, stamp)
    flags = 0 if name.isascii() else _UTF8
    common = (_VERSION, flags, member.method, *stamp, member.crc, compressed, size, length, 0)
    mode = _EXECUTABLE if member.executable else _PLAIN
    return (
        _LOCAL.pack(b"PK\x03\x04", *common) + name,
        _CENTRAL.pack(b"PK\x01\x02", _UNIX << 8 | _VERSION, *common, 0, 0, 0, mode, offset) + name,
    )


def end_records(*, entries: int, size: int, offset: int) -> bytes:
    """What closes an archive, for a central directory of so many entries and bytes at an offset."""
    end = struct.pack(
        "<4s4H2LH",
        b"PK\x05\x06",
        0,
        0,
        min(entries, _MAX_16),
        min(entries, _MAX_16),
        min(size, _MAX_32),
        min(offset, _MAX_32),
        0,
    )
    if entries < _MAX_16 and size < _MAX_32 and offset < _MAX_32:
        return end
    wide = struct.pack(
        "<4sQ2H2L4Q",
        b"PK\x06\x06",
        44,
        _UNIX << 8 | _VERSION_64,
        _VERSION_64,
        0,
        0,
        entries,
        entries,
        size,
        offset,
    )
    return wide + struct.pack("<4sLQL", b"PK\x06\x07", 0, offset + size, 1) + end
