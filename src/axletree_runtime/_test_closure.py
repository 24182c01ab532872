"""What libraries need and where they look for it, read from the files: nothing is loaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._elf import read_elf
from ._testing import Case, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._sdk import Library, SdkPackage
    from ._testing import Bench, Outcome


@dataclass(frozen=True)
class Shipped:
    """A library of an installed package."""

    library: Library
    dist: str
    path: Path


def known_libraries(bench: Bench) -> list[Shipped]:
    """The libraries of all packages for run time that are installed."""
    return [
        Shipped(library, package.dist, folder / library.path)
        for package, folder in bench.installed.items()
        for library in bench.sdk.shipped(package).libraries
    ]


def closure_cases(bench: Bench) -> Iterator[Case]:
    """Whether all that the files of a package need of the SDK is found."""
    for package, folder in bench.installed.items():
        yield Case("closure", package.dist, "search paths", partial(_closure, bench, package, folder))


def find_gaps(bench: Bench, path: Path) -> tuple[dict[str, list[SdkPackage]], list[str]]:
    """What is missing among all that a file needs, directly or not.

    Returns:
        Libraries of the SDK that are not installed with the packages that have them, and libraries that this system
        lacks.
    """
    ours: dict[str, list[SdkPackage]] = {}
    system: set[str] = set()
    places: dict[str, Path] = {}
    for each in known_libraries(bench):
        places.setdefault(each.library.soname, each.path)
    seen: set[str] = set()
    left = [path]
    while left:
        for soname in set(_needed(left.pop())) - seen:
            seen.add(soname)
            if soname in places:
                left.append(places[soname])
            elif soname in bench.missing:
                system.add(soname)
            elif soname not in bench.system_needs and (owners := _owners(bench, soname)):
                ours[soname] = owners
    return ours, sorted(system)


def _needed(path: Path) -> tuple[str, ...]:
    try:
        elf = read_elf(path)
    except (OSError, ValueError):
        return ()
    return elf.needed if elf else ()


def _owners(bench: Bench, soname: str) -> list[SdkPackage]:
    """Packages that have a library, installed or not; those that any GPU uses first."""
    stem = soname.partition(".so")[0]
    names = {stem, stem[3:]}
    owners = [each for each in bench.sdk.file.packages if names & set(each.shortnames) and each.kind != "devel"]
    return sorted(owners, key=lambda each: bool(each.targets))


def _closure(bench: Bench, package: SdkPackage, folder: Path) -> Outcome:
    """Each library of the SDK that a file needs lies where that looks, or is loaded before it."""
    there = (each for each in known_libraries(bench) if each.path.is_file())  # what is gone, other tests tell
    sonames = {each.library.soname: each for each in there}
    before = {folder / each.path: set(each.needs) for each in bench.sdk.shipped(package).libraries}
    problems: list[str] = []
    for path in _files(folder):
        try:
            elf = read_elf(path)
        except ValueError as error:
            problems.append(str(error))
            continue
        if elf is None:
            continue
        name = path.relative_to(folder)
        problems += [f"{name} searches {each}, which is outside the SDK" for each in elf.search if each[:1] == "/"]
        for soname in elf.needed:
            known = sonames.get(soname)
            if known is None or soname in before.get(path, ()) or _is_found(path, elf.search, soname):
                continue
            problems.append(
                f"{name} needs {soname} from {known.dist}, but only searches {', '.join(elf.search) or 'no folder'}"
            )
    return some(problems, "rebuild the packages: their search paths are wrong")


def _is_found(path: Path, search: tuple[str, ...], soname: str) -> bool:
    """Whether a search path leads to a library; ``$ORIGIN`` is the folder that the file really lies in."""
    origin = str(path.parent)
    folders = (each.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for each in search)
    return any(Path(folder, soname).is_file() for folder in folders)


def _files(folder: Path) -> Iterator[Path]:
    for above, folders, names in os.walk(folder):
        folders.sort()
        yield from (path for name in sorted(names) if not (path := Path(above, name)).is_symlink())
