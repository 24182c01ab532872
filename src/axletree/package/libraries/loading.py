"""Where ``ld.so`` finds a library: by which entry of which file, for files that lie below one site-packages folder.

The rules are glibc's (``_dl_map_object`` in elf/dl-load.c): what is loaded already is found by name or SONAME; then,
unless the file that asks has DT_RUNPATH, DT_RPATH of that file, of whoever loaded it, and so on up to the program; then
DT_RUNPATH of the file that asks, alone. ``dlopen`` asks for the file that calls it. musl inherits both, and treats them
alike; what is found by these rules it finds too, except where two folders hold the same name.
"""

from __future__ import annotations

import posixpath
from collections import deque
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.package.libraries.linkage import search_path

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts


class Reach(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the loader comes to a library."""

    soname: str
    """As asked for."""
    asked_by: str
    """Path of the file that needs or opens it."""
    how: Literal["loaded", "rpath", "runpath"]
    """``loaded``: it is in the process already."""
    path: str | None = None
    """Where it lies; ``None``: known only to be loaded."""
    owner: str | None = None
    """The file whose search path led there: for an inherited DT_RPATH not the one that asks."""
    entry: str | None = None
    """The entry of that search path, as in the file."""


class Loading(msgspec.Struct, frozen=True, kw_only=True):
    """What loading one file brings along."""

    found: tuple[Reach, ...]
    """In the loader's order, each name once."""
    missing: tuple[tuple[str, str], ...]
    """(SONAME, file that needs it) that no entry leads to: for the loader's cache and default folders, or nowhere."""


def find_library(
    files: Mapping[str, ElfFacts],
    path: str,
    soname: str,
    *,
    loaders: Sequence[str] = (),
    loaded: Mapping[str, str | None] | None = None,
    present: Container[str] = (),
) -> Reach | None:
    """How a file comes to a library that it needs or opens; ``None``: no entry leads to it.

    Args:
        files: path below site-packages -> facts.
        path: the file that asks.
        soname: what it asks for.
        loaders: who loaded that file, who loaded that one, up to the program; their DT_RPATH is inherited.
        loaded: name or SONAME of what is in the process -> its path, where known.
        present: paths of further files that exist, such as those of other distributions.
    """
    if loaded is not None and soname in loaded:
        return Reach(soname=soname, asked_by=path, how="loaded", path=loaded[soname])
    own = files[path]
    owners = [path] if own.runpath else [path, *loaders]
    for owner in owners:
        facts = files.get(owner)
        if facts is None or (facts.runpath and owner != path):
            continue
        for entry in search_path(owner, facts):
            if entry.kind == "relative":
                continue  # depends on the working directory
            place = posixpath.join(entry.folder if entry.folder is not None else entry.text, soname)
            place = posixpath.normpath(place)
            if place in files or place in present:
                how: Literal["rpath", "runpath"] = "runpath" if facts.runpath else "rpath"
                return Reach(soname=soname, asked_by=path, how=how, path=place, owner=owner, entry=entry.text)
    return None


def follow_loading(files: Mapping[str, ElfFacts], path: str) -> Loading:
    """What the loader does when a file is started or opened: all it needs, breadth first, each library once.

    Args:
        files: path below site-packages -> facts.
        path: the file.
    """
    names = _names(path, files[path])
    chains: dict[str, tuple[str, ...]] = {path: ()}
    found: list[Reach] = []
    missing: list[tuple[str, str]] = []
    queue = deque([path])
    while queue:
        asker = queue.popleft()
        for soname in files[asker].needed:
            chain = chains[asker]
            reach = find_library(files, asker, soname, loaders=chain, loaded=names)
            if reach is None:
                missing.append((soname, asker))
                names[soname] = None
                continue
            if reach.how == "loaded":
                continue
            found.append(reach)
            names[soname] = reach.path
            if reach.path is not None and reach.path in files and reach.path not in chains:
                names.update(_names(reach.path, files[reach.path]))
                chains[reach.path] = (asker, *chain)
                queue.append(reach.path)
    return Loading(found=tuple(found), missing=tuple(missing))


def _names(path: str, facts: ElfFacts) -> dict[str, str | None]:
    names: dict[str, str | None] = {posixpath.basename(path): path}
    if facts.soname:
        names[facts.soname] = path
    return names
