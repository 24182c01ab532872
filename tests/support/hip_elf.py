"""Shared libraries with offload bundles and their wrappers, byte by byte: what pure tests can have of HIP's host code.

The layout is that of a linker that gives read-only data a segment of its own: headers and tables, ``.hip_fatbin`` with
what lies behind it, data. Only the numbers count; nothing in it can run. The real thing is in support/hip_library.py.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAGE = 4096
FATBIN = 0x1000
"""Where the section with the bundles begins in the file."""
FATBIN_ADDR = FATBIN + 0x10_0000
"""Where it is loaded."""
DATA_SHIFT = 0x20_0000
"""By how much addresses in the segment that is written to are above offsets."""
WRAPPER = 24
RELATIVE, ABSOLUTE = 8, 1
"""R_X86_64_RELATIVE, R_X86_64_64."""

Form = Literal["rela", "filled", "rel", "relr", "symbol"]
"""How the loader learns of a pointer: RELA, with or without the value in place too; REL; RELR; RELA by a symbol."""
FORMS: tuple[Form, ...] = ("rela", "filled", "rel", "relr", "symbol")


class Part(NamedTuple):
    """A section."""

    number: int
    offset: int
    addr: int
    size: int


class HipElf(NamedTuple):
    """A library, and where things lie in it."""

    data: bytes
    parts: dict[str, Part]
    shoff: int
    programs: int
    """Entries of the segment table."""

    def header(self, name: str) -> int:
        """Where in the file the header of a section stands."""
        return self.shoff + 64 * self.parts[name].number

    def spoilt(self, *changes: tuple[int, bytes]) -> bytes:
        """The file with bytes overwritten."""
        data = bytearray(self.data)
        for offset, new in changes:
            data[offset : offset + len(new)] = new
        return bytes(data)

    def dynamic(self, tag: int) -> int:
        """Where in the file the value of an entry of the dynamic section stands."""
        part = self.parts[".dynamic"]
        places = range(part.offset, part.offset + part.size, 16)
        return next(place + 8 for place in places if self.data[place : place + 8] == pack("<Q", tag))


def relr_words(places: Iterable[int]) -> list[int]:
    """Addresses as a RELR table: an even word is one, an odd one tells which of the 63 words that follow are, too."""
    words: list[int] = []
    left = sorted(places)
    while left:
        base = left.pop(0)
        words.append(base)
        base += 8
        while left and left[0] < base + 63 * 8:
            bits = {(place - base) // 8 for place in left if place < base + 63 * 8}
            words.append(sum(2 << bit for bit in bits) | 1)
            left = left[len(bits) :]
            base += 63 * 8
    return words


def make_hip_elf(
    content: Sequence[bytes],
    *,
    form: Form = "rela",
    spare: bool = False,
    behind: bool = True,
    words: Sequence[int] = (),
    extra: Sequence[tuple[int, int, int]] = (),
    packed: Iterable[int] = (),
    seen: Iterable[int] = (),
    counted: Literal["section", "hash"] = "section",
    filling: bytes = b"",
) -> HipElf:
    """A library with a wrapper for each bundle.

    Args:
        content: the bundles; each begins at a multiple of a page.
        form: how wrappers are relocated.
        spare: whether the segment table has an unused entry.
        behind: whether read-only data follow the bundles in their segment.
        words: content of ``.data``.
        extra: more relocations of RELA's kind: (index of the word that is written, info, addend).
        packed: indices of words that a RELR table relocates.
        seen: values of symbols for the loader, said to lie in the section of bundles.
        counted: what tells the number of symbols.
        filling: bytes between the segment table and what follows it.
    """
    body = b"".join(data + bytes(-len(data) % PAGE) for data in content)
    offsets = [sum(len(each) + -len(each) % PAGE for each in content[:number]) for number in range(len(content))]
    targets = [FATBIN_ADDR + offset for offset in offsets]
    data_at = FATBIN + len(body) + 64 * behind
    data_at += -data_at % 8
    wrappers_at = data_at + 8 * len(words)
    places = [wrappers_at + DATA_SHIFT + WRAPPER * number + 8 for number in range(len(content))]
    by_symbol = targets if form == "symbol" else []
    symbols = _symbols([*by_symbol, *seen])
    strings = b"\0answer\0libdemo.so\0"
    relocations, relr = _relocations(form, places, targets, [(data_at + DATA_SHIFT + 8 * i, *r) for i, *r in extra])
    relr += [data_at + DATA_SHIFT + 8 * index for index in packed]
    count = 6 + spare
    note = pack("<III4s", 4, 20, 3, b"GNU\0") + bytes(range(20))
    head: list[tuple[str, int, int, bytes, int, int]] = []  # name, type, address less offset, content, link, entry
    head.append((".note.gnu.build-id", 7, 0, note, 0, 0))
    head.append((".hash", 5, 0, pack(f"<{4 + len(symbols)}I", 1, 1 + len(symbols), 0, *range(1 + len(symbols))), 3, 4))
    head.append((".dynsym", 11 if counted == "section" else 1, 0, bytes(24) + b"".join(symbols), 4, 24))
    head.append((".dynstr", 3, 0, strings, 0, 0))
    if form == "rel":
        head.append((".rel.dyn", 9, 0, relocations, 3, 16))
    else:
        head.append((".rela.dyn", 4, 0, relocations, 3, 24))
    head.append((".relr.dyn", 19, 0, b"".join(pack("<Q", word) for word in relr_words(relr)), 0, 8))
    file = bytearray(64 + 56 * count) + filling
    parts: dict[str, Part] = {}
    rows: list[tuple[str, int, int, int, int]] = []  # name, type, flags, link, entry

    def place(name: str, kind: int, flags: int, shift: int, data: bytes, link: int = 0, entry: int = 0) -> Part:
        if data:
            file.extend(bytes(-len(file) % 8))
        offset = len(file)
        file.extend(data)
        rows.append((name, kind, flags, link, entry))
        parts[name] = Part(len(rows), offset, offset + shift if flags else 0, len(data))
        return parts[name]

    for name, kind, shift, data, link, entry in head:
        place(name, kind, 2, shift, data, link, entry)
    head_end = len(file)
    assert head_end <= FATBIN, "the tables have no room before the bundles"
    file.extend(bytes(FATBIN - head_end))
    place(".hip_fatbin", 1, 2, FATBIN_ADDR - FATBIN, body)
    if behind:
        place(".rodata", 1, 2, FATBIN_ADDR - FATBIN, bytes(range(64)))
    read_only_end = len(file)
    place(".data", 1, 3, DATA_SHIFT, b"".join(pack("<Q", word) for word in words))
    held = [0 if form in {"rela", "symbol"} else target for target in targets]
    place(".hipFatBinSegment", 1, 3, DATA_SHIFT, b"".join(pack("<4sIQQ", b"FPIH", 1, target, 0) for target in held))
    entries = _dynamic(parts, form)
    dynamic = place(".dynamic", 6, 3, DATA_SHIFT, b"".join(pack("<qQ", *entry) for entry in [*entries, (0, 0)]), 4, 16)
    data_end = len(file)
    fatbin = parts[".hip_fatbin"]
    static = pack("<IBBHQQ", 0, 3, 0, fatbin.number, FATBIN_ADDR, 0)
    static += b"".join(pack("<IBBHQQ", 0, 0x11, 2, fatbin.number, target, 0) for target in targets)
    place(".symtab", 2, 0, 0, bytes(24) + static, len(rows) + 2, 24)
    place(".strtab", 3, 0, 0, b"\0")
    names = [*(row[0] for row in rows), ".shstrtab"]
    place(".shstrtab", 3, 0, 0, b"\0" + b"".join(name.encode() + b"\0" for name in names))
    file.extend(bytes(-len(file) % 8))
    shoff = len(file)
    file.extend(bytes(64))
    name_at = 1
    for name, kind, flags, link, entry in rows:
        part = parts[name]
        info = {2: 2, 11: 1}.get(kind, 0)  # of tables of symbols: the first that is global
        row = (name_at, kind, flags, part.addr, part.offset, part.size, link, info, 8, entry)
        file.extend(pack("<IIQQQQIIQQ", *row))
        name_at += len(name) + 1
    shift = FATBIN_ADDR - FATBIN
    size = data_end - data_at
    segments = [
        _segment(1, 4, 0, 0, head_end, PAGE),
        _segment(1, 4, FATBIN, FATBIN + shift, read_only_end - FATBIN, PAGE),
        _segment(1, 6, data_at, data_at + DATA_SHIFT, size, PAGE),
        _segment(2, 6, dynamic.offset, dynamic.addr, dynamic.size, 8),
        _segment(4, 4, parts[".note.gnu.build-id"].offset, parts[".note.gnu.build-id"].addr, len(note), 4),
        _segment(0x6474E551, 6, 0, 0, 0, 16),
        *([_segment(0, 0, 0, 0, 0, 0)] * spare),
    ]
    ident = b"\x7fELF\2\1\1" + bytes(9)
    header = pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, shoff, 0, 64, 56, count, 64, len(rows) + 1, len(rows))
    file[: 64 + 56 * count] = ident + header + b"".join(segments)
    return HipElf(bytes(file), parts, shoff, count)


def _segment(kind: int, flags: int, offset: int, addr: int, size: int, align: int) -> bytes:
    return pack("<IIQQQQQQ", kind, flags, offset, addr, addr, size, size, align)


def _symbols(values: Sequence[int]) -> list[bytes]:
    """One in another section, then those that lie in the bundles'."""
    number = 7  # of .hip_fatbin, see the order above
    return [
        pack("<IBBHQQ", 1, 0x12, 0, number + 1, 0x123, 4),
        *(pack("<IBBHQQ", 0, 0x11, 2, number, value, 0) for value in values),
    ]


