"""Proof that an edited ELF file is what was asked for and still what it was, read anew from its bytes.

Faults that the file had before are not held against the edit. What is checked is what edits by other tools were seen to
break: a segment's offset and address that no longer agree modulo the page, a segment table that runs into a section,
segments out of order, DT_INIT outside executable pages, names that changed because their tail was shared.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from axletree.binary.elf.layout import (
    DT_GNU_HASH,
    DT_HASH,
    DT_INIT,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    PF_X,
    PT_DYNAMIC,
    PT_INTERP,
    PT_LOAD,
    PT_NULL,
    PT_PHDR,
    SHT_DYNAMIC,
    SHT_NOBITS,
    SHT_STRTAB,
    Image,
    Links,
    Program,
    SectionHeader,
    read_image,
    read_links,
    symbol_names,
    version_names,
)
from axletree.binary.elf.strings import names_strings, read_strings
from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.binary.elf.edit import ElfChange
    from axletree.binary.source import Source

NOT_MADE = "the edit was not made, because it would damage the file"
REPORT = "report this as a bug of Axletree, and attach the file"
_DT_FINI = 13
_TABLES = {DT_HASH, DT_GNU_HASH, DT_SYMTAB}
_CHANGING = {DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_STRTAB, DT_STRSZ}
_PIECE = 1 << 20


def verify_edit(before: Source, after: Source, change: ElfChange, *, name: str = "ELF file") -> None:
    """Check that a file was changed as asked, and in nothing else that a loader or a tool reads.

    Raises:
        IntegrityError: it was not; all that is wrong.
    """
    old, new = read_image(before, name=name), read_image(after, name=name)
    faults = [fault for fault in layout_faults(new) if fault not in set(layout_faults(old))]
    faults += _changed_links(read_links(before, name=name), read_links(after, name=name), change)
    faults += _changed_tables(old, new, {PT_INTERP} if change.interpreter is not None else set())
    faults += _changed_names(old, new, change)
    if faults:
        raise IntegrityError(*(Problem(file=name, message=f"{NOT_MADE}: {fault}") for fault in faults), hint=REPORT)


def layout_faults(image: Image) -> Iterator[str]:
    """What is wrong with the layout of a file, whoever made it so."""
    size, loads = image.reader.size, image.loads
    for number, load in enumerate(loads):
        if load.align > 1 and (load.offset - load.vaddr) % load.align:
            yield f"loaded segment {number}: offset and address are not congruent modulo the segment's alignment"
        if load.file_end > size or load.filesz > load.memsz:
            yield f"loaded segment {number} extends past the end of the file"
    for one, two in itertools.pairwise(loads):
        if one.vaddr + one.memsz > two.vaddr:
            yield "loaded segments overlap, or are out of order"
    head = image.phoff, image.phoff + len(image.programs) * image.program_size
    if any(program.type == PT_PHDR for program in image.programs) and not any(
        load.offset <= head[0] and head[1] <= load.file_end for load in loads
    ):
        yield "no loaded segment contains the whole segment table"
    rooms = sorted(
        (section.offset, section.file_end)
        for section in image.sections
        if section.type not in {0, SHT_NOBITS} and section.size
    )
    if any(start < head[1] and end > head[0] for start, end in rooms):
        yield "the segment table overlaps a section"
    if any(one[1] > two[0] for one, two in itertools.pairwise(rooms)):
        yield "sections overlap in the file"
    for tag in (DT_INIT, _DT_FINI):
        address = image.first(tag)
        if address is not None and not any(
            load.flags & PF_X and load.vaddr <= address < load.vaddr + load.memsz for load in loads
        ):
            yield "the initialization or termination function is outside the executable segments"
    yield from _interpreter_faults(image)


def _changed_links(old: Links, new: Links, change: ElfChange) -> Iterator[str]:
    replaced = [change.replace_needed.get(each, each) for each in old.needed if each not in change.remove_needed]
    if list(dict.fromkeys(new.needed)) != list(dict.fromkeys([*replaced, *change.add_needed])):
        yield f"it now needs {', '.join(new.needed) or 'nothing'}"
    if new.soname != (change.soname or old.soname):
        yield f"the SONAME is now {new.soname}"
    wanted = (old.rpath, old.runpath)
    if change.rpath is not None:
        wanted = (change.rpath, ()) if change.kind == "rpath" else ((), change.rpath)
    if (new.rpath, new.runpath) != wanted:
        yield f"the search path is now {':'.join(new.runpath or new.rpath)}"
    if new.interpreter != (change.interpreter or old.interpreter):
        yield f"the interpreter is now {new.interpreter}"


def _interpreter_faults(image: Image) -> Iterator[str]:
    """Why Linux or the loader refuses the name of the interpreter: it ends with a zero byte and is loaded."""
    for program in image.programs:
        if program.type != PT_INTERP or not program.filesz:
            continue
        if image.reader.read(program.file_end - 1, 1) != b"\0":
            yield "the name of its interpreter does not end with a zero byte"
        if not any(
            load.offset <= program.offset
            and program.file_end <= load.file_end
            and program.vaddr - load.vaddr == program.offset - load.offset
            for load in image.loads
        ):
            yield "the name of its interpreter is not loaded where its segment says"


def _changed_tables(old: Image, new: Image, changing: set[int]) -> Iterator[str]:
    """Segments, sections and dynamic entries that are not what they were, wherever they stand now.

    Segments of the types in ``changing``, and the sections that begin where they do, may have other content.
    """
    programs = [program for program in new.programs if program.type not in {PT_NULL, PT_PHDR, PT_DYNAMIC}]
    for program in old.programs:
        if program.type in {PT_NULL, PT_PHDR, PT_DYNAMIC, *changing} or program in programs:
            continue
        alike = [each for each in programs if each.type == program.type]
        if program.type == PT_LOAD:
            same = any(each[1:5] == program[1:5] and each.filesz > program.filesz for each in alike)
        else:
            same = any(each.filesz == program.filesz and _equal(old, new, program, each) for each in alike)
        if not same:
            yield f"a segment of type {program.type:#x} changed"
    if len(old.sections) != len(new.sections):
        yield f"it has {len(new.sections)} sections instead of {len(old.sections)}"
    named = {program.offset for program in old.programs if program.type in changing}
    for number, (one, two) in enumerate(zip(old.sections, new.sections, strict=False)):
        resized = two._replace(addr=one.addr, offset=one.offset, size=one.size)
        free = one.type in {SHT_STRTAB, SHT_DYNAMIC} or one.offset in named
        if resized != one or (one.size != two.size and not free):
            yield f"section {number} changed"
        elif one.offset != two.offset and not free and not _equal(old, new, one, two):
            yield f"the content of section {number} changed"
    entries = [
        [entry for entry in image.dynamic if entry[0] not in _CHANGING | _TABLES and not names_strings(entry[0])]
        for image in (old, new)
    ]
    if entries[0] != entries[1]:
        yield "other entries in the dynamic section changed"


def _equal(old: Image, new: Image, one: Program | SectionHeader, two: Program | SectionHeader) -> bool:
    size = min(one.file_end, old.reader.size) - one.offset  # a damaged file claims what it does not have
    return all(
        old.reader.read(one.offset + start, min(_PIECE, size - start))
        == new.reader.read(two.offset + start, min(_PIECE, size - start))
        for start in range(0, size, _PIECE)
    )


def _changed_names(old: Image, new: Image, change: ElfChange) -> Iterator[str]:
    """Names of symbols and versions: same places, same text."""
    before, after = read_strings(old)[1], read_strings(new)[1]
    symbols, later = symbol_names(old), symbol_names(new)
    if symbols != later:
        yield "the symbol table changed"
    low, high = _difference(before, after)
    for start in symbols or ():
        if (
            start < high
            and (start >= low or before.find(b"\0", start, low) < 0)
            and _name(before, start) != _name(after, start)
        ):
            yield f"the name of symbol {_name(before, start).decode(errors='backslashreplace')} changed"
            break
    versions = [(each.kind, old.string(each.offset)) for each in version_names(old)]
    renamed = {one.encode(): two.encode() for one, two in change.replace_needed.items()}
    wanted = [(kind, renamed.get(text, text) if kind == "file" else text) for kind, text in versions]
    if wanted != [(each.kind, new.string(each.offset)) for each in version_names(new)]:
        yield "the symbol versions changed"


def _difference(before: bytes, after: bytes) -> tuple[int, int]:
    """Where the first table differs from the second: an empty range where it is the start of it."""
    if after.startswith(before):
        return len(before), 0
    low = 0
    step = len(before)
    while step:
        if before[low : low + step] == after[low : low + step]:
            low += step
        step //= 2
    high = len(before)
    step = high - low
    while step:
        if high - step >= low and before[high - step : high] == after[high - step : high]:
            high -= step
        step //= 2
    return low, high


def _name(table: bytes, start: int) -> bytes:
    end = table.find(b"\0", start)
    return table[start : end if end >= 0 else len(table)]
