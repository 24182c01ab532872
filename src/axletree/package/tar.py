"""Headers of tar archives, as POSIX has them (ustar, with pax records where ustar can't say it).

What every reader agrees on: names that fit stand in the ustar header alone; longer or non-ASCII ones in a pax record as
well (UTF-8 by definition). A size over 8 GiB stands in the header itself, as GNU tar and star write it, and never in a
pax record: readers exist that overlook such a record and then take content for headers.
"""

from __future__ import annotations

import struct

from zlib_ng import zlib_ng

BLOCK = 512
END = bytes(2 * BLOCK)
"""What closes an archive."""

_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s32s32s8s8s155s12x")
_MAX_OCTAL = 8**11
FILE, HARD_LINK, LINK, FOLDER, PAX, PAX_GLOBAL = b"0", b"1", b"2", b"5", b"x", b"g"


def tar_header(
    path: str,
    *,
    size: int,
    executable: bool,
    mtime: int,
    link: str | None = None,
    folder: bool = False,
    hard: bool = False,
    mode: int | None = None,
) -> bytes:
    """All blocks that stand before the content of a file or link.

    Args:
        path: its name in the archive.
        size: bytes of the content; 0 for links.
        executable: whether it gets mode 755 rather than 644; links have 777.
        mtime: seconds since 1970.
        link: target of a link.
        folder: whether it is one; ``path`` then ends with a slash.
        hard: whether the link is a hard one, to the file of that name.
        mode: its permissions, where these are not the ones that follow from the rest.
    """
    name, target = path.encode(), (link or "").encode()
    split = _split(name)
    records = b""
    if split is None:
        records += _record("path", name)
        split = b"", name[:100]
    if len(target) > 100 or not target.isascii():
        records += _record("linkpath", target)
        target = target[:100]
    kind = (HARD_LINK if hard else LINK) if link is not None else FOLDER if folder else FILE
    if mode is None:
        mode = 0o777 if link is not None else 0o755 if executable or folder else 0o644
    header = _block(split, mode, size, mtime, kind, target)
    if not records:
        return header
    extended = _block((b"", b"PaxHeaders/" + split[1][:80]), 0o644, len(records), mtime, PAX, b"")
    return extended + records + padding(len(records)) + header


def header_size(path: str, *, link: str | None = None) -> int:
    """Bytes of :func:`tar_header`, whatever else it is given."""
    if path.isascii() and len(path) <= 100 and link is None:
        return BLOCK
    return len(tar_header(path, size=0, executable=False, mtime=0, link=link))


def padding(size: int) -> bytes:
    """The zeros after content of so many bytes."""
    return bytes(-size % BLOCK)


def whole_blocks(size: int) -> int:
    """Bytes that content of so many takes with its padding."""
    return size + -size % BLOCK


def byte_sum(block: bytes) -> int:
    """The sum of the 512 bytes of a header. Adler-32 has it in its lower half, where that is below 65,521."""
    half = BLOCK // 2
    return (zlib_ng.adler32(block[:half], 0) & 0xFFFF) + (zlib_ng.adler32(block[half:], 0) & 0xFFFF)


def _split(name: bytes) -> tuple[bytes, bytes] | None:
    """(prefix, name) for the two fields of a header; ``None`` where they can't hold the name."""
    if not name.isascii():
        return None
    if len(name) <= 100:
        return b"", name
    at = name.find(b"/", len(name) - 101)
    return None if at <= 0 or at > 155 or at == len(name) - 1 else (name[:at], name[at + 1 :])


def _record(key: str, value: bytes) -> bytes:
    """A pax record: its own length in decimal, key and value."""
    rest = b" " + key.encode() + b"=" + value + b"\n"
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return str(length).encode() + rest


def _block(split: tuple[bytes, bytes], mode: int, size: int, mtime: int, kind: bytes, target: bytes) -> bytes:
    prefix, name = split
    fields = [
        name,
        b"%07o\0" % mode,
        b"%07o\0" % 0,
        b"%07o\0" % 0,
        b"%011o\0" % size if size < _MAX_OCTAL else b"\x80" + size.to_bytes(11),
        b"%011o\0" % max(0, mtime),
        b" " * 8,
        kind,
        target,
        b"ustar\00000",
        *(b"", b"", b"%07o\0" % 0, b"%07o\0" % 0),
        prefix,
    ]
    block = _HEADER.pack(*fields)
    return block[:148] + b"%06o\0 " % byte_sum(block) + block[156:]
