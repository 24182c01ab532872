"""The few facts of an ELF file that tests of an installed SDK want: its name, what it needs, where it looks for it."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOAD, _DYNAMIC = 1, 2
_NULL, _NEEDED, _STRTAB, _STRSZ, _SONAME, _RPATH, _RUNPATH = 0, 1, 5, 10, 14, 15, 29
_MOST = 1 << 16
"""Headers and entries that are looked at: a damaged file may claim any number."""


@dataclass(frozen=True)
class Elf:
    """Facts of an ELF file (System V ABI, chapters 4 and 5)."""

    bits: int
    soname: str = ""
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    """Folders of DT_RPATH, or of DT_RUNPATH where there is one: the loader then passes over the other."""
    sections: tuple[tuple[str, int, int], ...] = ()
    """Name, offset and size of each section with content."""


def read_elf(path: Path) -> Elf | None:
    """Facts of a file; None where it is no ELF file.

    Raises:
        ValueError: it begins as one, but is damaged.
        OSError: it can't be read.
    """
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(data)
        except (struct.error, IndexError, OverflowError) as error:
            raise ValueError(f"{path} is a damaged ELF file: {error}") from None


def _read(data: mmap.mmap) -> Elf:
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    head = struct.unpack_from(f"{order}HHI{'QQQ' if wide else 'III'}I6H", data, 16)
    segments_at, sections_at = head[4], head[5]
    segment_size, segments, section_size, sections, names = head[8:13]
    loads: list[tuple[int, int, int]] = []
    dynamic = (0, 0)
    for number in range(segments):
        at = segments_at + number * segment_size
        if wide:
            kind, _, offset, address, _, size = struct.unpack_from(f"{order}IIQQQQ", data, at)
        else:
            kind, offset, address, _, size = struct.unpack_from(f"{order}IIIII", data, at)
        if kind == _LOAD:
            loads.append((address, offset, size))
        elif kind == _DYNAMIC:
            dynamic = (offset, size)
    tags = list(_tags(data, dynamic, order, wide=wide))
    strings, room = _strings(tags, loads)

    def texts(tag: int) -> tuple[str, ...]:
        return tuple(_text(data, strings, value, room) for kind, value in tags if kind == tag)

    search = texts(_RUNPATH) or texts(_RPATH)
    return Elf(
        bits=64 if wide else 32,
        soname="".join(texts(_SONAME)[:1]),
        needed=texts(_NEEDED),
        search=tuple(folder for text in search for folder in text.split(":") if folder),
        sections=tuple(_sections(data, sections_at, section_size, sections, names, order)) if wide else (),
    )


def _tags(data: mmap.mmap, place: tuple[int, int], order: str, *, wide: bool) -> Iterator[tuple[int, int]]:
    entry = struct.Struct(f"{order}{'qQ' if wide else 'iI'}")
    for number in range(min(place[1] // entry.size, _MOST)):
        tag, value = entry.unpack_from(data, place[0] + number * entry.size)
        if tag == _NULL:
            return
        yield tag, value


def _strings(tags: list[tuple[int, int]], loads: list[tuple[int, int, int]]) -> tuple[int, int]:
    """Offset and size of the table of strings, which tags tell by its address."""
    known = dict(tags)
    address = known.get(_STRTAB, 0)
    offset = next((at + address - start for start, at, size in loads if start <= address < start + size), address)
    return offset, known.get(_STRSZ, 0)


def _text(data: mmap.mmap, table: int, place: int, room: int) -> str:
    if place >= room:
        raise IndexError(f"the string offset {place} is outside the table of {room} bytes")
    end = data.find(b"\0", table + place, table + room)
    if end < 0:
        raise IndexError(f"the string at offset {place} is not terminated")
    return data[table + place : end].decode("utf-8", "replace")


def _sections(
    data: mmap.mmap, start: int, size: int, count: int, names: int, order: str
) -> Iterator[tuple[str, int, int]]:
    no_content = 8
    rows = [
        struct.unpack_from(f"{order}IIQQQQ", data, start + number * size) for number in range(count if start else 0)
    ]
    if names >= len(rows):
        return
    table, room = rows[names][4], rows[names][5]
    for name, kind, _, _, offset, length in rows:
        if kind not in (0, no_content) and length:
            yield _text(data, table, name, room), offset, length
