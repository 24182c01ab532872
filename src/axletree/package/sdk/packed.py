"""Compressed tar archives and Debian packages, read from a buffer in pieces and in bounded memory."""

from __future__ import annotations

import bz2
import lzma
import re
from typing import TYPE_CHECKING, Protocol, cast

import msgspec
import zstandard
from isal import igzip_lib

from axletree.core.errors import IntegrityError, damaged_archive, refused_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

MAX_WINDOW = 1 << 27
"""Most memory that an archive may ask for unpacking it; ``zstd -19`` asks for a sixteenth, ``xz -9`` for half."""
_PIECE = 1 << 20
_AR_MAGIC = b"!<arch>\n"
_AR_HEADER = 60
_DEBIAN_BINARY = "debian-binary"
_DAMAGED = (
    *(zstandard.ZstdError, lzma.LZMAError, OSError, EOFError, ValueError),
    cast("type[Exception]", igzip_lib.IsalError),
)


class _Unpacker(Protocol):
    """What the standard library's and isal's incremental decompressors have in common."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""

    @property
    def needs_input(self) -> bool:
        """Whether it can give nothing more of what it was given."""

    @property
    def unused_data(self) -> bytes:
        """What followed the stream."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """The next bytes, at most so many."""


class DebMember(msgspec.Struct, frozen=True):
    """A member of a Debian package."""

    name: str
    data: memoryview


class DebControl(msgspec.Struct, frozen=True, kw_only=True):
    """What a Debian package says of itself."""

    package: str
    version: str = ""
    architecture: str = ""


def unpacked(data: memoryview, filename: str, *, archive: str) -> Generator[bytes, None, None]:
    """The bytes of a compressed file, in pieces of at most 1 MiB.

    Args:
        data: the file.
        filename: its suffix says how it is compressed: ``.zst``, ``.xz``, ``.gz``, ``.bz2``, else not at all.
        archive: what errors call it.

    Raises:
        IntegrityError: it is damaged, or wants more memory than :data:`MAX_WINDOW`.
    """
    suffix = filename.rpartition(".")[2]
    try:
        if suffix == "zst":
            yield from _unpack_zstd(data)
        elif suffix in _UNPACKERS:
            yield from _unpack(data, _UNPACKERS[suffix])
        else:
            yield from (bytes(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE))
    except _DAMAGED as error:
        raise IntegrityError(damaged_archive(archive, str(error))) from error


def read_deb(data: memoryview, *, archive: str) -> tuple[DebMember, DebMember]:
    """The control and the data archive of a Debian package, which is an ``ar`` archive (``deb(5)``).

    Raises:
        IntegrityError: it is none, or a later format than 2.
    """
    members = list(_read_ar(data, archive))
    if not members or members[0].name != _DEBIAN_BINARY or not bytes(members[0].data).startswith(b"2."):
        raise IntegrityError(refused_archive(archive, "the file is not a Debian package in format 2"))
    found: list[DebMember] = []
    for wanted in ("control.tar", "data.tar"):
        fitting = [member for member in members if member.name == wanted or member.name.startswith(f"{wanted}.")]
        if len(fitting) != 1:
            raise IntegrityError(
                damaged_archive(archive, f"it has {'no' if not fitting else 'more than one'} {wanted}")
            )
        found += fitting
    return found[0], found[1]


def parse_control(text: str, *, filename: str) -> DebControl:
    """The fields of a package's ``control`` file.

    Raises:
        IntegrityError: it names no package.
    """
    said = re.findall(r"^([A-Za-z-]+):(.*)$", text, re.MULTILINE)
    fields = {name: value.strip(" \t") for name, value in said}
    name = fields.get("Package", "")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", name):
        raise IntegrityError(damaged_archive(filename, "its control file does not name a package"))
    return DebControl(
        package=name, version=fields.get("Version", ""), architecture=fields.get("Architecture", "").strip()
    )


def _read_ar(data: memoryview, archive: str) -> Iterator[DebMember]:
    if bytes(data[: len(_AR_MAGIC)]) != _AR_MAGIC:
        message = "the file is not a Debian package, because it is not an ar archive"
        raise IntegrityError(damaged_archive(archive, message))
    at = len(_AR_MAGIC)
    while at < len(data):
        header = bytes(data[at : at + _AR_HEADER])
        size = header[48:58].strip()
        end = at + _AR_HEADER + (int(size) if size.isdigit() else 0)
        if len(header) < _AR_HEADER or header[58:] != b"`\n" or not size.isdigit() or end > len(data):
            raise IntegrityError(damaged_archive(archive, f"the file is damaged or truncated at byte {at}"))
        name = header[:16].decode("ascii", errors="replace").rstrip().removesuffix("/")
        yield DebMember(name, data[at + _AR_HEADER : end])
        at = end + end % 2


def _unpack_zstd(data: memoryview) -> Iterator[bytes]:
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(data, read_across_frames=True)
    while piece := reader.read(_PIECE):
        yield piece


def _unpack(data: memoryview, make: Callable[[], _Unpacker]) -> Iterator[bytes]:
    """One stream, or several, one behind the other, with zeros between them."""
    unpacker, at, rest = make(), 0, b""
    while True:
        if unpacker.eof:
            rest = unpacker.unused_data.lstrip(b"\0")
            while not rest and at < len(data):
                rest, at = bytes(data[at : at + _PIECE]).lstrip(b"\0"), at + _PIECE
            if not rest:
                return
            unpacker = make()
        elif unpacker.needs_input:
            rest, at = bytes(data[at : at + _PIECE]), at + _PIECE
            if not rest:
                raise EOFError("truncated")
        else:
            rest = b""
        if piece := unpacker.decompress(rest, _PIECE):
            yield piece


_UNPACKERS: dict[str, Callable[[], _Unpacker]] = {
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_WINDOW),
    "gz": lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP),
    "bz2": bz2.BZ2Decompressor,
}
