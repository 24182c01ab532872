"""What a wheel must take in so that it can be loaded on a clean machine, and what it must leave to others.

A needed library belongs to the wheel, to the system (its platform tag promises it), to a provider (torch, NVIDIA's,
ROCm's and Intel's distributions), to a driver, or to nobody; only the last kind is grafted: copied into ``NAME.libs``
under a name with its digest, as auditwheel does, so that two wheels never meet in one process under one SONAME.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.binary.elf.facts import ElfFacts
from axletree.core.errors import IntegrityError, Problem
from axletree.core.units import format_bytes
from axletree.package.libraries.linkage import installed_path, is_loader, library_paths, origin_entry
from axletree.package.libraries.providers import find_providers
from axletree.package.sbom.write import Component
from axletree.plan.actions.relocate import GraftedLibrary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.package.libraries.providers import Provider

OPENMP = re.compile(r"lib(gomp|iomp5|omp)\.so(\.\d+)*")
"""OpenMP runtimes: two in one process oversubscribe its cores, or deadlock after a fork."""


class GraftCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A library outside of the wheel that could be taken in."""

    soname: str
    """The name that it is needed by."""
    facts: ElfFacts
    size: int
    sha256: str
    """Hexadecimal digest of the file."""
    origin: str
    """Where it was found, for messages."""
    package: str = ""
    """The system package that brought it, where that is known."""
    version: str = ""
    purl: str = ""


Find = Callable[[str, ElfFacts], GraftCandidate | None]
"""Looks for a library on the machine, for the processor of the file that needs it."""


class Graft(msgspec.Struct, frozen=True, kw_only=True):
    """A library that is taken in."""

    library: GraftCandidate
    path: str
    """Where it goes in the wheel."""

    @property
    def name(self) -> str:
        """Its new file name, which is its new SONAME as well."""
        return self.path.rpartition("/")[2]


class Relink(msgspec.Struct, frozen=True, kw_only=True):
    """What must change in one file."""

    path: str
    """In the wheel."""
    needed: dict[str, str]
    """Old name of a needed library -> new one."""
    search: tuple[str, ...]
    """All entries of its search path."""
    kind: Literal["rpath", "runpath"]
    soname: str | None = None
    """New SONAME, for a graft."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A needed library that was not copied."""

    soname: str
    owner: str
    """``torch``, ``NVIDIA driver``, ``libpython`` ..."""
    declared: bool
    """Whether the wheel requires a distribution that provides it; true for libraries that no distribution may
    provide."""
    files: tuple[str, ...]


class Grafting(msgspec.Struct, frozen=True, kw_only=True):
    """The whole change."""

    grafts: tuple[Graft, ...]
    relinks: tuple[Relink, ...]
    """Of the wheel's own files and of the grafts, sorted by path."""
    left: tuple[LeftOut, ...]


class _Closure(msgspec.Struct, kw_only=True):
    taken: dict[str, GraftCandidate]
    left: dict[str, tuple[str, bool]]
    missing: dict[str, list[str]]
    users: dict[str, set[str]]


def plan_grafts(
    elfs: Mapping[str, ElfFacts],
    *,
    stem: str,
    system: Iterable[str],
    providers: Sequence[Provider],
    required: Iterable[str],
    find: Find,
    limit: int,
) -> Grafting:
    """Decide what is taken in and what changes for it.

    Args:
        elfs: path in the wheel -> facts.
        stem: normalised project name with underscores; the folder is ``STEM.libs``.
        system: SONAMEs that the platform tag promises.
        providers: who brings which libraries.
        required: what the wheel requires, as ``required_names`` gives it.
        find: looks for a library outside.
        limit: most bytes of one graft.

    Raises:
        IntegrityError: libraries that are nowhere, larger than the limit, or needed by files whose place is not known
            before they are installed. Lists all, each with the file that needs it.
    """
    closure = _follow(elfs, frozenset(system), providers, frozenset(required), find)
    folder = f"{stem}.libs"
    grafts = {
        soname: Graft(library=library, path=f"{folder}/{hashed_name(soname, library.sha256)}")
        for soname, library in sorted(closure.taken.items())
    }
    problems = [*_missing(closure), *_too_large(grafts.values(), closure, limit), *_placeless(elfs, grafts)]
    if problems:
        raise IntegrityError(*problems)
    relinks = [*_relink_users(elfs, grafts, folder), *_relink_grafts(grafts)]
    return Grafting(
        grafts=tuple(grafts.values()),
        relinks=tuple(sorted(relinks, key=lambda relink: relink.path)),
        left=tuple(
            LeftOut(soname=soname, owner=owner, declared=declared, files=tuple(sorted(closure.users[soname])))
            for soname, (owner, declared) in sorted(closure.left.items())
        ),
    )


def grafted_library(graft: Graft) -> GraftedLibrary:
    """A graft as reports and records have it."""
    library = graft.library
    return GraftedLibrary(
        soname=library.soname,
        path=graft.path,
        size=library.size,
        sha256=library.sha256,
        origin=library.origin,
        package=library.package,
        version=library.version,
        purl=library.purl,
    )


