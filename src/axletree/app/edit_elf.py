"""Change the names in an ELF file on disk, and say what it said before and says now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import read_host_facts
from axletree.binary.source import BufferSource
from axletree.host.archive import map_file
from axletree.host.edit import edit_elf

if TYPE_CHECKING:
    from axletree.binary.elf.edit import ElfChange


class ElfNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names in an ELF file: its own and those of its libraries."""

    soname: str | None
    rpath: tuple[str, ...]
    """Entries of DT_RPATH."""
    runpath: tuple[str, ...]
    """Entries of DT_RUNPATH; if there are any, the loader ignores DT_RPATH."""
    needed: tuple[str, ...]
    versions_of: tuple[str, ...]
    """Libraries whose symbol versions it needs."""
    interpreter: str | None = None
    """The loader that a program asks for (PT_INTERP)."""


class RenamedElf(msgspec.Struct, frozen=True, kw_only=True):
    """A file before and after: report of ``edit-elf``."""

    file: Path
    written: bool
    """Whether the file was changed; false if it already had these values."""
    before: ElfNames
    after: ElfNames


def rename_in_elf(path: Path, change: ElfChange) -> RenamedElf:
    """Change a file where it is not already as asked.

    Raises:
        IntegrityError: it is no ELF file, is damaged, or can't be changed so.
        HostError: it can't be read or written.
    """
    before = _read(path)
    written = edit_elf(path, change)
    return RenamedElf(file=path, written=written, before=before, after=_read(path) if written else before)


def _read(path: Path) -> ElfNames:
    facts = read_host_facts(BufferSource(map_file(path)), name=str(path))[0]
    return ElfNames(
        soname=facts.soname,
        rpath=facts.rpath,
        runpath=facts.runpath,
        needed=facts.needed,
        versions_of=tuple(need.file for need in facts.versions_needed),
        interpreter=facts.interpreter,
    )
