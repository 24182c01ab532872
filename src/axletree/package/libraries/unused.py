"""Needed libraries from which a file takes nothing: ``-Wl,--no-as-needed`` records all that stand on the command line.

A library counts as used where a symbol version of the file names it, or where it, or what it alone leads to, exports a
name that the file leaves undefined, weakly or not, whoever else has that name: which of two the loader takes is decided
when the file runs. A program may have copies of a library's data, so there its own names count too. What is needed so
that a third file finds its symbols counts as used as well. What can't be read is not known, and nothing is said of it.

That no symbol is used does not prove that a library is of no use: it may be loaded for what its constructors do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.grouping import grouped
from axletree.package.libraries.demand import is_bearable, wheel_closure
from axletree.package.libraries.linkage import is_loader, library_paths
from axletree.package.libraries.providers import find_providers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from axletree.binary.elf.facts import ElfFacts
    from axletree.binary.elf.symbols import Symbols
    from axletree.package.libraries.providers import Provider

_OF_LINKERS = frozenset({b"_init", b"_fini", b"_edata", b"_end", b"_start", b"__bss_start", b"__end__"})
"""Names that linkers define in whatever they make."""
_VERSIONED = re.compile(r"lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s|gomp|gfortran|quadmath)\.so\.\d+")
"""Libraries that give all their symbols versions: who uses one without needing it says so."""


class UnusedNeed(msgspec.Struct, frozen=True, kw_only=True):
    """A library that files need and take no symbol from."""

    soname: str
    files: tuple[str, ...]
    """The files that need it, sorted."""


def symbols_taken(facts: ElfFacts, symbols: Symbols, exports: Callable[[bytes], object]) -> tuple[str, ...]:
    """The symbols that a file may take from a library, sorted.

    Args:
        facts: of the file.
        symbols: of the file.
        exports: whether the library exports a name.
    """
    names = symbols.undefined | symbols.optional
    if facts.kind == "executable" or facts.interpreter is not None:
        names |= symbols.exported
    return tuple(sorted(name.decode("utf-8", "backslashreplace") for name in names - _OF_LINKERS if exports(name)))


def names_version_of(facts: ElfFacts, soname: str) -> bool:
    """Whether a symbol version of a file is one of a library: linkers only note those of symbols that are used."""
    return any(need.file == soname for need in facts.versions_needed)


def driver_exports(soname: str, providers: Iterable[Provider]) -> re.Pattern[str] | None:
    """What the names of all symbols of a driver's library begin with; ``None`` where that is not known."""
    for provider in find_providers(providers, soname):
        pattern = provider.symbols_of(soname) if provider.kind == "driver" else None
        if pattern is not None:
            return re.compile(pattern)
    return None


def driver_symbols_taken(facts: ElfFacts, soname: str, providers: Iterable[Provider]) -> tuple[str, ...] | None:
    """The symbols that a file takes from a driver's library, which need not be there; ``None`` where not known."""
    pattern = driver_exports(soname, providers)
    return None if pattern is None else tuple(filter(pattern.match, facts.driver_symbols))


def find_unused_drivers(elfs: Mapping[str, ElfFacts], providers: Iterable[Provider]) -> tuple[UnusedNeed, ...]:
    """The libraries of drivers that files need without a use, sorted by SONAME.

    Args:
        elfs: path -> facts, of a wheel or tree.
        providers: who brings which libraries.
    """
    providers = tuple(providers)
    return tuple(
        UnusedNeed(soname=soname, files=tuple(sorted(files)))
        for soname in sorted({soname for facts in elfs.values() for soname in facts.needed})
        if driver_exports(soname, providers) is not None
        if not any(
            driver_symbols_taken(facts, soname, providers) for facts in elfs.values() if soname not in facts.needed
        )
        if (files := [path for path, facts in elfs.items() if _is_idle(facts, soname, providers)])
    )


def _is_idle(facts: ElfFacts, soname: str, providers: tuple[Provider, ...]) -> bool:
    if soname not in facts.needed or names_version_of(facts, soname):
        return False
    return not driver_symbols_taken(facts, soname, providers)


