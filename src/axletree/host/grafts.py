"""Libraries of this machine that packages may take in: what is there, what it is, whose it is."""

from __future__ import annotations

import hashlib
import sys
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.binary.elf.facts import is_elf, read_elf
from axletree.core.errors import IntegrityError
from axletree.host.archive import digest_file, map_file
from axletree.host.libraries import find_library, package_of, search_folders
from axletree.package.libraries.graft import GraftCandidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.host.libraries import FoundLibrary
    from axletree.package.libraries.graft import Find

_LICENCES = Path("/usr/share/doc")
"""Where Debian's packages have the licences of what they hold (Debian Policy 12.5)."""


def library_finder(folders: Sequence[Path]) -> Find:
    """What looks for a library in folders, and remembers what it found."""
    known: dict[tuple[str, int, int, str], GraftCandidate | None] = {}

    def find(soname: str, like: ElfFacts) -> GraftCandidate | None:
        key = (soname, like.machine, like.bits, like.order)
        if key not in known:
            found = find_library(soname, folders, like=like)
            known[key] = None if found is None else _candidate(soname, found)
        return known[key]

    return find


def graft_folders(more: Iterable[str] = ()) -> tuple[Path, ...]:
    """Where a relocation looks for libraries of this machine: not in ``LD_LIBRARY_PATH``, which is in no key.

    Args:
        more: folders that come first.
    """
    return search_folders(map(Path, more), variable=False)


def libraries_digest(folders: Iterable[Path]) -> str:
    """A digest that changes with the libraries in some folders: of their names, sizes and dates, which packages set.

    To read thousands of libraries, of which a package needs a few, would take longer than to bundle it again.
    """
    digest = hashlib.sha256()
    for folder in folders:
        try:
            paths = sorted(path for path in folder.iterdir() if ".so" in path.name)
        except OSError:
            continue  # the loader passes over it too
        for path in paths:
            with suppress(OSError):  # a link that leads nowhere
                status = path.stat()
                digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def list_libraries(patterns: Iterable[str], folders: Iterable[Path]) -> dict[str, str]:
    """File name -> SHA-256 of each library for this machine's processor that the loader would find, sorted.

    Args:
        patterns: of names, with ``*``.
        folders: in the loader's order.

    Raises:
        HostError: one is there, but can't be read.
    """
    wanted = tuple(patterns)
    names: dict[str, None] = {}
    places = tuple(folders)
    for folder in places if wanted else ():
        try:
            listed = sorted(path.name for path in folder.iterdir())
        except OSError:
            continue  # the loader passes over it too
        names.update((name, None) for name in listed if ".so" in name and any(fnmatchcase(name, p) for p in wanted))
    found = {name: find_library(name, places, like=_own_facts()) for name in sorted(names)}
    return {name: digest_file(library.path) for name, library in found.items() if library is not None}


def licence_of(package: str) -> bytes | None:
    """What a system package says of its licences; ``None`` where this machine keeps no such files."""
    try:
        return (_LICENCES / package / "copyright").read_bytes()
    except OSError:
        return None


def _candidate(soname: str, found: FoundLibrary) -> GraftCandidate:
    package = package_of(found.path)
    return GraftCandidate(
        soname=soname,
        facts=found.facts,
        size=found.size,
        sha256=digest_file(found.path),
        origin=str(found.path),
        package=package.name if package else "",
        version=package.version if package else "",
        purl=package.purl if package else "",
    )


@cache
def _own_facts() -> ElfFacts:
    view = map_file(Path(sys.executable).resolve())
    if not is_elf(bytes(view[:4])):
        raise IntegrityError(f"{sys.executable} is not an ELF file; libraries can be copied into wheels only on Linux")
    return read_elf(view, name=sys.executable)
