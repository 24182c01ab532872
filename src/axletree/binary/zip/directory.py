"""A strict reader of ZIP archives (PKWARE APPNOTE 6.3) in a buffer, as wheels need them.

It trusts the central directory only as far as the local headers agree with it, and refuses whatever two readers could
understand differently: data before or after the archive, two members of one name, members that overlap, names that
leave the folder, symbolic links, encryption, unknown methods, sizes that are not true.
"""

from __future__ import annotations

import stat
import struct
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import msgspec

from axletree.binary.mapped import forget
from axletree.core.errors import IntegrityError, Problem, damaged_archive, refused_archive
from axletree.core.trees import all_safe_paths, is_safe_path, paths_above_others

if TYPE_CHECKING:
    from collections.abc import Iterator

STORED, DEFLATED = 0, 8
MAX_TOTAL = 64 << 30
"""Most bytes that the members of an archive may have together."""
MAX_RATIO = 1100
"""Deflate can't expand more than 1032 times; what claims more lies."""

_EOCD = struct.Struct("<4s4H2LH")
_EOCD64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4x2HHH4x3L4H2x2L")  # without times and internal attributes
_LOCAL = struct.Struct("<4s2xHH4x3L2H")
_MAX_PATH, _MAX_DEPTH = 4096, 128
"""Bytes and parts of a path beyond which no system unpacks it, and who lists its folders needs memory without bound."""
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_ENCRYPTED, _DESCRIPTOR, _PATCH, _STRONG, _UTF8, _MASKED = 1, 8, 32, 64, 0x800, 0x2000
_TROUBLE = _ENCRYPTED | _STRONG | _MASKED | _PATCH
_METHODS = frozenset({STORED, DEFLATED})
_UNIX = 3
_VERSION = 63
"""6.3, the last version of the format that a reader may be asked for."""
_TYPE = 0o170000
_FORGET_EVERY = 1024


class ZipEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One member of an archive."""

    name: str
    """Path inside the archive; folders end with ``/``."""
    method: int
    """``STORED`` or ``DEFLATED``."""
    crc: int
    compressed: int
    """Bytes in the archive."""
    size: int
    """Bytes once inflated, as declared; reading checks it."""
    offset: int
    """Where its local header begins."""
    data: int
    """Where its content begins."""
    mode: int
    """Unix mode with the file type, 0 where the archive does not say."""

    @property
    def directory(self) -> bool:
        """Whether it is a folder."""
        return self.name.endswith("/")

    @property
    def executable(self) -> bool:
        """Whether its owner may execute it."""
        return bool(self.mode & stat.S_IXUSR)


class _End(NamedTuple):
    """What the end of the archive says of the central directory."""

    entries: int
    size: int
    offset: int
    end: int
    """Where the directory must end: the first byte of the end record."""


def damaged(archive: str, message: str, *, member: str | None = None) -> IntegrityError:
    """An error that names the archive and, where it is one member's, the member."""
    return IntegrityError(damaged_archive(archive, message, key=member))


def refused(archive: str, message: str, *, member: str | None = None) -> IntegrityError:
    """As :func:`damaged`, where the archive may be sound, but has what is not accepted."""
    return IntegrityError(refused_archive(archive, message, key=member))


def read_directory(buffer: bytes | memoryview, *, archive: str = "archive") -> tuple[ZipEntry, ...]:
    """All members in the order of the central directory.

    Args:
        buffer: the whole archive.
        archive: what errors call it.

    Raises:
        IntegrityError: the archive is damaged, ambiguous or unsafe; names every bad member.
    """
    view = memoryview(buffer).cast("B")
    end = _read_end(view, archive)
    entries = tuple(_entries(view, end, archive))
    problems = [*_unsafe(entries, archive), *_clashes(entries, archive)]
    if not problems:
        problems = list(_overlaps(entries, end.offset, archive))
    if sum(entry.size for entry in entries) > MAX_TOTAL:
        problems.append(refused_archive(archive, f"the members declare more than {MAX_TOTAL >> 30} GiB in total"))
    if problems:
        raise IntegrityError(*problems)
    return entries


def _read_end(view: memoryview, archive: str) -> _End:
    """Find the end record; it must be the last thing of the file (with its comment)."""
    tail = bytes(view[-(_EOCD.size + _MAX_16) :])
    at = len(tail)
    while True:
        at = tail.rfind(b"PK\x05\x06", 0, at)
        if at < 0:
            raise damaged(
                archive, "the file is truncated or not a ZIP archive: there is no end-of-central-directory record"
            )
        if at + _EOCD.size <= len(tail) and at + _EOCD.size + _EOCD.unpack_from(tail, at)[7] == len(tail):
            break
    place = len(view) - len(tail) + at
    _, disk, start_disk, here, entries, size, offset, _ = _EOCD.unpack_from(tail, at)
    end = _End(entries, size, offset, place)
    if bytes(view[max(0, place - _LOCATOR64.size) : place])[:4] == b"PK\x06\x07":
        end = _read_end64(view, place - _LOCATOR64.size, archive)
        pairs = ((entries, end.entries, _MAX_16), (size, end.size, _MAX_32), (offset, end.offset, _MAX_32))
        if any(small not in {true, marker} for small, true, marker in pairs):
            raise damaged(archive, "the ZIP and ZIP64 end-of-central-directory records contradict each other")
    elif disk or start_disk or here != entries:
        raise refused(archive, "the file is one part of a split ZIP archive")
    if end.offset + end.size != end.end:
        raise damaged(archive, "the central directory is not directly before the end-of-central-directory record")
    return end


