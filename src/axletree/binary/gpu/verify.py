"""Proof that a library whose GPU code was moved together is what it was without the dropped code, read anew.

The host's part has the same sections with the same bytes at the same addresses; only tables that made room for a
program header, and pointers to bundles, may differ, and those lead where they led. Kept code is compared byte by byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.binary.elf.layout import PT_LOAD, PT_NULL, SHF_ALLOC, SHT_DYNAMIC, SHT_NOBITS
from axletree.binary.elf.segments import find_misalignments
from axletree.binary.elf.tables import Reader, read_head
from axletree.binary.elf.verify import REPORT, layout_faults
from axletree.binary.gpu.compact import kept_entries, with_following
from axletree.binary.gpu.registered import SECTION, Registered, read_registered
from axletree.binary.gpu.repack import unpacked_digests
from axletree.binary.gpu.scan import read_containers
from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from axletree.binary.elf.layout import Program, SectionHeader
    from axletree.binary.gpu.compact import Compaction
    from axletree.binary.source import Source

_NOT_MOVED = "nothing was written, because moving the GPU code would damage the file"
_PIECE = 1 << 20
_WORD = 8


def verify_compaction(
    before: Source,
    after: Source,
    code: Registered,
    kept: Mapping[int, Collection[int]],
    compaction: Compaction,
    *,
    name: str = "ELF file",
) -> None:
    """Check a library whose bundles were moved together.

    Args:
        before: the original.
        after: the result.
        code: what was read of the original.
        kept: what was to stay, as for :func:`~axletree.binary.gpu.compact.plan_compaction`.
        compaction: where the section shall be.
        name: what errors call the file.

    Raises:
        IntegrityError: the result is not what was asked for; all that is wrong.
    """
    found = read_containers(after, compaction.section)
    new = read_registered(after, [found], name=name)
    if isinstance(new, str):
        raise IntegrityError(Problem(file=name, message=f"{_NOT_MOVED}: {new}"), hint=REPORT)
    faults = [fault for fault in layout_faults(new.image) if fault not in set(layout_faults(code.image))]
    present = set(_misalignments(before, name))
    faults += [fault for fault in _misalignments(after, name) if fault not in present]
    faults += _changed_segments(code, new)
    faults += _changed_sections(before, after, code, new)
    faults += _changed_pointers(code, new)
    faults += _changed_code(before, after, (code, new), kept)
    if faults:
        problems = (Problem(file=name, message=f"{_NOT_MOVED}: {each}") for each in dict.fromkeys(faults))
        raise IntegrityError(*problems, hint=REPORT)


def _misalignments(source: Source, name: str) -> tuple[str, ...]:
    return find_misalignments(read_head(Reader(source, name)), source.size)


def _changed_segments(code: Registered, new: Registered) -> Iterator[str]:
    """Loaded segments: the same addresses with the same rights, but for the end of the section with GPU code."""
    old_section, section = code.image.sections[code.number], new.image.sections[new.number]
    loads = list(new.image.loads)
    for old in code.image.loads:
        same = [load for load in loads if load.vaddr == old.vaddr]
        if not same or same[0][1:2] + same[0][7:] != old[1:2] + old[7:]:
            yield f"the segment at address {old.vaddr:#x} changed"
            continue
        if not old.vaddr <= old_section.addr < old.vaddr + old.memsz:
            if same[0][3:] != old[3:]:
                yield f"the size of the segment at address {old.vaddr:#x} changed"
            continue
        rest = [load for load in loads if old.vaddr < load.vaddr < old.vaddr + old.memsz]
        end = max(load.vaddr + load.memsz for load in (*same, *rest))
        if any(load.flags != old.flags or load.filesz != load.memsz for load in rest):
            yield "the part after the GPU code is mapped differently"
        if same[0].vaddr + same[0].filesz < section.addr + section.size:
            yield "not all of the GPU code is loaded"
        if old.vaddr + old.memsz > old_section.addr + old_section.size and end != old.vaddr + old.memsz:
            yield "the part after the GPU code is not fully loaded"
    kinds = [
        [(each.type, each.flags) for each in image.programs if each.type not in {PT_LOAD, PT_NULL}]
        for image in (code.image, new.image)
    ]
    if kinds[0] != kinds[1]:
        yield "its segments changed"


def _changed_sections(before: Source, after: Source, code: Registered, new: Registered) -> Iterator[str]:
    """All sections but the one with GPU code: content, kind, and place in memory or in a moved table."""
    old_sections, sections = code.image.sections, new.image.sections
    if len(old_sections) != len(sections):
        yield f"it has {len(sections)} sections instead of {len(old_sections)}"
        return
    changed = _changed_words(code)
    for number, (old, section) in enumerate(zip(old_sections, sections, strict=True)):
        if number == code.number:
            if section._replace(size=old.size) != old:
                yield f"{SECTION} is a different section"
            continue
        if section._replace(addr=old.addr, offset=old.offset) != old:
            yield f"section {number} changed"
            continue
        if old.flags & SHF_ALLOC and old.size and not _loaded_alike(code, new, old, section):
            yield f"section {number} is loaded differently"
        if old.type not in {0, SHT_NOBITS, SHT_DYNAMIC} and not _same_bytes(before, after, (old, section), changed):
            yield f"the content of section {number} changed"
    moved = {old.addr: section.addr for old, section in zip(old_sections, sections, strict=True) if old.addr}
    entries = zip(code.image.dynamic, new.image.dynamic, strict=False)
    if len(code.image.dynamic) != len(new.image.dynamic) or any(
        one != two and (one[0] != two[0] or moved.get(one[1]) != two[1]) for one, two in entries
    ):
        yield "its dynamic section changed"


def _loaded_alike(code: Registered, new: Registered, old: SectionHeader, section: SectionHeader) -> bool:
    before, after = _load_of(code, old), _load_of(new, section)
    if before is None or after is None or before.flags != after.flags:
        return before is None and after is None and old.addr == section.addr
    if section.type != SHT_NOBITS and section.offset - after.offset != section.addr - after.vaddr:
        return False
    return section.addr == old.addr or new.image.sections[new.number].addr <= section.addr


def _load_of(code: Registered, section: SectionHeader) -> Program | None:
    """The loaded segment that holds all of a section; thread-local zeros lie in none."""
    end = section.addr + section.size
    loads = code.image.loads
    return next((load for load in loads if load.vaddr <= section.addr and end <= load.vaddr + load.memsz), None)


def _changed_words(code: Registered) -> list[int]:
    """Where in the original the words stand that may differ: what points to bundles."""
    words = [pointer.addend for pointer in code.pointers if pointer.addend is not None]
    words += [code.image.offset_of(pointer.place) for pointer in code.pointers]
    return sorted([*words, *(offset for offset, _ in code.symbols)])


def _same_bytes(before: Source, after: Source, sections: tuple[SectionHeader, SectionHeader], but: list[int]) -> bool:
    old, section = sections
    position = old.offset
    for word in (*(word for word in but if old.offset <= word < old.file_end), old.file_end):
        if not _equal(before, after, (position, position - old.offset + section.offset), word - position):
            return False
        position = word + _WORD
    return True


def _equal(before: Source, after: Source, at: tuple[int, int], size: int) -> bool:
    return all(
        before.read(at[0] + start, min(_PIECE, size - start)) == after.read(at[1] + start, min(_PIECE, size - start))
        for start in range(0, size, _PIECE)
    )


def _changed_pointers(code: Registered, new: Registered) -> Iterator[str]:
    """Each pointer, and each symbol, leads to the bundle that it led to."""
    numbers = [
        {each.address(container): number for number, container in enumerate(each.containers)} for each in (code, new)
    ]
    leads = [
        [(pointer.place, table[pointer.target]) for pointer in each.pointers]
        for each, table in zip((code, new), numbers, strict=True)
    ]
    if leads[0] != leads[1]:
        yield "the pointers to its bundles changed"
    named = [[table[value] for _, value in each.symbols] for each, table in zip((code, new), numbers, strict=True)]
    if named[0] != named[1]:
        yield "the symbols of its bundles changed"


def _changed_code(
    before: Source, after: Source, codes: tuple[Registered, Registered], kept: Mapping[int, Collection[int]]
) -> Iterator[str]:
    old, new = codes
    if len(old.containers) != len(new.containers):
        yield f"it has {len(new.containers)} bundles instead of {len(old.containers)}"
        return
    for (one, end), (two, new_end) in zip(with_following(old), with_following(new), strict=True):
        where = f"the bundle that was at offset {one.offset}"
        wanted = kept_entries(one, kept.get(one.offset))
        if one.packing != two.packing or [entry.id for entry in wanted] != [entry.id for entry in two.entries]:
            yield f"{where} contains the wrong code"
        elif one.packing != "none":
            if len(wanted) == len(one.entries):
                same = one.size == two.size and _equal(before, after, (one.offset, two.offset), one.size)
            else:
                names = {entry.id for entry in wanted}
                digests = unpacked_digests(before, one, end)
                same = [each for each in digests if each[0] in names] == [*unpacked_digests(after, two, new_end)]
            if not same:
                yield f"code in {where} changed"
        elif not all(
            entry.size == other.size and _equal(before, after, (entry.offset, other.offset), entry.size)
            for entry, other in zip(wanted, two.entries, strict=True)
        ):
            yield f"code in {where} changed"
