"""Room in a dynamic string table: where a string can be put without anybody else's name changing.

Linkers merge tails: the name of a symbol may be the end of a search path, and a path the end of a name. So a string is
overwritten only when no other reference points into it, and every table that refers to names is asked: dynamic
entries, symbols, symbol versions.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.layout import (
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    MAX_STRING,
    MAX_STRINGS,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_GNU_VERDEF,
    SHT_GNU_VERNEED,
    SHT_NOBITS,
    Image,
    symbol_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# DT_CONFIG, DT_DEPAUDIT, DT_AUDIT, DT_AUXILIARY, DT_USED, DT_FILTER
_STRING_TAGS = {DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, 0x6FFFFEFA, 0x6FFFFEFB, 0x6FFFFEFC}
_STRING_TAGS |= {0x7FFFFFFD, 0x7FFFFFFE, 0x7FFFFFFF}
_LAST_GENERIC_TAG = 37
_GNU_TAGS = range(0x6FFFFD00, 0x70000000)
_USERS = {SHT_DYNSYM, SHT_DYNAMIC, SHT_GNU_VERDEF, SHT_GNU_VERNEED}
_MAX_TRIES = 16


class Strings(NamedTuple):
    """A string table with new strings in it."""

    table: bytes
    """All of it; longer than before where there was no room."""
    offsets: dict[bytes, int]
    """String -> where it stands."""
    changed: tuple[tuple[int, int], ...]
    """(start, end) of what is no longer as it was, within the old size."""


def read_strings(image: Image) -> tuple[int, bytes]:
    """The dynamic string table: where in the file it starts, and its bytes.

    Raises:
        IntegrityError: there is none, or it does not fit into the file.
    """
    address, size = image.first(DT_STRTAB), image.first(DT_STRSZ)
    if address is None or not size:
        raise image.reader.error("the dynamic section has no string table")
    if size > MAX_STRINGS:
        raise image.reader.error(f"the string table has an implausible size: {size} bytes")
    offset = image.offset_of(address)
    table = image.reader.take(offset, size, "string table")
    if table[-1]:
        raise image.reader.error("the string table does not end with a zero byte")
    return offset, table


def names_strings(tag: int) -> bool:
    """Whether the value of a dynamic entry is, or for all that is known may be, a place in the string table."""
    return tag in _STRING_TAGS or not (0 <= tag <= _LAST_GENERIC_TAG or tag in _GNU_TAGS)


def private_strings(image: Image, offset: int, size: int) -> bool:
    """Whether only the dynamic section, its symbols and their versions use the string table."""
    own = {
        index
        for index, section in enumerate(image.sections)
        if section.type != SHT_NOBITS and section.offset < offset + size and section.file_end > offset
    }
    users = (section.type in _USERS for section in image.sections if section.link in own and section.link)
    return len(own) <= 1 and all(users)


def place_strings(
    image: Image, table: bytes, wanted: Iterable[bytes], *, dead: Iterable[int], kept: Sequence[int], private: bool
) -> Strings:
    """Put strings into a table: where they stand already, else into unused room, else behind its end.

    Args:
        image: the file, for the names of its symbols.
        table: the string table.
        wanted: strings without their final zero byte.
        dead: strings that lose a reference.
        kept: offsets that dynamic entries and versions go on using.
        private: whether nothing unknown uses the table.
    """
    wanted = set(wanted)
    offsets = {text: found for text in wanted if (found := table.find(text + b"\0")) >= 0}
    missing = sorted(wanted - offsets.keys(), key=lambda text: (-len(text), text))
    symbols = symbol_names(image) if private else None
    used = [*kept, *offsets.values()]
    new, changed = bytearray(table), list[tuple[int, int]]()
    if symbols is not None:
        for start, end in _unused(table, dead, used, symbols):
            new[start:end] = bytes(end - start)
            changed.append((start, end))
        for text in missing:
            room = _find_room(new, len(text), used, symbols)
            if room is not None:
                new[room : room + len(text)] = text
                offsets[text] = room
                changed.append((room, room + len(text)))
    for text in missing:
        if text not in offsets:
            offsets[text] = len(new)
            new += text + b"\0"
    return Strings(bytes(new), offsets, tuple(merged_spans(changed)))


def _unused(table: bytes, dead: Iterable[int], used: Sequence[int], symbols: Sequence[int]) -> list[tuple[int, int]]:
    """What of dead strings nobody else points into."""
    spans: list[tuple[int, int, int]] = []
    for start in dead:
        before = table.rfind(b"\0", max(0, start - MAX_STRING), start)  # it may be the tail of another name
        if before >= 0:
            spans.append((before + 1, start, table.index(b"\0", start)))
    if not spans:
        return []
    low, high = min(span[0] for span in spans), max(span[2] for span in spans)
    live = sorted([place for place in symbols if low <= place <= high] + [place for place in used if low <= place])
    free: list[tuple[int, int]] = []
    for head, start, end in spans:
        index = bisect_left(live, head)
        following = live[index] if index < len(live) else end
        if following > start:
            free.append((start, min(end, following)))
    return free


def _find_room(table: bytearray, length: int, used: Sequence[int], symbols: Sequence[int]) -> int | None:
    """A run of zero bytes after the one that ends the string before it, to which nobody points."""
    run = bytes(length + 2)
    start = table.find(run)
    for _ in range(_MAX_TRIES):
        if start < 0:
            return None
        end = start + len(run)
        inside = [place for place in symbols if start < place < end] + [place for place in used if start < place < end]
        if not inside:
            return start + 1
        start = table.find(run, max(inside))
    return None


def merged_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(start, end) pairs sorted, with those that touch joined and empty ones left out."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
