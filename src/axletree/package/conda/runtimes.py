"""The compilers' runtimes of a machine as conda packages, for environments of that machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts
from axletree.package.conda.model import CondaFile, CondaPackage
from axletree.package.conda.neighbours import releases_defined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.package.conda.neighbours import Neighbours

_BOUND = re.compile(r">=(\d+(?:\.\d+)*)")


class RuntimeLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """A library of the machine."""

    facts: ElfFacts
    data: bytes


def runtime_sonames(known: Neighbours) -> tuple[str, ...]:
    """The libraries that packages get a dependency for where they need them."""
    return tuple(soname for each in known.neighbour if each.depend is not None for soname in each.sonames)


def runtime_packages(
    libraries: Mapping[str, RuntimeLibrary], known: Neighbours, *, subdir: str
) -> Iterator[tuple[CondaPackage, tuple[CondaFile, ...]]]:
    """A package for each runtime that the machine has, in the version that its symbols are of.

    Args:
        libraries: SONAME -> library.
        known: the table.
        subdir: ``linux-64`` ...
    """
    for neighbour in known.neighbour:
        own = {soname: libraries[soname] for soname in neighbour.sonames if soname in libraries}
        if neighbour.depend is None or not own:
            continue
        releases = [releases_defined(library.facts, known) for library in own.values()]
        versions = [each[family] for each in releases for family in ("GLIBCXX", "GCC") if family in each]
        bound = _BOUND.search(neighbour.depend)
        package = CondaPackage(
            name=neighbour.package, version=(versions or [bound[1] if bound else "0"])[0], build="0_host", subdir=subdir
        )
        files = [CondaFile(path=f"lib/{soname}", data=library.data) for soname, library in own.items()]
        yield package, tuple(files)
