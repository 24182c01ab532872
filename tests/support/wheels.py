"""Small ELF files of any class and byte order, and small wheels that hold them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from struct import pack

from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import Metadata, create_metadata
from axletree.package.wheel.names import WheelName
from axletree.package.wheel.writer import Member, write_wheel

_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 4, 5, 6, 10, 14, 15, 29
_DT_GNU_HASH = 0x6FFFFEF5
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF


class _Strings:
    """A string table that grows."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


def _elf_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


class _Elf:
    """Builds the file: all of it is one loaded segment at address 0, so that addresses are offsets."""

    def __init__(self, bits: int, order: str) -> None:
        self.wide = bits == 64
        self.order = "<" if order == "little" else ">"
        self.body = bytearray()
        self.start = 0

    def pack(self, fields: str, *values: int) -> bytes:
        return pack(self.order + fields, *values)

    def place(self, data: bytes) -> int:
        """Append data at a multiple of 8; returns its offset in the file."""
        self.body += bytes(-len(self.body) % 8)
        offset = self.start + len(self.body)
        self.body += data
        return offset

    def symbol(self, name: int, info: int, section: int) -> bytes:
        if self.wide:
            return self.pack("IBBHQQ", name, info, 0, section, 0x10, 0)
        return self.pack("IIIBBH", name, 0x10, 0, info, 0, section)

    def segment(self, kind: int, flags: int, offset: int, size: int) -> bytes:
        align = 4096 if kind == 1 else 8  # loaded segments: of a page
        if self.wide:
            return self.pack("IIQQQQQQ", kind, flags, offset, offset, offset, size, size, align)
        return self.pack("IIIIIIII", kind, offset, offset, offset, size, size, flags, align)

    def section(
        self, name: int, kind: int, offset: int, size: int, link: int = 0, info: int = 0, entry: int = 0
    ) -> bytes:
        fields = "IIQQQQIIQQ" if self.wide else "IIIIIIIIII"
        return self.pack(fields, name, kind, 2, offset, offset, size, link, info, 8, entry)

    def versions(self, needs: dict[str, tuple[str, ...]], strings: _Strings) -> bytes:
        out, index = b"", 2
        for last, (file, names) in enumerate(needs.items(), start=1):
            aux = b""
            for number, name in enumerate(names, start=1):
                follows = 16 if number < len(names) else 0
                aux += self.pack("IHHII", _elf_hash(name), 0, index, strings.add(name), follows)
                index += 1
            follows = 16 + len(aux) if last < len(needs) else 0
            out += self.pack("HHIII", 1, len(names), strings.add(file), 16, follows) + aux
        return out

    def definitions(self, names: tuple[str, ...], strings: _Strings) -> bytes:
        out = b""
        for number, name in enumerate(names, start=1):
            follows = 28 if number < len(names) else 0
            out += self.pack("HHHHIII", 1, int(number == 1), number, 1, _elf_hash(name), 20, follows)
            out += self.pack("II", strings.add(name), 0)
        return out