def _read_end64(view: memoryview, locator: int, archive: str) -> _End:
    if locator < 0:
        raise damaged(archive, "the ZIP64 locator is truncated")
    _, disk, place, disks = _LOCATOR64.unpack_from(view, locator)
    if disk or disks > 1 or place + _EOCD64.size > locator or bytes(view[place : place + 4]) != b"PK\x06\x06":
        raise damaged(archive, "the ZIP64 end-of-central-directory record is not at the offset that the locator gives")
    _, length, _, _, disk, start_disk, here, entries, size, offset = _EOCD64.unpack_from(view, place)
    if place + 12 + length != locator or disk or start_disk or here != entries:
        raise damaged(archive, "the ZIP64 end-of-central-directory record is damaged")
    return _End(entries, size, offset, place)


def _entries(view: memoryview, end: _End, archive: str) -> Iterator[ZipEntry]:
    directory = bytes(view[end.offset : end.end])
    position = 0
    for number in range(end.entries):
        if number % _FORGET_EVERY == 0:
            forget(view)  # the local headers lie all over the archive
        if directory[position : position + 4] != b"PK\x01\x02" or position + _CENTRAL.size > len(directory):
            raise damaged(
                archive, f"the central directory has fewer than the {end.entries} members that the archive declares"
            )
        entry, position = _read_entry(view, directory, position, archive)
        yield entry
    if position != len(directory):
        raise damaged(
            archive, f"the central directory has more than the {end.entries} members that the archive declares"
        )


def _read_entry(view: memoryview, directory: bytes, position: int, archive: str) -> tuple[ZipEntry, int]:
    made_by, version, flags, method, crc, compressed, size, n_name, n_extra, n_comment, disk, attributes, offset = (
        _CENTRAL.unpack_from(directory, position)
    )
    start = position + _CENTRAL.size
    after = start + n_name + n_extra + n_comment
    if after > len(directory):
        raise damaged(archive, "the central directory is truncated")
    raw = directory[start : start + n_name]
    name = _decode(raw, flags, archive)
    if _MAX_32 in (size, compressed, offset):
        extra = directory[start + n_name : start + n_name + n_extra]
        size, compressed, offset = _zip64(extra, [size, compressed, offset], archive, name)
    if flags & _TROUBLE or disk or method not in _METHODS or version & 0xFF > _VERSION:
        _refuse(flags, method, disk, archive, name)
    if method == STORED and size != compressed:
        raise damaged(
            archive,
            f"the member is stored uncompressed, but declares two different sizes, {size} and {compressed} bytes",
            member=name,
        )
    if size > compressed * MAX_RATIO + 1024:
        raise damaged(
            archive,
            f"the member declares that {compressed} bytes inflate to {size}, which is more than deflate can produce",
            member=name,
        )
    entry = ZipEntry(
        name=name,
        method=method,
        crc=crc,
        compressed=compressed,
        size=size,
        offset=offset,
        data=_data_offset(view, offset, raw, (flags, method, crc, compressed, size), archive),
        mode=attributes >> 16 if made_by >> 8 == _UNIX else 0,
    )
    return entry, after


def _decode(raw: bytes, flags: int, archive: str) -> str:
    if raw.isascii():
        return raw.decode("ascii")
    try:
        return raw.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError as error:
        raise damaged(archive, f"the name of a member is not UTF-8: {raw[:80]!r}") from error


def _refuse(flags: int, method: int, disk: int, archive: str, name: str) -> NoReturn:
    if flags & (_ENCRYPTED | _STRONG | _MASKED):
        raise refused(archive, "the member is encrypted, which wheels do not allow", member=name)
    if flags & _PATCH or disk:
        raise refused(archive, "the member is patch data or part of a split archive", member=name)
    if method in _METHODS:
        raise refused(archive, "the member requires a ZIP format version that does not exist", member=name)
    raise refused(
        archive,
        f"the member uses compression method {method}, but wheels support only stored and deflated members",
        member=name,
    )


