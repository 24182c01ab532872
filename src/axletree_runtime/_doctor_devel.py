"""Checks of the devel tree: whether it is whole and current, what is left of others, whether libraries are copies."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._devel import state
from ._doctor import Finding, some_of
from ._doctor_install import read_shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ._host import Host
    from ._sdk import Sdk


def devel_findings(sdk: Sdk, host: Host) -> Iterator[Callable[[], Iterable[Finding]]]:
    """The checks."""
    if sdk.devel_package() is not None:
        yield partial(_tree, sdk)
        yield partial(_copies, sdk, host)


def _tree(sdk: Sdk) -> Iterator[Finding]:
    """What the runtime itself knows of the tree."""
    devel = sdk.devel_package()
    found = state(sdk)
    command = sdk.file.command
    if devel is None:
        return
    if found.installed and found.root is None and not found.leftovers:
        yield Finding("note", "not-expanded", f"{devel.dist} is installed, but not expanded yet", f"{command} init")
    for problem in found.problems:
        what, _, how = problem.rpartition(": run ")
        cure = how.partition(", or ")[0].partition(" to ")[0]
        yield Finding("warning", "devel-tree", what, cure)
    others = [path for path in found.leftovers if path != found.root]
    if others:
        names = some_of([path.name for path in others])
        text = f"{names} in {others[0].parent} {'is' if len(others) == 1 else 'are'} left over from killed runs"
        cure = f"{command} init" if found.installed else f"{command} deinit"
        yield Finding("warning", "devel-leftovers", f"{text}, or were moved aside", cure)
    if found.foreign:
        text = f"{some_of(found.foreign)} in {found.root} do not belong to the SDK"
        yield Finding("note", "devel-foreign", f"{text}, and will be removed with the devel tree")
    yield from _orphans(sdk)


def _orphans(sdk: Sdk) -> Iterator[Finding]:
    """Trees in the user's cache of site directories or versions that are gone."""
    from ._devel_places import cache_places
    from ._journal import read_mark

    devel = sdk.devel_package()
    current = state(sdk).root
    for place in cache_places(sdk, devel.folder) if devel else ():
        mark = read_mark(place.root)
        if place.root == current or mark is None:
            continue
        gone = not Path(mark.site).is_dir()
        if gone or mark.version != sdk.file.version:
            why = f"{mark.site}, which no longer exists" if gone else f"version {mark.version} in {mark.site}"
            text = f"{place.site} contains a devel tree for {why}"
            yield Finding("warning", "orphaned-tree", text, f"rm -r {place.site}")


def _copies(sdk: Sdk, _host: Host) -> Iterator[Finding]:
    """Libraries of the tree that are other files than those of their packages: both could be loaded into a process."""
    root = state(sdk).root
    if root is None:
        return
    copies: list[str] = []
    for package, about in read_shipped(sdk):
        folder = sdk.folder(package)
        for library in about.libraries if folder and not package.targets else ():
            here, there = root / library.path, Path(folder or "", library.path)
            if here.is_file() and there.is_file() and not here.samefile(there):
                copies.append(library.soname)
    if copies:
        text = f"{some_of(copies)} in {root} are copies: a program linked against them may load the library twice"
        yield Finding("warning", "devel-copies", text, f"{sdk.file.command} init --link-mode symlink")