def find_unused(elfs: Mapping[str, ElfFacts], read: Callable[[str], Symbols | None]) -> tuple[UnusedNeed, ...]:
    """The libraries of a wheel that other files of it need without a use, sorted by SONAME.

    Files that export nothing are there to load others, and are passed over; so are libraries that export nothing.

    Args:
        elfs: path -> facts.
        read: gives the symbols of a file, or ``None`` where they are not known; asked once for each.
    """
    files = {path: facts for path, facts in elfs.items() if facts.dynamic and facts.architecture is not None}
    names = library_paths(files)
    asked = {path: tuple(_askable(facts, names)) for path, facts in files.items()}
    if not any(asked.values()) or not is_bearable(files, tuple(files)):
        return ()
    wheel = _Wheel(files, names, read)
    found = ((soname, path) for path, sonames in asked.items() for soname in sonames if wheel.is_unused(path, soname))
    return tuple(
        UnusedNeed(soname=soname, files=tuple(sorted(users))) for soname, users in sorted(grouped(found).items())
    )


def _askable(facts: ElfFacts, names: Mapping[str, str]) -> Iterator[str]:
    for soname in dict.fromkeys(facts.needed):
        if soname in names and not names_version_of(facts, soname):
            yield soname


class _Wheel:
    """What the files of a wheel lead to and export, each looked at once."""

    def __init__(
        self, files: Mapping[str, ElfFacts], names: Mapping[str, str], read: Callable[[str], Symbols | None]
    ) -> None:
        self.files, self.names, self._read = files, names, read
        self._symbols: dict[str, Symbols | None] = {}
        self._closures: dict[str, set[str]] = {}

    def symbols(self, path: str) -> Symbols | None:
        if path not in self._symbols:
            self._symbols[path] = self._read(path)
        return self._symbols[path]

    def closure(self, path: str) -> set[str]:
        if path not in self._closures:
            self._closures[path] = wheel_closure(path, self.files, self.names)
        return self._closures[path]

    def is_unused(self, path: str, soname: str) -> bool:
        library = self.names[soname]
        if library == path:
            return False
        others = {self.names[name] for name in self.files[path].needed if name in self.names and name != soname}
        reached = {path}.union(*(self.closure(other) for other in others))
        behind = self.closure(library) - reached
        if library not in behind or self.outside(behind) - self.outside(reached):
            return False  # it comes anyway, or what it brings from elsewhere is not known
        user, exported = self.symbols(path), self.exported(behind)
        if user is None or exported is None or not (user.exported - _OF_LINKERS) or not self.exported({library}):
            return False
        return not symbols_taken(self.files[path], user, exported.__contains__) and not self.relied_on(path, library)

    def exported(self, paths: Collection[str]) -> frozenset[bytes] | None:
        """What files export together; ``None`` where that of one is not known."""
        found = [self.symbols(path) for path in paths]
        known = [symbols.exported for symbols in found if symbols is not None]
        return frozenset[bytes]().union(*known) - _OF_LINKERS if len(known) == len(found) else None

    def outside(self, paths: Iterable[str]) -> set[str]:
        """The libraries of others that files need, but those whose use shows."""
        needed = {soname for path in paths for soname in self.files[path].needed if soname not in self.names}
        return {soname for soname in needed if not (_VERSIONED.fullmatch(soname) or is_loader(soname))}

    def leads(self, path: str, library: str, *, but_by: str) -> bool:
        """Whether a file is or needs a library, itself or through others, but for what one user of it needs."""
        seen, waiting = {path, but_by}, [path]
        while waiting:
            reached = {self.names[name] for name in self.files[waiting.pop()].needed if name in self.names}
            if library in {path, *reached}:
                return True
            waiting += reached - seen
            seen |= reached
        return False

    def relied_on(self, user: str, library: str) -> bool:
        """Whether another file may find the library's symbols only because this user loads it."""
        exported = self.exported({library}) or frozenset()
        for path, facts in self.files.items():
            if path == user or self.leads(path, library, but_by=user):
                continue
            symbols = self.symbols(path)
            if symbols is None or symbols_taken(facts, symbols, exported.__contains__):
                return True
        return False