def make_elf(
    *,
    bits: int = 64,
    order: str = "little",
    kind: int = 3,
    machine: int = 62,
    soname: str | None = None,
    needed: tuple[str, ...] = (),
    rpath: str | None = None,
    runpath: str | None = None,
    needs: dict[str, tuple[str, ...]] | None = None,
    defines: tuple[str, ...] = (),
    undefined: tuple[str, ...] = (),
    weak: tuple[str, ...] = (),
    exported: tuple[str, ...] = (),
    stack: int | None = 6,
    interpreter: str | None = None,
    count_by: str = "sections",
    symtab: int = 0,
) -> bytes:
    """An ELF file that readers accept; nothing in it can run.

    ``count_by`` says what tells the number of symbols: ``sections``, ``hash`` or ``gnu_hash``; without ``sections`` the
    file has no section table. ``symtab`` is a number of bytes of symbols that are not loaded.
    """
    elf = _Elf(bits, order)
    extra = (stack is not None) + (interpreter is not None)
    elf.start = (64 + 56 * (2 + extra)) if elf.wide else (52 + 32 * (2 + extra))
    elf.start += -elf.start % 8
    strings = _Strings()
    dynamic = [(_DT_NEEDED, strings.add(name)) for name in needed]
    for tag, text in ((_DT_SONAME, soname), (_DT_RPATH, rpath), (_DT_RUNPATH, runpath)):
        if text is not None:
            dynamic.append((tag, strings.add(text)))
    if needs:
        dynamic += [(_DT_VERNEED, elf.place(elf.versions(needs, strings))), (_DT_VERNEEDNUM, len(needs))]
    if defines:
        dynamic += [(_DT_VERDEF, elf.place(elf.definitions(defines, strings))), (_DT_VERDEFNUM, len(defines))]
    symbols = [elf.symbol(0, 0, 0)]
    symbols += [elf.symbol(strings.add(name), 0x12, 0) for name in undefined]
    symbols += [elf.symbol(strings.add(name), 0x22, 0) for name in weak]
    hidden = len(symbols)  # the GNU hash table holds only what is defined
    symbols += [elf.symbol(strings.add(name), 0x12, 1) for name in exported]
    table = elf.place(b"".join(symbols))
    dynamic.append((_DT_SYMTAB, table))
    if count_by == "hash":
        words = [1, len(symbols), len(symbols) - 1, *range(len(symbols))]
        dynamic.append((_DT_HASH, elf.place(elf.pack(f"{len(words)}I", *words))))
    if count_by == "gnu_hash":
        chain = [2] * (len(exported) - 1) + [3] if exported else []
        head = elf.pack("IIII", 1, hidden, 1, 6) + elf.pack("Q" if elf.wide else "I", 0)
        words = [hidden if exported else 0, *chain]
        dynamic.append((_DT_GNU_HASH, elf.place(head + elf.pack(f"{len(words)}I", *words))))
    interp = elf.place((interpreter or "").encode() + b"\0") if interpreter is not None else 0
    place = elf.place(bytes(strings.data))
    dynamic += [(_DT_STRTAB, place), (_DT_STRSZ, len(strings.data)), (0, 0)]
    entries = b"".join(elf.pack("qQ" if elf.wide else "iI", *entry) for entry in dynamic)
    dynamic_at = elf.place(entries)
    sections, section_count = 0, 0
    if count_by == "sections":
        parts = ((table, len(symbols)), (place, len(strings.data)), (dynamic_at, len(entries)))
        sections, section_count = _add_sections(elf, *parts, symtab)
    size = elf.start + len(elf.body)
    segments = [elf.segment(1, 4, 0, size), elf.segment(2, 6, dynamic_at, len(entries))]
    if stack is not None:
        segments.append(elf.segment(0x6474E551, stack, 0, 0))
    if interpreter is not None:
        segments.append(elf.segment(3, 4, interp, len(interpreter) + 1))
    ident = b"\x7fELF" + bytes([2 if elf.wide else 1, 1 if order == "little" else 2, 1]) + bytes(9)
    sizes = (64, 56, 64) if elf.wide else (52, 32, 40)
    header = elf.pack(
        "HHIQQQIHHHHHH" if elf.wide else "HHIIIIIHHHHHH",
        *(kind, machine, 1, 0, sizes[0], sections, 0, sizes[0], sizes[1], len(segments)),
        *(sizes[2], section_count, section_count - 1 if section_count else 0),
    )
    head = ident + header + b"".join(segments)
    return head + bytes(elf.start - len(head)) + bytes(elf.body)


def _add_sections(
    elf: _Elf, symbols: tuple[int, int], strings: tuple[int, int], dynamic: tuple[int, int], symtab: int
) -> tuple[int, int]:
    """.dynsym, .dynstr, .dynamic, .symtab, .debug_info and the names; returns (offset, count) of the table."""
    names = _Strings()
    entry = 24 if elf.wide else 16
    rows = [
        bytes(64 if elf.wide else 40),
        elf.section(names.add(".dynsym"), 11, symbols[0], symbols[1] * entry, 2, 1, entry),
        elf.section(names.add(".dynstr"), 3, *strings),
        elf.section(names.add(".dynamic"), 6, *dynamic, 2, 0, 16 if elf.wide else 8),
    ]
    if symtab:
        rows.append(elf.section(names.add(".symtab"), 2, elf.place(bytes(symtab)), symtab, 2, 1, entry))
        rows.append(elf.section(names.add(".debug_info"), 1, elf.place(bytes(8)), 8))
    own = names.add(".shstrtab")
    rows.append(elf.section(own, 3, elf.place(bytes(names.data)), len(names.data)))
    return elf.place(b"".join(rows)), len(rows)


def demo_metadata(version: str = "1.0", **fields: object) -> Metadata:
    """Metadata of the distribution ``demo``."""
    return create_metadata(name="demo", version=version, **fields)  # type: ignore[arg-type]


def demo_name(tag: str = "py3-none-any", version: str = "1.0") -> WheelName:
    """Name of a wheel of ``demo``."""
    python, abi, platform = tag.split("-")
    return WheelName(project="demo", version=version, python=python, abi=abi, platform=platform)


def demo_info(tag: str = "py3-none-any") -> WheelInfo:
    """The WHEEL file to go with it."""
    return WheelInfo(tags=demo_name(tag).tags, purelib=tag.endswith("-any"))


def wheel_bytes(
    files: dict[str, bytes], *, tag: str = "py3-none-any", metadata: Metadata | None = None, threads: int = 1
) -> bytes:
    """A wheel of ``demo`` 1.0 from our writer."""
    sink = io.BytesIO()
    members = [Member(path=path, data=data) for path, data in files.items()]
    write_wheel(sink, members, metadata=metadata or demo_metadata(), wheel_info=demo_info(tag), threads=threads)
    return sink.getvalue()


def zip_bytes(files: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive from the standard library's writer."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), data, compress_type=method)
    return buffer.getvalue()


def local_wheels(pattern: str) -> list[Path]:
    """Wheels in the folders that pip is told to look into (``find-links``), on this machine."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    words = [word for line in listing.splitlines() if "find-links" in line for word in line.split("=", 1)[1].split("'")]
    words += os.environ.get("PIP_FIND_LINKS", "").split()
    folders = {Path(word.strip().removeprefix("file://")) for text in words for word in text.split()}
    return sorted({path for folder in folders if folder.is_dir() for path in folder.glob(pattern)})
