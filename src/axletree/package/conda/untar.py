"""A strict reader of tar archives that come in pieces: v7, ustar, pax and GNU headers, in bounded memory.

What two readers could understand differently is refused: wrong checksums, records that change a size, links that carry
content, anything after the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError, damaged_archive, refused_archive
from axletree.package.tar import BLOCK, byte_sum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_TOTAL = 64 << 30
"""Most bytes that an archive may unpack to."""
MAX_ENTRIES = 2_000_000
_MAX_RECORDS = 1 << 20
_MAX_PATH = 4096
"""Bytes of a path beyond which no system unpacks it."""
Kind = Literal["file", "hardlink", "link", "folder", "device", "pipe"]
_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hardlink",
    b"2": "link",
    b"5": "folder",
}
_SPECIAL: dict[bytes, Kind] = {b"3": "device", b"4": "device", b"6": "pipe"}
"""What systems have in ``/dev``, and packages nowhere."""


class TarEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What stands before a content."""

    path: str
    """As written, a ``/`` at the end of folders left out; not checked for safety."""
    kind: Kind
    size: int
    mode: int
    """Permissions with the bits for setuid, setgid and sticky, as :func:`stat.S_IMODE` gives them."""
    mtime: int
    target: str = ""
    """Where a link points, as written."""

    @property
    def executable(self) -> bool:
        """Whether its owner may run it."""
        return bool(self.mode & 0o100)


class _Pieces:
    """Bytes that come in pieces, handed out in the sizes that are wanted."""

    def __init__(self, chunks: Iterable[bytes], archive: str) -> None:
        self._chunks = iter(chunks)
        self._waiting = memoryview(b"")
        self._archive = archive
        self._total = 0

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        while not self._waiting:
            chunk = next(self._chunks, None)
            if chunk is None:
                return True
            self._total += len(chunk)
            if self._total > MAX_TOTAL:
                raise tar_refused(self._archive, f"it unpacks to more than {MAX_TOTAL >> 30} GiB")
            self._waiting = memoryview(chunk)
        return False

    def upto(self, size: int) -> memoryview:
        """Some bytes, at most ``size``; none at the end."""
        if self.at_end:
            return self._waiting
        found, self._waiting = self._waiting[:size], self._waiting[size:]
        return found

    def exactly(self, size: int) -> bytes:
        """So many bytes.

        Raises:
            IntegrityError: there are fewer.
        """
        parts: list[memoryview] = []
        while size:
            part = self.upto(size)
            if not part:
                raise tar_damaged(self._archive, "it is truncated")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def tar_damaged(archive: str, message: str, *, member: str | None = None) -> IntegrityError:
    """An error that names the archive and, where it is one member's, the member."""
    return IntegrityError(damaged_archive(archive, message, key=member and repr(member)[1:-1][:300]))


def tar_refused(archive: str, message: str, *, member: str | None = None) -> IntegrityError:
    """As :func:`tar_damaged`, where the archive may be sound, but has what is not accepted."""
    return IntegrityError(refused_archive(archive, message, key=member and repr(member)[1:-1][:300]))


def read_tar(
    chunks: Iterable[bytes], *, archive: str = "archive", layer: bool = False
) -> Iterator[tuple[TarEntry, Iterator[bytes | memoryview]]]:
    """Each entry with its content; what of a content was not read is passed over.

    Args:
        chunks: the uncompressed archive in pieces of any sizes.
        archive: what errors call it.
        layer: whether it is a layer of an image: devices and pipes are entries then, rather than errors, and the end
            marker may be missing. Some tools don't write it, and a digest tells whether all is there.

    Raises:
        IntegrityError: the archive is damaged, ambiguous or too large.
    """
    pieces = _Pieces(chunks, archive)
    kinds = _KINDS | _SPECIAL if layer else _KINDS
    override: dict[str, str] = {}
    count = 0
    while True:
        if layer and pieces.at_end:
            break
        header = pieces.exactly(BLOCK)
        if not any(header):
            break
        count += 1
        if count > MAX_ENTRIES:
            raise tar_refused(archive, f"it has more than {MAX_ENTRIES} entries")
        kind, size = header[156:157], _check_header(header, archive)
        if kind in {b"x", b"g", b"L", b"K"}:
            override |= _read_override(kind, size, pieces, archive)
            continue
        entry = _entry(header, kinds.get(kind), size, override, archive)
        override = {}
        content = _content(pieces, entry.size)
        yield entry, content
        for _ in content:
            pass
        if not (layer and pieces.at_end):
            pieces.exactly(-entry.size % BLOCK)
    if override:
        raise tar_damaged(archive, "it ends after a header that must be followed by another header")
    if not (layer and pieces.at_end):
        _check_end(pieces, archive)


