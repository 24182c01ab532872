"""Where the bytes of a wheel, a folder or a library are: by part, by ELF section, by GPU architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts
from axletree.package.gpu.arch import order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DEPTH = 2
_LARGEST = 10
"""How many single files are named."""


class SizedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with what is known of its content."""

    path: str
    size: int
    compressed: int
    """Bytes in the archive; as ``size`` where there is none."""
    facts: ElfFacts | None = None


class PartSize(msgspec.Struct, frozen=True, kw_only=True):
    """A folder, or a file at the top."""

    path: str
    files: int
    size: int
    compressed: int


class SectionTotal(msgspec.Struct, frozen=True, kw_only=True):
    """ELF sections of one name in all files."""

    name: str
    files: int
    size: int
    loaded: bool
    """Whether a loader maps them."""


class ArchTotal(msgspec.Struct, frozen=True, kw_only=True):
    """GPU code for one architecture in sections of one name, in all files."""

    section: str
    arch: str
    form: str
    """``binary``; ``intermediate`` for PTX and the like."""
    entries: int
    size: int
    unpacked: int
    """Bytes after decompression; 0 if the format does not state it."""


class UnloadedSize(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one file that no loader reads."""

    path: str
    symbols: int
    """Static symbol table and its strings."""
    debug: int


class SizeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result. Lists are sorted by size, largest first."""

    input: str
    size: int
    """Uncompressed bytes."""
    compressed: int
    files: int
    packed: bool
    """Whether the input is an archive, so that ``compressed`` differs from ``size``."""
    parts: tuple[PartSize, ...] = ()
    largest: tuple[PartSize, ...] = ()
    """Single files."""
    sections: tuple[SectionTotal, ...] = ()
    archs: tuple[ArchTotal, ...] = ()
    """Sorted by section and architecture."""
    unloaded: tuple[UnloadedSize, ...] = ()
    damaged: tuple[str, ...] = ()
    """What could not be read, one sentence for each."""

    @property
    def strippable(self) -> int:
        """Bytes that ``strip --strip-unneeded`` would take off."""
        return sum(file.symbols + file.debug for file in self.unloaded)


def measure_sizes(
    files: Sequence[SizedFile],
    *,
    name: str,
    compressed: int | None = None,
    damaged: Sequence[str] = (),
) -> SizeReport:
    """Add up.

    Args:
        files: all of them.
        name: what the report calls the input.
        compressed: bytes of the archive; ``None`` where there is none.
        damaged: what could not be read.
    """
    singles = [PartSize(path=file.path, files=1, size=file.size, compressed=file.compressed) for file in files]
    size = sum(file.size for file in files)
    return SizeReport(
        input=name,
        size=size,
        compressed=size if compressed is None else compressed,
        files=len(files),
        packed=compressed is not None,
        parts=_parts(files),
        largest=tuple(sorted(singles, key=lambda part: (-part.size, part.path))[:_LARGEST]),
        sections=_sections(file.facts for file in files if file.facts is not None),
        archs=_archs(file.facts for file in files if file.facts is not None),
        unloaded=_unloaded(files),
        damaged=(
            *damaged,
            *(
                f"{file.path}: {section.section}: {section.damaged}"
                for file in files
                if file.facts is not None
                for section in file.facts.device
                if section.damaged is not None
            ),
        ),
    )


def _parts(files: Iterable[SizedFile]) -> tuple[PartSize, ...]:
    """Top folders and the folders in them; ``torch/lib``, ``torch/include``, ``torch`` for the files right in it."""
    totals: dict[str, list[int]] = {}
    for file in files:
        folder = file.path.rpartition("/")[0]
        part = "/".join(folder.split("/")[:_DEPTH]) or file.path
        total = totals.setdefault(part, [0, 0, 0])
        total[0] += 1
        total[1] += file.size
        total[2] += file.compressed
    parts = [PartSize(path=path, files=t[0], size=t[1], compressed=t[2]) for path, t in totals.items()]
    return tuple(sorted(parts, key=lambda part: (-part.size, part.path)))


def _sections(facts: Iterable[ElfFacts]) -> tuple[SectionTotal, ...]:
    totals: dict[tuple[str, bool], list[int]] = {}
    for fact in facts:
        for section in fact.sections:
            total = totals.setdefault((section.name, section.loaded), [0, 0])
            total[0] += 1
            total[1] += section.size
    found = [SectionTotal(name=name, loaded=loaded, files=t[0], size=t[1]) for (name, loaded), t in totals.items()]
    return tuple(sorted(found, key=lambda section: (-section.size, section.name)))


def _archs(facts: Iterable[ElfFacts]) -> tuple[ArchTotal, ...]:
    totals: dict[tuple[str, str, str], list[int]] = {}
    for fact in facts:
        for section in fact.device:
            for code in section.code:
                total = totals.setdefault((code.section, code.arch, code.form), [0, 0, 0])
                total[0] += code.count
                total[1] += code.size
                total[2] += code.unpacked
    return tuple(
        ArchTotal(section=section, arch=arch, form=form, entries=t[0], size=t[1], unpacked=t[2])
        for (section, arch, form), t in sorted(totals.items(), key=lambda item: (item[0][0], order(item[0][1])))
    )


def _unloaded(files: Iterable[SizedFile]) -> tuple[UnloadedSize, ...]:
    found = [
        UnloadedSize(path=file.path, symbols=file.facts.symbol_table, debug=file.facts.debug)
        for file in files
        if file.facts is not None and file.facts.symbol_table + file.facts.debug
    ]
    return tuple(sorted(found, key=lambda file: (-(file.symbols + file.debug), file.path)))
