"""The conda packages that ours live beside: which paths and libraries are theirs, and what ours depend on therefore.

The data lies in ``axletree/backends/data/conda-neighbours.toml``. It knows some packages only: of a path that it does
not name, nothing is known.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from axletree.core.globs import glob_matcher
from axletree.core.shipped import read_table, shipped_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts

_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_FAMILY = re.compile(r"(GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)")


class Neighbour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conda package, and what is its own in every environment."""

    package: str
    also: tuple[str, ...] = ()
    """Patterns of packages that have the same files, or that require it."""
    assumed: bool = False
    """Whether only the project's files are known: no channel was seen that has such a package."""
    paths: tuple[str, ...] = ()
    """Patterns (:mod:`axletree.core.globs`) of paths below the prefix."""
    sonames: tuple[str, ...] = ()
    """Patterns of SONAMEs."""
    depend: str | None = None
    """What a package depends on where it needs one of the libraries; see :func:`runtime_depends`."""
    source: str
    """Where this comes from."""

    def called(self, name: str) -> bool:
        """Whether a package is this one, or stands for it."""
        return name == self.package or any(fnmatchcase(name, pattern) for pattern in self.also)


class Neighbours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that are known."""

    neighbour: tuple[Neighbour, ...] = ()
    glibcxx: dict[str, str] = {}
    """Version of ``GLIBCXX`` -> the first release of GCC that has it."""
    cxxabi: dict[str, str] = {}
    """The same for ``CXXABI``."""

    def owners(self, paths: Iterable[str]) -> Iterator[tuple[str, Neighbour]]:
        """Those of some paths that are a neighbour's, with the neighbour; nothing is known of the others."""
        known = glob_matcher([pattern for each in self.neighbour for pattern in each.paths])
        each_of = [(each, glob_matcher(each.paths)) for each in self.neighbour if each.paths]
        for path in paths:
            if known(path):
                yield path, next(each for each, matches in each_of if matches(path))

    def brings(self, soname: str) -> Neighbour | None:
        """Whose a shared library is; ``None`` where that is not known."""
        return next((each for each in self.neighbour if any(fnmatchcase(soname, one) for one in each.sonames)), None)


def parse_neighbours(data: bytes, *, file: str) -> Neighbours:
    """Read the table.

    Raises:
        IntegrityError: it is not in its form.
    """
    return read_table(data, Neighbours, file=file, wrong="the file is not a valid table of neighbours")


CONDA_NEIGHBOURS = shipped_file("conda-neighbours.toml", parse_neighbours)
"""The table that ships."""


def needed_outside(elfs: Mapping[str, ElfFacts]) -> dict[str, tuple[str, ...]]:
    """SONAME -> files that need it, of the libraries that none of these files is.

    Args:
        elfs: path -> facts, of all machine code of a package.
    """
    inside = {path.rpartition("/")[2] for path in elfs} | {facts.soname for facts in elfs.values()}
    found: dict[str, list[str]] = {}
    for path, facts in sorted(elfs.items()):
        for soname in facts.needed:
            if soname not in inside:
                found.setdefault(soname, []).append(path)
    return {soname: tuple(paths) for soname, paths in sorted(found.items())}


def runtime_depends(elfs: Mapping[str, ElfFacts], known: Neighbours) -> tuple[str, ...]:
    """What a package depends on because of the compilers' runtimes that its files need: ``libstdcxx >=13.1``.

    The bounds are those of the symbol versions that are needed: the oldest runtime with which the files load, or the
    latest that the table knows where they need a newer one.

    Args:
        elfs: path -> facts, of all machine code of the package.
        known: the table.
    """
    needed = {soname: known.brings(soname) for soname in needed_outside(elfs)}
    found: list[str] = []
    for neighbour in known.neighbour:
        sonames = [soname for soname, owner in needed.items() if owner is neighbour]
        if neighbour.depend is not None and sonames:
            found.append(_bounded(neighbour.depend, _releases(elfs.values(), sonames, known)))
    return tuple(dict.fromkeys(found))


def releases_defined(facts: ElfFacts, known: Neighbours) -> dict[str, str]:
    """``GLIBCXX`` or ``GCC`` -> the release of GCC that a runtime library is of, by the symbol versions it has."""
    return _newest(facts.versions_defined, known)


def _releases(elfs: Iterable[ElfFacts], sonames: Sequence[str], known: Neighbours) -> dict[str, str]:
    versions = (
        version for facts in elfs for need in facts.versions_needed if need.file in sonames for version in need.versions
    )
    return _newest(versions, known)


def _newest(versions: Iterable[str], known: Neighbours) -> dict[str, str]:
    newest: dict[str, str] = {}
    for version in versions:
        found = _FAMILY.fullmatch(version)
        if found is None:
            continue
        family, number = ("GLIBCXX" if found[1] == "CXXABI" else found[1]), found[2]
        release = _release(number, {"GLIBCXX": known.glibcxx, "CXXABI": known.cxxabi}.get(found[1], {number: number}))
        if release is not None and _order(release) > _order(newest.get(family, "0")):
            newest[family] = release
    return newest


def _release(number: str, table: Mapping[str, str]) -> str | None:
    """The release of a symbol version: the latest known for one that is newer, none for one that is older than all."""
    if number in table:
        return table[number]
    latest = max(table, key=_order, default=number)
    return table[latest] if _order(number) > _order(latest) else None


def _bounded(depend: str, releases: Mapping[str, str]) -> str:
    """A dependency with its bound filled in; without one where no symbol version asks for any."""
    name, _, bound = depend.partition(" ")
    family = next((each for each in ("GLIBCXX", "GCC") if f"{{{each}}}" in bound), None)
    if family is None:
        return depend
    return f"{name} {bound.replace(f'{{{family}}}', releases[family])}" if family in releases else name


@lru_cache(maxsize=256)
def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split("."))) if _RELEASE.fullmatch(release) else ()
