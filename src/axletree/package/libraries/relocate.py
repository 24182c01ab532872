"""Search paths of packages that load each other's libraries, computed from what their files need and open.

Each file gets the entries that lead to what it needs itself, from ``$ORIGIN``: it may be loaded first, so it can't rely
on what it would inherit from others. Entries that are there stay, and stay first.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.binary.elf.edit import ElfChange
from axletree.package.libraries.linkage import installed_path, origin_entry, search_path
from axletree.package.libraries.providers import find_providers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.libraries.providers import Provider

PathKind = Literal["rpath", "runpath"]


class PathPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The search path that a file is to have."""

    path: str
    """Below site-packages."""
    entries: tuple[str, ...]
    """In the loader's order."""
    kind: PathKind
    added: tuple[str, ...] = ()
    changed: bool
    """Whether the file says otherwise now, in its entries or their tag."""

    @property
    def change(self) -> ElfChange | None:
        """The edit that makes it so, or ``None``."""
        return ElfChange(rpath=self.entries, kind=self.kind) if self.changed else None


class Unreached(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A library that nobody provides."""

    soname: str
    files: tuple[str, ...]
    """Who needs or opens it, sorted."""
    opened: bool = False
    """It is only opened at run time, never needed."""
    lookalikes: tuple[str, ...] = ()
    """Files with that SONAME but another name: the loader searches folders by file name."""


class Relocation(msgspec.Struct, frozen=True, kw_only=True):
    """Search paths for the files of packages that are installed together."""

    plans: tuple[PathPlan, ...]
    """One for each file that is loaded, sorted by path."""
    unreached: tuple[Unreached, ...]
    """Sorted by SONAME."""


def plan_search_paths(
    files: Mapping[str, ElfFacts],
    *,
    unread: Iterable[str] = (),
    providers: Sequence[Provider] = (),
    dlopens: Mapping[str, Iterable[str]] | None = None,
    system: Collection[str] = (),
    present: Collection[str] = (),
    kind: PathKind | None = "rpath",
) -> Relocation:
    """Compute the search path of each file.

    Args:
        files: path below site-packages -> facts, of all packages that are produced together.
        unread: paths of libraries of these packages that were not read: they are found, and get no plan.
        providers: who else brings libraries, and in which folders.
        dlopens: path or SONAME of a file -> what it opens by name at run time.
        system: SONAMEs that every system has.
        present: paths of files of other distributions, where known; they decide in which of a provider's folders a
            library lies.
        kind: DT_RPATH or DT_RUNPATH; ``None``: what each file has, and DT_RPATH where it has none, since that serves
            what the file loads as well.
    """
    places = _places(files, unread)
    plans: list[PathPlan] = []
    users: dict[str, set[str]] = {}
    opened: set[str] = set()
    for path, facts in sorted(files.items()):
        if not facts.dynamic or facts.static_program or installed_path(path) != path:
            continue
        opens = opened_names(path, facts, dlopens or {})
        targets: dict[str, tuple[str, ...]] = {}
        for soname in dict.fromkeys([*facts.needed, *opens]):
            if soname in system or soname.startswith("ld-linux"):
                continue
            folders = _folders(path, facts, soname, places, providers, present)
            if folders is None:
                users.setdefault(soname, set()).add(path)
                if soname not in facts.needed:
                    opened.add(soname)
            elif folders:
                targets[soname] = folders
        plans.append(_plan_file(path, facts, targets, kind=kind))
    needed = {soname for facts in files.values() for soname in facts.needed}
    unreached = tuple(
        Unreached(
            soname=soname,
            files=tuple(sorted(paths)),
            opened=soname in opened and soname not in needed,
            lookalikes=tuple(sorted(path for path, facts in files.items() if facts.soname == soname)),
        )
        for soname, paths in sorted(users.items())
    )
    return Relocation(plans=tuple(plans), unreached=unreached)


def opened_names(path: str, facts: ElfFacts, dlopens: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """What a file opens at run time, by declarations for its path, its SONAME or its name."""
    for key in dict.fromkeys([path, facts.soname or "", posixpath.basename(path)]):
        yield from dlopens.get(key, ())


def _places(files: Mapping[str, ElfFacts], unread: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """File name -> folders in which such a library lies, sorted."""
    places: dict[str, set[str]] = {}
    for path in (*(path for path, facts in files.items() if facts.kind == "shared"), *unread):
        if installed_path(path) == path:
            places.setdefault(posixpath.basename(path), set()).add(posixpath.dirname(path))
    return {name: tuple(sorted(folders)) for name, folders in places.items()}


def _folders(
    path: str,
    facts: ElfFacts,
    soname: str,
    places: Mapping[str, tuple[str, ...]],
    providers: Sequence[Provider],
    present: Collection[str],
) -> tuple[str, ...] | None:
    """Folders of which one must be searched, best first; ``()``: none need be; ``None``: nobody brings it."""
    existing = [entry.folder for entry in search_path(path, facts) if entry.folder is not None]
    own = places.get(soname, ())
    if own:
        folder = next((each for each in [*existing, posixpath.dirname(path)] if each in own), own[0])
        return (folder,)
    owners = find_providers(providers, soname)
    if any(owner.kind != "distribution" for owner in owners):
        return ()
    folders = [folder for owner in owners for folder in owner.folders]
    seen = [folder for folder in [*existing, *folders] if posixpath.join(folder, soname) in present]
    if not seen:
        seen = [each for each in existing if any(owner.lies_in(each) for owner in owners)]
    if seen:
        return (seen[0],)
    return tuple(dict.fromkeys(folders)) or (() if owners else None)


def _plan_file(
    path: str, facts: ElfFacts, targets: Mapping[str, tuple[str, ...]], *, kind: PathKind | None
) -> PathPlan:
    now: tuple[PathKind, tuple[str, ...]] = ("runpath", facts.runpath) if facts.runpath else ("rpath", facts.rpath)
    kind = kind or now[0]
    wanted = list(dict.fromkeys(folder for folders in targets.values() for folder in folders))
    entries: list[str] = []
    reached: set[str] = set()
    for entry in search_path(path, facts):
        if entry.text in entries:
            continue
        entries.append(entry.text)
        if entry.folder is not None:
            reached.add(entry.folder)
    added = [origin_entry(path, folder) for folder in wanted if folder not in reached]
    entries += added
    return PathPlan(
        path=path,
        entries=tuple(entries),
        kind=kind,
        added=tuple(added),
        changed=(kind, tuple(entries)) != now and bool(entries or now[1]),
    )