def _zip64(extra: bytes, values: list[int], archive: str, name: str) -> list[int]:
    """Replace each value that overflowed (size, compressed size, offset) by its ZIP64 one, in that order."""
    if _MAX_32 not in values:
        return values
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        if kind == 1:
            field = extra[position + 4 : position + 4 + length]
            for index, value in enumerate(values):
                if value == _MAX_32:
                    if len(field) < 8:
                        break
                    values[index] = int.from_bytes(field[:8], "little")
                    field = field[8:]
            else:
                return values
            break
        position += 4 + length
    raise damaged(archive, "the member declares ZIP64 sizes, but lacks them", member=name)


def _data_offset(
    view: memoryview, offset: int, raw: bytes, central: tuple[int, int, int, int, int], archive: str
) -> int:
    """Where the content begins, from the local header, which must say the same as the central directory."""
    if offset + _LOCAL.size <= len(view):
        magic, flags, method, crc, compressed, size, n_name, n_extra = _LOCAL.unpack_from(view, offset)
        start = offset + _LOCAL.size
        after = int(start + n_name + n_extra)
        if (
            magic == b"PK\x03\x04"
            and (flags, method, crc, compressed, size) == central
            and view[start : start + n_name] == raw
            and after + compressed <= len(view)
            and not flags & _DESCRIPTOR
        ):
            return after
    return _other_data_offset(view, offset, raw, central, archive)


def _other_data_offset(
    view: memoryview, offset: int, raw: bytes, central: tuple[int, int, int, int, int], archive: str
) -> int:
    """As above, for headers that do not say the same word for word."""
    name = raw.decode("utf-8", "backslashreplace")
    if offset + _LOCAL.size > len(view) or bytes(view[offset : offset + 4]) != b"PK\x03\x04":
        raise damaged(archive, "the member's local header is missing", member=name)
    _, flags, method, crc, compressed, size, n_name, n_extra = _LOCAL.unpack_from(view, offset)
    start = offset + _LOCAL.size
    after = start + n_name + n_extra
    if after + central[3] > len(view):
        raise damaged(archive, "the member's content extends past the end of the archive", member=name)
    if bytes(view[start : start + n_name]) != raw or (flags ^ central[0]) & ~_UTF8 or method != central[1]:
        raise damaged(archive, "the member's local header and the central directory contradict each other", member=name)
    if not flags & _DESCRIPTOR:
        size, compressed = _zip64(bytes(view[start + n_name : after]), [size, compressed], archive, name)
        if (crc, compressed, size) != central[2:]:
            raise damaged(
                archive, "the member's local header and the central directory declare different sizes", member=name
            )
    return int(after)


def _plainly_safe(entries: tuple[ZipEntry, ...]) -> bool:
    """Whether all is well with all members, by a few searches; where it is not, each is looked at by itself."""
    if not all_safe_paths([entry.name.removesuffix("/") for entry in entries]):
        return False
    return not any(
        (len(entry.name) > _MAX_DEPTH and _too_long(entry.name))
        or entry.name[1:2] == ":"
        or entry.mode & _TYPE == stat.S_IFLNK
        or (entry.size and entry.directory)
        for entry in entries
    )


def _too_long(name: str) -> bool:
    return len(name.encode(errors="replace")) > _MAX_PATH or name.count("/") >= _MAX_DEPTH


def _unsafe(entries: tuple[ZipEntry, ...], archive: str) -> Iterator[Problem]:
    if _plainly_safe(entries):
        return
    for entry in entries:
        name = entry.name.removesuffix("/")
        if not is_safe_path(name) or name[1:2] == ":":
            message = "the path is not valid or leads outside the folder"
            yield refused_archive(archive, message, key=repr(entry.name)[1:-1])
        elif _too_long(name):
            message = f"the path has more than {_MAX_PATH} bytes or {_MAX_DEPTH} parts"
            yield refused_archive(archive, message, key=f"{name[:100]}...")
        elif stat.S_ISLNK(entry.mode):
            message = "the member is a symbolic link, which wheels cannot contain"
            yield refused_archive(archive, message, key=entry.name)
        elif entry.directory and entry.size:
            yield damaged_archive(archive, "the member is a folder, but has content", key=entry.name)


def _clashes(entries: tuple[ZipEntry, ...], archive: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for entry in entries:
        name = entry.name.removesuffix("/")
        if name in seen:
            yield damaged_archive(archive, "the member occurs twice", key=name)
        seen.add(name)
    files = {entry.name for entry in entries if not entry.directory}
    for name in paths_above_others(seen):
        if name in files:
            yield damaged_archive(archive, "the path is both a file and a folder", key=name)


def _overlaps(entries: tuple[ZipEntry, ...], directory: int, archive: str) -> Iterator[Problem]:
    ordered = sorted(entries, key=lambda entry: entry.offset)
    if ordered and ordered[0].offset != 0:
        yield damaged_archive(archive, "it has data before its first member")
    for entry, follows in zip(ordered, [*(e.offset for e in ordered[1:]), directory], strict=False):
        if entry.data + entry.compressed > follows:
            yield damaged_archive(archive, "the member overlaps the next one in the archive", key=entry.name)
