"""The search paths of an SDK's files, from what they really need, and the proof that all of it can be had.

Packages lie beside each other in one site-packages, so a path may lead from one platform folder into another. Entries
that the build left behind mean folders of the build machine, or folders that no wheel has: they all go.
"""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.facts import ElfFacts
from axletree.core.errors import Problem
from axletree.core.units import and_more
from axletree.package.libraries.linkage import is_loader
from axletree.package.libraries.providers import Provider
from axletree.package.libraries.relocate import opened_names, plan_search_paths
from axletree.package.sdk.payload import is_library
from axletree.package.sdk.shipped import SystemNeed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from axletree.package.libraries.relocate import Unreached
    from axletree.package.sdk.manifest import Manifest


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A platform folder with its ELF files."""

    package: str
    """Name in the manifest; of a folder for GPUs the package that it belongs to."""
    name: str
    """``_rocm_sdk_core``."""
    files: dict[str, ElfFacts]
    """Path below the folder -> facts."""
    device: bool = False
    """Whether only one of several like it is loaded."""


class FolderClosure(msgspec.Struct, frozen=True, kw_only=True):
    """What the files of one folder load."""

    changes: dict[str, ElfChange]
    """Path below the folder -> its new search path."""
    needs: dict[str, tuple[str, ...]]
    """Path of a library -> SONAMEs of the SDK's libraries that it needs or opens."""
    system: tuple[SystemNeed, ...]
    problems: tuple[Problem, ...]


def close(
    folder: Folder, beside: Sequence[Folder], others: Sequence[Folder], manifest: Manifest, *, promised: Collection[str]
) -> FolderClosure:
    """Plan the search paths of a folder's files.

    Args:
        folder: whose files they are.
        beside: folders that are installed with it, as its package requires theirs.
        others: all further folders of the SDK, to say where a library would be.
        manifest: what files open, and what the host brings.
        promised: SONAMEs that every host of the platform has.
    """
    own = {posixpath.join(folder.name, path): _bare(facts) for path, facts in folder.files.items()}
    fixed = [each for each in beside if not each.device]
    providers = tuple(_providers([each for each in beside if each.device]))
    inside = {name for each in (folder, *beside) for name in _names(each)}
    opens = manifest.libraries.opens
    hosts = _host_libraries(own.values(), manifest, promised) - inside
    relocation = plan_search_paths(
        own,
        unread=[
            posixpath.join(each.name, path) for each in fixed for path, facts in each.files.items() if is_library(facts)
        ],
        providers=providers,
        dlopens=opens,
        system=hosts,
    )
    changes = {
        plan.path[len(folder.name) + 1 :]: plan.entries
        for plan in relocation.plans
        if _differs(folder.files[plan.path[len(folder.name) + 1 :]], plan.entries)
    }
    return FolderClosure(
        changes={path: ElfChange(rpath=entries) for path, entries in changes.items()},
        needs={
            path: tuple(sorted(needs))
            for path, facts in folder.files.items()
            if is_library(facts) and (needs := {*facts.needed, *opened_names(path, facts, opens)} & inside)
        },
        system=tuple(_system(folder, hosts - set(promised), manifest)),
        problems=tuple(_problem(each, folder, beside, others) for each in relocation.unreached if not each.opened),
    )


def _bare(facts: ElfFacts) -> ElfFacts:
    return msgspec.structs.replace(facts, rpath=(), runpath=())


def _differs(facts: ElfFacts, entries: tuple[str, ...]) -> bool:
    return bool(facts.runpath) or facts.rpath != entries


def _providers(devices: Sequence[Folder]) -> Iterator[Provider]:
    """Libraries with GPU code, each with all folders that it may lie in."""
    places: dict[str, list[str]] = {}
    for device in devices:
        for path, facts in device.files.items():
            if is_library(facts):
                places.setdefault(posixpath.basename(path), []).append(
                    posixpath.dirname(posixpath.join(device.name, path))
                )
    for name, folders in places.items():
        yield Provider(name=name, sonames=(name,), folders=tuple(dict.fromkeys(folders)))


def _host_libraries(files: Collection[ElfFacts], manifest: Manifest, promised: Collection[str]) -> set[str]:
    """SONAMEs that the host brings, of those that are needed."""
    needed = {soname for facts in files for soname in facts.needed}
    return {
        soname for soname in needed if soname in promised or is_loader(soname) or _listed(soname, manifest) is not None
    }


def _listed(soname: str, manifest: Manifest) -> str | None:
    return next((what for pattern, what in manifest.system.items() if fnmatchcase(soname, pattern)), None)


def _names(folder: Folder) -> Iterator[str]:
    return (posixpath.basename(path) for path, facts in folder.files.items() if is_library(facts))


def _system(folder: Folder, hosts: set[str], manifest: Manifest) -> Iterator[SystemNeed]:
    for soname in sorted(hosts):
        if is_loader(soname):
            continue
        users = tuple(sorted(path for path, facts in folder.files.items() if soname in facts.needed))
        yield SystemNeed(soname=soname, package=_listed(soname, manifest) or "", files=users)


def _problem(missing: Unreached, folder: Folder, beside: Sequence[Folder], others: Sequence[Folder]) -> Problem:
    user = missing.files[0]
    more = f" ({and_more(len(missing.files) - 1, 'file')})" if len(missing.files) > 1 else ""
    owner = next((each for each in others if missing.soname in _names(each)), None)
    if owner is not None:
        hint = f'add "{owner.package}" to `requires` of [[package]] "{folder.package}", or move the library'
        message = f"the file needs {missing.soname}{more}, which only package {owner.package} provides"
        return Problem(file=user, key=missing.soname, message=message, hint=hint)
    searched = ", ".join(dict.fromkeys([folder.name, *(each.name for each in beside)]))
    message = f"the file needs {missing.soname}{more}, which no package installed with it provides ({searched})"
    if missing.lookalikes:
        message += f"; {missing.lookalikes[0]} has that SONAME under a different file name"
    hint = (
        f'add the files that provide it, or name its provider under [system]: "{missing.soname}" = "package of the '
        'host"'
    )
    return Problem(file=user, key=missing.soname, message=message, hint=hint)