def graft_components(grafts: Iterable[Graft]) -> tuple[Component, ...]:
    """Grafts as parts of a bill of materials."""
    return tuple(
        Component(
            name=graft.library.soname,
            version=graft.library.version,
            origin="bundled",
            purl=graft.library.purl,
            sha256=graft.library.sha256,
            paths=(graft.path,),
            note=f"from the system package {graft.library.package}" if graft.library.package else "",
        )
        for graft in grafts
    )


def _follow(
    elfs: Mapping[str, ElfFacts],
    system: frozenset[str],
    providers: Sequence[Provider],
    required: frozenset[str],
    find: Find,
) -> _Closure:
    """Walk from the wheel's files to all libraries that they need, directly or through grafts."""
    inside = library_paths(elfs)
    closure = _Closure(taken={}, left={}, missing={}, users={})
    framework = framework_of(elfs, providers)
    waiting = [(path, facts) for path, facts in sorted(elfs.items()) if facts.architecture is not None]
    while waiting:
        path, facts = waiting.pop()
        for soname in facts.needed:
            if soname in inside or soname in system or is_loader(soname):
                continue
            closure.users.setdefault(soname, set()).add(path)
            if soname in closure.taken or soname in closure.left:
                continue
            if owner := owner_of(soname, providers, required, framework):
                closure.left[soname] = owner
            elif (library := find(soname, facts)) is not None:
                closure.taken[soname] = library
                waiting.append((soname, library.facts))
            else:
                closure.missing.setdefault(soname, []).append(path)
    return closure


def owner_of(
    soname: str, providers: Sequence[Provider], required: frozenset[str], framework: str | None
) -> tuple[str, bool] | None:
    """Who outside of a wheel brings a library, and whether the wheel requires it; ``None``: nobody for sure."""
    found = find_providers(providers, soname)
    for provider in found:
        if provider.kind in {"driver", "system"} or provider.declared_by(required):
            return provider.name, True
    exclusive = next((provider for provider in found if provider.exclusive), None)
    if exclusive is not None:
        return exclusive.name, exclusive.kind != "distribution"
    if framework and OPENMP.fullmatch(soname):
        return framework, True
    if soname.startswith("libpython"):
        return "libpython", True
    return None


def framework_of(elfs: Mapping[str, ElfFacts], providers: Sequence[Provider]) -> str | None:
    """The framework whose libraries the wheel links to: it has loaded its OpenMP runtime before the wheel's files."""
    needed = {soname for facts in elfs.values() for soname in facts.needed}
    return next((p.name for p in providers if p.loads and any(p.brings(soname) for soname in needed)), None)


def hashed_name(soname: str, sha256: str) -> str:
    """The name of a graft: ``libfoo.so.1`` -> ``libfoo-0a1b2c3d.so.1``."""
    base, dot, rest = soname.partition(".so")
    return f"{base}-{sha256[:8]}{dot}{rest}"


def _missing(closure: _Closure) -> Iterator[Problem]:
    for soname, files in sorted(closure.missing.items()):
        yield Problem(
            file=files[0],
            key=soname,
            message="this library is needed, but it is neither in the wheel nor on this machine",
            hint=(
                "run `axletree repair` on the machine that built the wheel, or add the library's folder with "
                "--library-path"
            ),
        )


def _too_large(grafts: Iterable[Graft], closure: _Closure, limit: int) -> Iterator[Problem]:
    for graft in grafts:
        library = graft.library
        if library.size > limit:
            user = min(closure.users[library.soname])
            yield Problem(
                file=user,
                key=library.soname,
                message=(
                    f"repair would copy {library.origin} ({format_bytes(library.size)}), which exceeds the limit of "
                    f"{format_bytes(limit)} per library"
                ),
                hint="add the distribution that provides the library to the requirements, or raise --max-graft",
            )


def _placeless(elfs: Mapping[str, ElfFacts], grafts: Mapping[str, Graft]) -> Iterator[Problem]:
    for path, facts in sorted(elfs.items()):
        if installed_path(path) is None and any(soname in grafts for soname in facts.needed):
            wanted = ", ".join(soname for soname in facts.needed if soname in grafts)
            yield Problem(
                file=path,
                key=wanted,
                message=(
                    "the script needs a library from the wheel, but scripts are installed outside site-packages, at a "
                    "path that is not known in advance"
                ),
                hint="move the program into the package, and start it through an entry point (project.scripts)",
            )


def _relink_users(elfs: Mapping[str, ElfFacts], grafts: Mapping[str, Graft], folder: str) -> Iterator[Relink]:
    for path, facts in elfs.items():
        needed = {soname: grafts[soname].name for soname in facts.needed if soname in grafts}
        place = installed_path(path)
        if needed and place is not None:
            entry = origin_entry(place, folder)
            present = facts.runpath or facts.rpath
            yield Relink(
                path=path,
                needed=needed,
                search=tuple(dict.fromkeys((entry, *present))),
                kind="runpath" if facts.runpath else "rpath",
            )


def _relink_grafts(grafts: Mapping[str, Graft]) -> Iterator[Relink]:
    """A graft looks for others beside itself; the search path that it brought belongs to the build machine."""
    for graft in grafts.values():
        needed = {soname: grafts[soname].name for soname in graft.library.facts.needed if soname in grafts}
        yield Relink(
            path=graft.path,
            needed=needed,
            search=("$ORIGIN",) if needed else (),
            kind="rpath",
            soname=graft.name,
        )
