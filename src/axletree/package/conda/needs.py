"""Which conda packages bring the libraries that a package needs, and which of them it does not depend on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from axletree.package.conda.neighbours import Neighbours, needed_outside
from axletree.package.conda.requires import Names
from axletree.package.libraries.providers import Provider, find_providers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from axletree.binary.elf.facts import ElfFacts


class LibraryOwners(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the owners of libraries."""

    known: Neighbours
    providers: Sequence[Provider]
    """Owners by distribution."""
    names: Names
    """Distribution -> conda packages."""
    others: Mapping[str, str]
    """Library without its suffix (``libz``) -> conda package, for those that the others do not know."""

    def packages(self, soname: str) -> tuple[str, ...]:
        """Patterns of the conda packages that bring a library, the usual one first.

        Empty where nothing is known, or where the library is the system's or the driver's.
        """
        neighbour = self.known.brings(soname)
        if neighbour is not None:
            return (neighbour.package, *neighbour.also)
        found = find_providers(self.providers, soname)
        if any(provider.kind != "distribution" for provider in found):
            return ()
        names = dict.fromkeys(name for provider in found for name in self._called(provider.distributions))
        other = self.others.get(soname.partition(".so")[0])
        return tuple(names) or (() if other is None else (other,))

    def _called(self, distributions: Iterable[str]) -> Iterator[str]:
        """Conda packages of distributions, as far as the table of names has them."""
        for distribution in distributions:
            pattern = distribution.replace("[", "[[]")
            exact = [name for name in self.names if fnmatchcase(name, pattern)]
            for name in (re.sub(r"-cu(?:\d+|\*)$", "", distribution), *exact):
                for spec in self.names.get(name, ()):
                    yield spec.partition(" ")[0]


class UnownedNeed(msgspec.Struct, frozen=True, kw_only=True):
    """A library that no dependency brings."""

    soname: str
    files: tuple[str, ...]
    """Which need it."""
    package: str
    """Who brings it."""


def unowned_needs(
    elfs: Mapping[str, ElfFacts], depends: Iterable[str], owners: LibraryOwners, *, called: Collection[str] = ()
) -> tuple[UnownedNeed, ...]:
    """Libraries whose conda package is known, and is none of the dependencies. Of all others nothing is said.

    Args:
        elfs: path -> facts, of all machine code of a package.
        depends: its dependencies.
        owners: what is known.
        called: the package's own name, and others that stand for a dependency.
    """
    required = {re.split(r"[ =<>!~]", spec, maxsplit=1)[0] for spec in depends} | set(called)
    found: list[UnownedNeed] = []
    for soname, files in needed_outside(elfs).items():
        packages = owners.packages(soname)
        if packages and not any(fnmatchcase(name, pattern) for name in required for pattern in packages):
            found.append(UnownedNeed(soname=soname, files=files, package=packages[0]))
    return tuple(found)
