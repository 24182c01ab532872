"""Whether the files that a build sees are those of an image: the inventory in the lock against that of this machine.

A job that already runs in the image, as those of CI systems do, has no layers to go by. So the packages that are
installed, what is in ``/usr/local`` and ``/opt``, and the compilers and declared tools are compared. What every
container has of its own (``/etc/hosts``, ``/tmp``, caches) is in none of them. What is not known counts as different.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import plural, some_of
from axletree.core.values import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.recipe.image_locks import LockedInventory

FOLDERS = ("/usr/local", "/opt")
"""Folders that no package manager owns: all that is in them is listed."""
TOOLS = ("ar", "as", "bash", "c++", "cc", "cmake", "g++", "gcc", "ld", "make", "ninja")
"""Programs that builds use without declaring them; an inventory has those that are there."""
MOST_FILES = 200
"""Entries of files that a lock has at most, if folders can stand for what is in them."""
_LEAST_DEPTH = 2
_SHOWN = 4
NO_INVENTORY = "the lock has no inventory of the image: lock the recipe again"


def collapsed(files: Mapping[str, str], depth: int | None) -> dict[str, str]:
    """Files with one entry for all that lies below a folder of this depth."""
    if depth is None:
        return dict(sorted(files.items()))
    found: dict[str, str] = {}
    below: dict[str, list[str]] = {}
    for path, what in sorted(files.items()):
        parts = path.split("/")
        if len(parts) - 1 <= depth:
            found[path] = what
        else:
            below.setdefault("/".join(parts[: depth + 1]), []).append(f"{path} {what}")
    for folder, lines in below.items():
        found[folder] = f"{len(lines)} files {digest_of(chr(10).join(lines).encode())[:16]}"
    return dict(sorted(found.items()))


def fitting(files: Mapping[str, str], *, most: int = MOST_FILES) -> tuple[dict[str, str], int | None]:
    """Files as a lock has them, and the depth of their folders: as deep as few enough entries allow."""
    if len(files) <= most:
        return collapsed(files, None), None
    deepest = max(path.count("/") for path in files)
    for depth in range(deepest - 1, _LEAST_DEPTH, -1):
        found = collapsed(files, depth)
        if len(found) <= most:
            return found, depth
    return collapsed(files, _LEAST_DEPTH), _LEAST_DEPTH


def doubts(locked: LockedInventory | None, found: LockedInventory, *, tools: Iterable[str] = ()) -> tuple[str, ...]:
    """Why files are not known to be those of an image; nothing where they are.

    Args:
        locked: the inventory of the image, with its packages.
        found: that of the files, where no folder stands for what is in it.
        tools: programs that the stages declare.
    """
    if locked is None:
        return (NO_INVENTORY,)
    return (*_packages(locked, found), *_files(locked, found), *_tools(locked, found, tools))


def _packages(locked: LockedInventory, found: LockedInventory) -> Iterator[str]:
    if locked.database is None:
        yield "the packages of the image are not known: it has no package database that can be read"
        return
    if found.database is None:
        yield f"the packages here are not known: {locked.database} has no database that can be read"
        return
    if locked.database != found.database:
        yield f"the packages here are those of {found.database}, and the image has those of {locked.database}"
        return
    then, now = _versions(locked.packages), _versions(found.packages)
    names = [name for name, _ in then | now]
    called = {each: ":".join(each) if names.count(each[0]) > 1 else each[0] for each in then | now}
    more = [f"{called[each]} {version}" for each, version in now.items() if each not in then]
    fewer = [f"{called[each]} {version}" for each, version in then.items() if each not in now]
    other = [
        f"{called[each]} {now[each]} instead of {version}"
        for each, version in then.items()
        if each in now and now[each] != version
    ]
    yield from _said("package", more, fewer, other, "have a different version")


def _versions(packages: Sequence[str]) -> dict[tuple[str, str], str]:
    """Package and architecture -> its version, with its state if it is not installed as it should be."""
    found: dict[tuple[str, str], str] = {}
    for line in packages:
        name, version, architecture, state = [*line.split(" ", 3), "", "", ""][:4]
        key = name, architecture
        found[key] = " ".join(filter(None, [found.get(key, ""), version, state]))
    return found


def _files(locked: LockedInventory, found: LockedInventory) -> Iterator[str]:
    now = collapsed(found.files, locked.depth)
    more = [path for path in now if path not in locked.files]
    fewer = [path for path in locked.files if path not in now]
    other = [path for path, what in locked.files.items() if path in now and now[path] != what]
    yield from _said("file", more, fewer, other, "differ")


def _tools(locked: LockedInventory, found: LockedInventory, declared: Iterable[str]) -> Iterator[str]:
    unknown = sorted({*declared} - locked.tools.keys())
    if unknown:
        yield f"the inventory in the lock lacks {some_of(unknown, _SHOWN)}: lock the recipe again"
    pairs = {name: (digest, found.tools.get(name, "")) for name, digest in locked.tools.items()}
    pairs |= {name: ("", digest) for name, digest in found.tools.items() if name not in pairs and name not in unknown}
    more = [name for name, (then, now) in pairs.items() if now and not then]
    fewer = [name for name, (then, now) in pairs.items() if then and not now]
    other = [name for name, (then, now) in pairs.items() if then and now and then != now]
    yield from _said("program", more, fewer, other, "differ")


def _said(what: str, more: Sequence[str], fewer: Sequence[str], other: Sequence[str], differ: str) -> Iterator[str]:
    """The differences of one kind, a line each."""
    one = {"have a different version": "has a different version", "differ": "differs"}
    if more:
        yield f"{plural(len(more), f'additional {what}')}: {some_of(more, _SHOWN)}"
    if fewer:
        yield f"{plural(len(fewer), f'missing {what}')}: {some_of(fewer, _SHOWN)}"
    if other:
        verb = one[differ] if len(other) == 1 else differ
        yield f"{plural(len(other), what)} {verb}: {some_of(other, _SHOWN)}"