def _relocations(
    form: Form, places: Sequence[int], targets: Sequence[int], extra: Sequence[tuple[int, ...]]
) -> tuple[bytes, list[int]]:
    """The table of relocations, and the addresses that belong into a RELR table."""
    more = b"".join(pack("<QQQ", *row) for row in extra)
    pairs = list(zip(places, targets, strict=True))
    match form:
        case "rela" | "filled":
            return b"".join(pack("<QQQ", place, RELATIVE, target) for place, target in pairs) + more, []
        case "symbol":  # the first bundle's symbol is the third: the null symbol and one more come before
            rows = enumerate(places, start=2)
            return b"".join(pack("<QQQ", place, number << 32 | ABSOLUTE, 0) for number, place in rows) + more, []
        case "rel":
            rest = b"".join(pack("<QQ", place, info) for place, info, _ in extra)
            return b"".join(pack("<QQ", place, RELATIVE) for place in places) + rest, []
        case "relr":
            return more, list(places)


def _dynamic(parts: dict[str, Part], form: Form) -> list[tuple[int, int]]:
    entries = [(14, 8), (4, parts[".hash"].addr), (5, parts[".dynstr"].addr), (10, parts[".dynstr"].size)]
    entries += [(6, parts[".dynsym"].addr), (11, 24)]
    if form == "rel":
        entries += [(17, parts[".rel.dyn"].addr), (18, parts[".rel.dyn"].size), (19, 16)]
    elif parts[".rela.dyn"].size:
        entries += [(7, parts[".rela.dyn"].addr), (8, parts[".rela.dyn"].size), (9, 24)]
    if parts[".relr.dyn"].size:
        entries += [(36, parts[".relr.dyn"].addr), (35, parts[".relr.dyn"].size), (37, 8)]
    return entries
