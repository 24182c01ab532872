"""The records of a ZIP archive as bytes (PKWARE APPNOTE 6.3), with ZIP64 ones where sizes or counts need them."""

from __future__ import annotations

import datetime as dt
import stat
import struct

import msgspec

_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_UNIX, _VERSION, _VERSION_64, _UTF8 = 3, 20, 45, 0x800
_FIRST, _LAST = 315532800, 4354819199  # 1980-01-01 to 2107-12-31, all that the format can say
_SLACK = 1 << 20


class Written(msgspec.Struct, kw_only=True):
    """A member that is being written: what its headers must say."""

    path: str
    method: int
    executable: bool
    offset: int
    size: int
    crc: int = 0
    compressed: int = 0

    @property
    def large(self) -> bool:
        """Whether its local header has ZIP64 sizes; decided by the size alone, before it is compressed."""
        return self.size + (self.size >> 10) + _SLACK > _MAX_32


def dos_time(epoch: int) -> tuple[int, int]:
    """(time, date) of a ZIP header for seconds since 1970, in UTC, moved into the years 1980 to 2107."""
    moment = dt.datetime.fromtimestamp(min(max(epoch, _FIRST), _LAST), tz=dt.UTC)
    return (
        moment.hour << 11 | moment.minute << 5 | moment.second // 2,
        moment.year - 1980 << 9 | moment.month << 5 | moment.day,
    )


def local_header(member: Written, stamp: tuple[int, int]) -> bytes:
    """The header before the content; its length does not depend on what is filled in later."""
    name = member.path.encode()
    extra = struct.pack("<2H2Q", 1, 16, member.size, member.compressed) if member.large else b""
    return (
        struct.pack(
            "<4s5H3L2H",
            b"PK\x03\x04",
            _VERSION_64 if member.large else _VERSION,
            _flags(name),
            member.method,
            *stamp,
            member.crc,
            _MAX_32 if member.large else member.compressed,
            _MAX_32 if member.large else member.size,
            len(name),
            len(extra),
        )
        + name
        + extra
    )


def central_header(member: Written, stamp: tuple[int, int]) -> bytes:
    """The entry of the central directory."""
    name = member.path.encode()
    wide = [value for value in (member.size, member.compressed, member.offset) if value >= _MAX_32]
    extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    version = _VERSION_64 if wide or member.large else _VERSION
    mode = stat.S_IFREG | (0o755 if member.executable else 0o644)
    return (
        struct.pack(
            "<4s6H3L5H2L",
            b"PK\x01\x02",
            _UNIX << 8 | version,
            version,
            _flags(name),
            member.method,
            *stamp,
            member.crc,
            min(member.compressed, _MAX_32),
            min(member.size, _MAX_32),
            len(name),
            len(extra),
            0,
            0,
            0,
            mode << 16,
            min(member.offset, _MAX_32),
        )
        + name
        + extra
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


def _flags(name: bytes) -> int:
    return 0 if name.isascii() else _UTF8
