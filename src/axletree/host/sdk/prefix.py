"""Reads an install prefix, and Debian packages whose files make up one."""

from __future__ import annotations

import posixpath
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.core.globs import glob_matcher
from axletree.core.units import some_of
from axletree.host.files import file_errors
from axletree.host.sdk.artifacts import entry_of, refuse
from axletree.host.sdk.scan import same_content, scan
from axletree.host.sdk.together import all_results
from axletree.host.sdk.unpack import unpack_deb
from axletree.package.sdk.artifact_name import ArtifactName
from axletree.package.sdk.components import assigning
from axletree.package.sdk.entries import GENERIC
from axletree.package.sdk.merge import leaves_tree, merge_entries
from axletree.package.sdk.packed import DebControl, parse_control

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from axletree.host.sdk.scan import ScannedFile
    from axletree.package.sdk.entries import Component, SdkEntry
    from axletree.package.sdk.manifest import Debs

PREFIX = "prefix"
"""The artifact that files of a plain prefix belong to."""
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders at the root that systems with merged ``/usr``, all of Debian since 2023, have in ``/usr``."""
_SHOWN = 4


class _Deb(msgspec.Struct, frozen=True, kw_only=True):
    """A package's files."""

    root: Path
    control: DebControl
    shown: str


def read_prefix(
    folder: Path,
    *,
    components: Mapping[Component, tuple[str, ...]] | None = None,
    artifact: str = PREFIX,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[SdkEntry, ...]:
    """The files of an install prefix, sorted by path.

    Links that lead out of it are left out, and noted. Absolute links into it become relative ones.

    Args:
        folder: the prefix.
        components: globs of components, before TheRock's usual ones; what none of these takes is ``run``.
        artifact: what its files are said to belong to.
        note: told what a user should know.

    Raises:
        IntegrityError: a glob is none, or the folder holds what no package can hold. Names all of it.
        HostError: something can't be read.
    """
    component_of = assigning(components or {})
    problems: list[Problem] = []
    entries: list[SdkEntry] = []
    outside: list[str] = []
    absolute = tuple(str(place).strip("/") for place in (folder.resolve(), folder.absolute()))
    for item in scan(folder):
        found = _inside(item, item.path, absolute, outside)
        if found is not None:
            name = ArtifactName(artifact, component_of(item.path), GENERIC)
            entries += entry_of(found, item.path, name, problems, shown=item.place)
    refuse(problems)
    if not entries:
        raise IntegrityError(Problem(file=str(folder), message="the folder is empty"))
    _note_outside(outside, str(folder), note)
    return merge_entries(entries, same=same_content, note=note)


def read_debs(
    folder: Path, debs: Debs, *, cache: Path, note: Callable[[str], None] = lambda _: None, threads: int = 1
) -> tuple[SdkEntry, ...]:
    """The files of Debian packages below the prefix that a manifest names, sorted by path, each path once.

    What lies outside of the prefix, and links that lead out of it, are left out and noted.

    Args:
        folder: holds packages, ``*.deb``, or folders into which one package each was unpacked, called as the package
            (what follows a ``_`` is passed over) or with a ``DEBIAN/control`` in them.
        debs: which package belongs to which artifact, and which file to which component.
        cache: where packages are unpacked, once.
        note: told what a user should know.
        threads: how many packages are unpacked at once.

    Raises:
        IntegrityError: a package is damaged or hostile, is there twice, is of another architecture than the others or
            belongs to no artifact; two bring different content for a path. Names all of one kind.
        HostError: something can't be read, or not be unpacked.
    """
    found = _debs(folder, cache, threads)
    artifacts = _artifacts_of(found, debs, folder)
    component_of = assigning(debs.components)
    problems: list[Problem] = []
    entries: list[SdkEntry] = []
    prefix = debs.prefix.strip("/")
    for deb in found:
        links: list[str] = []
        files: list[str] = []
        for item in scan(deb.root):
            path = _below(item.path, prefix)
            if item.path.startswith("DEBIAN/"):
                continue
            if path is None:
                files += [item.path] if item.kind != "folder" else []
            elif (kept := _inside(item, path, (prefix,), links)) is not None:
                name = ArtifactName(artifacts[deb.control.package], component_of(path), GENERIC)
                entries += entry_of(kept, path, name, problems, shown=f"{deb.shown}: {item.path}")
        if files:
            note(f"{deb.shown}: left out files outside {prefix}: {some_of(files, _SHOWN)}")
        _note_outside(links, deb.shown, note)
    refuse(problems)
    return merge_entries(entries, same=same_content, note=note)


def _below(path: str, prefix: str) -> str | None:
    """A path from the root of the system as one below the prefix; ``None`` where it lies elsewhere."""
    if not prefix:
        return path
    if prefix == "usr" and path.partition("/")[0] in _MERGED:
        return path
    return path[len(prefix) + 1 :] if path.startswith(f"{prefix}/") else None


def _inside(item: ScannedFile, path: str, prefixes: tuple[str, ...], outside: list[str]) -> ScannedFile | None:
    """What was found with a link that stays in the tree; ``None``, and noted, where it leads out of it."""
    if item.kind != "link":
        return item
    link = item.link
    if link.startswith("/"):
        named = posixpath.normpath(link).lstrip("/")
        target = next((below for prefix in prefixes if (below := _below(named, prefix)) is not None), None)
        if target is not None:
            link = posixpath.relpath(target, posixpath.dirname(path) or ".")
    if leaves_tree(path, link):
        outside.append(f"{path} -> {item.link}")
        return None
    return msgspec.structs.replace(item, link=link) if link != item.link else item


def _note_outside(links: list[str], shown: str, note: Callable[[str], None]) -> None:
    if links:
        note(f"{shown}: left out links that lead out of the tree: {some_of(links, _SHOWN)}")


def _debs(folder: Path, cache: Path, threads: int) -> list[_Deb]:
    with file_errors(folder, precise=True):
        places = sorted(folder.iterdir())
        archives = [place for place in places if place.name.endswith(".deb") and place.is_file()]
        archives.sort(key=lambda place: -place.stat().st_size)
        trees = [place for place in places if place.is_dir()]
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        pending = {place: pool.submit(unpack_deb, place, cache) for place in archives}
    problems: list[Problem] = []
    found = [_tree(place, problems) for place in trees]
    refuse(problems)
    unpacked = zip(pending, all_results(pending.values()), strict=True)
    found += [_Deb(root=root, control=control, shown=place.name) for place, (root, control) in unpacked]
    if not found:
        raise IntegrityError(Problem(file=str(folder), message="the folder contains no Debian packages (*.deb)"))
    return sorted(found, key=lambda deb: (deb.control.package, deb.shown))


def _tree(place: Path, problems: list[Problem]) -> _Deb:
    """A folder into which a package was unpacked."""
    control = place / "DEBIAN" / "control"
    name = place.name.partition("_")[0]
    try:
        text = control.read_text(encoding="utf-8", errors="replace") if control.is_file() else f"Package: {name}\n"
        return _Deb(root=place, control=parse_control(text, filename=str(place)), shown=place.name)
    except IntegrityError as error:
        problems += error.problems
    except OSError as error:
        raise HostError(Problem(file=str(control), message=f"the file cannot be read: {error.strerror}")) from error
    return _Deb(root=place, control=DebControl(package=name), shown=place.name)


def _artifacts_of(found: list[_Deb], debs: Debs, folder: Path) -> dict[str, str]:
    """Package -> artifact."""
    tests = [(glob_matcher((glob,)), artifact) for glob, artifact in debs.artifacts.items()]
    artifacts: dict[str, str] = {}
    shown: dict[str, str] = {}
    problems: list[Problem] = []
    for deb in found:
        package = deb.control.package
        artifact = next((artifact for matches, artifact in tests if matches(package)), None)
        if package in shown:
            message = f"package {package} is in two files: {shown[package]} and {deb.shown}"
            problems.append(Problem(file=str(folder), message=message, hint="remove one of them"))
        elif artifact is None:
            hint = f'assign it to an artifact in the manifest, under [debs.artifacts]: "{package}" = "NAME"'
            problems.append(
                Problem(
                    file=deb.shown, message=f"the manifest does not assign package {package} to an artifact", hint=hint
                )
            )
        else:
            artifacts[package] = artifact
        shown[package] = deb.shown
    architectures = {deb.control.architecture: deb.shown for deb in reversed(found)}
    real = {name: deb for name, deb in architectures.items() if name not in {"", "all"}}
    if len(real) > 1:
        listed = ", ".join(f"{name} ({deb})" for name, deb in sorted(real.items()))
        problems.append(
            Problem(file=str(folder), message=f"the folder contains packages for several architectures: {listed}")
        )
    refuse(problems)
    return artifacts
