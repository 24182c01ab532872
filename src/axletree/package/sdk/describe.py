"""What is said of an SDK inside its own wheels: its libraries, programs, variables, and what the selector knows."""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from axletree.core.globs import glob_matcher
from axletree.package.sdk.payload import is_library
from axletree.package.sdk.shipped import ShippedCommand, ShippedLibrary

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.sdk.manifest import Manifest, Places

_SONAME = re.compile(r"(?:lib)?(?P<name>.+?)\.so(?:\..*)?")


_SCRIPT = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+-]*")
"""Names that a console script can have: installers refuse a wheel with others, such as ``a=b`` or ``a[b]``."""


def shortname(soname: str) -> str:
    """What programs call a library: ``amdhip64`` of ``libamdhip64.so.5``."""
    found = _SONAME.fullmatch(soname)
    return found["name"] if found is not None else soname


def list_libraries(
    files: Mapping[str, ElfFacts], needs: Mapping[str, Sequence[str]], manifest: Manifest
) -> tuple[ShippedLibrary, ...]:
    """The libraries of a platform folder, sorted by path. Of two with one short name the first is called by it.

    First is one that can be loaded alone, that lies higher, whose path is less.
    """
    paths = [path for path, facts in files.items() if is_library(facts)]
    dependent = glob_matcher(manifest.libraries.dependent)
    alone = {path: not dependent(path) for path in paths}
    taken: set[str] = set()
    found: dict[str, ShippedLibrary] = {}
    for path in sorted(paths, key=lambda path: (not alone[path], path.count("/"), path)):
        soname = files[path].soname or posixpath.basename(path)
        name = manifest.libraries.shortnames.get(soname) or shortname(soname)
        if name in taken:
            name = soname
        taken.add(name)
        found[path] = ShippedLibrary(
            shortname=name,
            path=path,
            soname=soname,
            needs=tuple(needs.get(path, ())),
            optional=any(fnmatchcase(name, pattern) for pattern in manifest.libraries.optional),
            standalone=alone[path],
        )
    return tuple(found[path] for path in sorted(found))


def list_commands(
    programs: Iterable[str], manifest: Manifest, *, taken: Collection[str] = ()
) -> tuple[ShippedCommand, ...]:
    """The console scripts of a package, derived from the programs that it really has, sorted by name.

    Args:
        programs: paths of its executable files.
        manifest: which of them become scripts.
        taken: names that packages before it have.
    """
    found: dict[str, ShippedCommand] = {}
    rules = [(glob_matcher(each.files), each) for each in manifest.command]
    for path in sorted(programs, key=lambda path: (path.count("/"), path)):
        rule = next((each for matches, each in rules if matches(path)), None)
        name = posixpath.basename(path)
        if rule is not None and _SCRIPT.fullmatch(name) and name not in taken and name not in found:
            found[name] = ShippedCommand(
                name=name,
                path=path,
                devel=rule.devel,
                args=rule.args,
                expect=rule.expect,
                expect_exit=rule.expect_exit,
            )
    return tuple(found[name] for name in sorted(found))


def first_place(places: Places, present: Collection[str]) -> str | None:
    """The first of some paths that the SDK has."""
    return next((place for place in _all(places) if place == "." or place in present), None)


def environment(manifest: Manifest, present: Collection[str]) -> dict[str, str]:
    """Variables that builds against the SDK want; those whose place this SDK does not have stay out.

    Args:
        manifest: says which.
        present: paths of all files and folders of the SDK.
    """
    found: dict[str, str] = {}
    for variable, places in sorted(manifest.environment.items()):
        texts = _all(places)
        if texts[0].startswith("="):
            found[variable] = texts[0][1:]
        elif (place := first_place(places, present)) is not None:
            found[variable] = "{root}" if place == "." else f"{{root}}/{place}"
    return found


def preload_order(libraries: Iterable[ShippedLibrary]) -> tuple[str, ...]:
    """Short names so that each comes after what it needs; alphabetical where that leaves a choice.

    Libraries that need each other in a circle stand together, by name: a loader copes with that, as they are loaded
    with what they need in any case.
    """
    graph: dict[str, set[str]] = {}
    listed = sorted(libraries, key=lambda library: (library.shortname, library.path))
    names = {library.soname: library.shortname for library in listed}
    for library in listed:
        graph.setdefault(library.shortname, set()).update(
            names[soname] for soname in library.needs if soname in names and names[soname] != library.shortname
        )
    while True:
        sorter = TopologicalSorter(graph)
        try:
            sorter.prepare()
        except CycleError as error:
            first, second = error.args[1][:2]
            graph[second].discard(first)
            continue
        return tuple(_in_order(sorter))


def _in_order(sorter: TopologicalSorter[str]) -> Iterator[str]:
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        yield from ready
        sorter.done(*ready)


def _all(places: Places) -> tuple[str, ...]:
    return (places,) if isinstance(places, str) else places
