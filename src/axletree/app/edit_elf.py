"""Change the names in an ELF file on disk, and say what it said before and says now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.facts import ElfFacts, read_host_facts
from axletree.binary.source import BufferSource
from axletree.host.archive import map_file
from axletree.host.edit import edit_elf

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.binary.elf.edit import ElfChange


class Renamed(NamedTuple):
    """What a file says of itself and its libraries."""

    before: ElfFacts
    after: ElfFacts


def rename_in_elf(path: Path, change: ElfChange) -> Renamed | None:
    """Change a file; ``None`` where it is already as asked, and nothing was written.

    Raises:
        IntegrityError: it is no ELF file, is damaged, or can't be changed so.
        HostError: it can't be read or written.
    """
    before = _read(path)
    return Renamed(before, _read(path)) if edit_elf(path, change) else None


def _read(path: Path) -> ElfFacts:
    return read_host_facts(BufferSource(map_file(path)), name=str(path))[0]