def _check_end(pieces: _Pieces, archive: str) -> None:
    """A second empty block closes an archive; more of them may follow, nothing else."""
    if any(pieces.exactly(BLOCK)):
        raise tar_damaged(archive, "it has data after its end marker")
    while rest := pieces.upto(1 << 20):
        if any(rest):
            raise tar_damaged(archive, "it has data after its end marker")


def _content(pieces: _Pieces, size: int) -> Iterator[bytes | memoryview]:
    while size:
        part = pieces.upto(min(size, 1 << 20)) or pieces.exactly(1)
        size -= len(part)
        yield part


def _check_header(header: bytes, archive: str) -> int:
    """The size that a header declares, once its checksum was found true."""
    declared = _number(header[148:156], archive)
    if declared != byte_sum(header) - sum(header[148:156]) + 8 * 0x20:
        raise tar_damaged(archive, "it has a header with an incorrect checksum")
    return _number(header[124:136], archive)


def _number(field: bytes, archive: str) -> int:
    if field[0] == 0x80:
        return int.from_bytes(field[1:])
    text = field.strip(b" \0")
    if not text:
        return 0
    if not text.isdigit() or text.translate(None, b"01234567"):
        raise tar_damaged(archive, "it has a header with an invalid number")
    return int(text, 8)


def _entry(header: bytes, found: Kind | None, size: int, override: dict[str, str], archive: str) -> TarEntry:
    path = override["path"] if "path" in override else _name(header, archive)
    if len(path.encode()) > _MAX_PATH:
        raise tar_refused(archive, f"the entry has a path longer than {_MAX_PATH} bytes", member=path)
    if found is None:
        kind = header[156:157]
        raise tar_refused(archive, f"the entry has type {kind!r}, which packages cannot contain", member=path)
    if found == "file" and path.endswith("/"):
        found = "folder"  # as old writers say it
    if "size" in override and override["size"] != str(size):
        raise tar_damaged(archive, "the entry declares two different sizes", member=path)
    if found != "file" and size:
        raise tar_damaged(archive, "the entry is not a file, but declares content", member=path)
    return TarEntry(
        path=path.removesuffix("/") if found == "folder" else path,
        kind=found,
        size=size,
        mode=_number(header[100:108], archive) & 0o7777,
        mtime=_number(header[136:148], archive),
        target=_target(header, found, override, archive),
    )


def _target(header: bytes, kind: str, override: dict[str, str], archive: str) -> str:
    if kind not in {"link", "hardlink"}:
        return ""
    return override["linkpath"] if "linkpath" in override else _text(header[157:257], archive)


def _name(header: bytes, archive: str) -> str:
    """The name in a header itself; GNU's headers have other things where ustar's have the first part of it."""
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:265] == b"ustar\00000" else b""
    return _text(prefix + b"/" + name if prefix else name, archive)


def _read_override(kind: bytes, size: int, pieces: _Pieces, archive: str) -> dict[str, str]:
    """Fields of the next header that did not fit into it."""
    if size > _MAX_RECORDS:
        raise tar_refused(archive, f"it has an extended header of {size} bytes, which is too long")
    data = pieces.exactly(size)
    pieces.exactly(-size % BLOCK)
    if kind in {b"L", b"K"}:
        return {"path" if kind == b"L" else "linkpath": _text(data, archive)}
    records = _pax_records(data, archive)
    if kind == b"g":
        if records.keys() & {"path", "linkpath", "size"}:
            raise tar_refused(archive, "it has a global header that gives all files the same name or size")
        return {}
    if any(key.startswith("GNU.sparse") for key in records):
        raise tar_refused(archive, "it contains a sparse file, which packages cannot contain")
    return {key: value for key, value in records.items() if key in {"path", "linkpath", "size"}}


def _pax_records(data: bytes, archive: str) -> dict[str, str]:
    records: dict[str, str] = {}
    position = 0
    while position < len(data):
        space = data.find(b" ", position, position + 12)
        digits = data[position:space] if space > 0 else b""
        end = position + int(digits) if digits.isdigit() else 0
        record = data[space + 1 : end]
        if end <= space or end > len(data) or not record.endswith(b"\n") or b"=" not in record:
            raise tar_damaged(archive, "it has a damaged pax header")
        key, _, value = record[:-1].partition(b"=")
        if key in {b"path", b"linkpath"} and (not value or b"\0" in value):
            raise tar_damaged(archive, "it has an entry whose name is empty or contains a NUL")
        records[_text(key, archive)] = _text(value, archive) if key in {b"path", b"linkpath", b"size"} else ""
        position = end
    return records


def _text(field: bytes, archive: str) -> str:
    raw = field.partition(b"\0")[0]
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise tar_damaged(archive, f"it has an entry whose name is not UTF-8: {raw[:80]!r}") from error
