"""Shared libraries of this machine: where the loader would find one, and which system package brought it."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts, is_elf, read_elf
from axletree.core.errors import IntegrityError
from axletree.environment.loader import DEFAULT_FOLDERS, libraries_cached
from axletree.host.archive import map_file
from axletree.host.run import output_of
from axletree.package.sbom.write import debian_purl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TIMEOUT = 60


class FoundLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """A library of this machine."""

    path: Path
    """As found, links not followed."""
    facts: ElfFacts
    size: int
    """Bytes."""


class SystemPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package of the system's package manager."""

    name: str
    version: str
    purl: str


def search_folders(extra: Iterable[Path] = (), *, variable: bool = True) -> tuple[Path, ...]:
    """Folders in the loader's order: given ones, ``LD_LIBRARY_PATH``, those of its cache, the default ones.

    Args:
        extra: searched first.
        variable: whether the user's ``LD_LIBRARY_PATH`` counts.
    """
    listed = os.environ.get("LD_LIBRARY_PATH", "").split(":") if variable else []
    default = [Path(part) for part in DEFAULT_FOLDERS]
    return tuple(dict.fromkeys([*extra, *(Path(part) for part in listed if part), *_cached_folders(), *default]))


def find_library(soname: str, folders: Iterable[Path], *, like: ElfFacts) -> FoundLibrary | None:
    """The first library of that name for the same processor, class and byte order; ``None`` where there is none.

    Raises:
        HostError: one is there, but can't be read.
    """
    if "/" in soname or soname in {"", ".", ".."}:
        return None
    for folder in folders:
        path = folder / soname
        if not path.is_file():
            continue
        view = map_file(path)
        if not is_elf(bytes(view[:4])):
            continue  # a linker script, such as libc.so
        try:
            facts = read_elf(view, name=str(path))
        except IntegrityError:
            continue
        if (facts.machine, facts.bits, facts.order) == (like.machine, like.bits, like.order):
            return FoundLibrary(path=path, facts=facts, size=len(view))
    return None


def package_of(path: Path) -> SystemPackage | None:
    """The system package that a file belongs to; ``None`` where the package manager (dpkg) knows nothing of it."""
    if shutil.which("dpkg-query") is None:
        return None
    for candidate in _spellings(path):
        found = _query("dpkg-query", "--search", str(candidate))
        name = found.partition(": ")[0].split(",")[0].strip() if found else ""
        if not name or name.startswith("diversion "):
            continue
        described = _query("dpkg-query", "--show", "--showformat=${Package} ${Version} ${Architecture}", name)
        parts = described.split()
        if len(parts) == 3:
            return SystemPackage(name=parts[0], version=parts[1], purl=debian_purl(*parts))
    return None


@cache
def _cached_folders() -> tuple[Path, ...]:
    program = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    listing = _query(program, "-p") if program else ""
    return tuple(dict.fromkeys(Path(path).parent for _, path in libraries_cached(listing)))


def _spellings(path: Path) -> Iterator[Path]:
    """A file under the names that a package may list: with links followed, and without ``/usr`` (merged systems)."""
    for candidate in dict.fromkeys((path, path.resolve())):
        yield candidate
        text = str(candidate)
        yield Path(text.removeprefix("/usr")) if text.startswith("/usr/lib") else Path(f"/usr{text}")


def _query(*command: str) -> str:
    return output_of(command, environ={**os.environ, "LC_ALL": "C"}, seconds=_TIMEOUT)
