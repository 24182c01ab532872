"""The search path of a file whose libraries moved to another folder, or to another package."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.edit import ElfChange, edited
from axletree.binary.elf.facts import ElfFacts, read_elf
from axletree.binary.elf.verify import verify_edit
from axletree.package.libraries.linkage import installed_path, origin_entry, search_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.binary.source import Source


class Relocated(NamedTuple):
    """A file that finds its libraries again."""

    data: bytes
    before: ElfFacts
    """Of the file as it was."""


def library_folders(targets: Iterable[str]) -> dict[str, str]:
    """File name -> folder below site-packages, for the shared libraries among the files of all packages."""
    places = (installed_path(target) for target in targets if ".so" in target)
    return {posixpath.basename(place): posixpath.dirname(place) for place in places if place is not None}


def relocate(source: Source, *, target: str, folders: Mapping[str, str]) -> Relocated | None:
    """Extend the search path of an ELF file by the folders where the libraries that it needs now lie.

    What is there stays, in its order and of its kind (DT_RPATH or DT_RUNPATH), and comes first; a file without a search
    path gets a DT_RPATH, so that what it loads finds the libraries too.

    Args:
        source: the file.
        target: its new path in a wheel.
        folders: as :func:`library_folders` gives them.

    Returns:
        The new content, ``None`` where nothing has to change.

    Raises:
        IntegrityError: it is no ELF file, or a damaged one.
    """
    facts = read_elf(source, name=target)
    place = installed_path(target)
    if place is None:
        return None
    reached = {entry.folder for entry in search_path(target, facts)}
    missing = dict.fromkeys(
        folder for soname in facts.needed if (folder := folders.get(soname)) is not None and folder not in reached
    )
    if not missing:
        return None
    added = (origin_entry(place, folder) for folder in missing)
    change = ElfChange(rpath=(*(facts.runpath or facts.rpath), *added), kind="runpath" if facts.runpath else "rpath")
    result = edited(source, change, name=target)
    verify_edit(source, result, change, name=target)
    return Relocated(result.read(0, result.size), facts)
