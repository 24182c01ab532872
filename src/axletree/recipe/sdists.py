"""What a package index offers of a project: the sdist of a version, and what to say where there is none.

PEP 625 names an sdist ``NAME-VERSION.tar.gz``, with no dash in either part. Older ones keep the dashes of their names
(``my-pkg-1.0.zip``), may be other archives, and may have a version as PEP 440 still reads it: ``1.0.2-2`` is the post
release ``1.0.2.post2``. So ``foo-1-2.tar.gz`` is version 2 of ``foo-1`` or 1.post2 of ``foo``: a name is read for the
project that was asked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from axletree.recipe.faults import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIXES = (".tar.gz", ".tgz", ".zip", ".tar.xz", ".tar.bz2", ".tar")
"""Of the sdists that can be unpacked here. Where a version has several, the first of these is taken."""
_OTHER_ARCHIVES = (".tar.z", ".tar.lz", ".tar.lzma", ".tar.zst", ".7z", ".rar")
"""Suffixes, in lower case, of sdists that can't."""
_NAME = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]*[A-Z0-9])?", re.IGNORECASE)
_SHOWN = 3


class Offered(Protocol):
    """A file that some index or folder offers."""

    @property
    def filename(self) -> str:
        """Its name, without folders."""

    @property
    def yanked(self) -> str | bool:
        """Whether installers should pass it over (PEP 592), or why they should."""


_File = TypeVar("_File", bound=Offered)


_ELSEWHERE = "or specify a different index with --index-url or a folder with --find-links"
_REPOSITORY = "build from its repository: give its URL (https://...) instead of the name"


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no sdist."""

    path: tuple[str, ...]
    """Key of the recipe that asks for it."""
    message: str
    hint: str
    instead: str = ""
    """The hint for a command line that names the project, where that is another one than for a recipe."""


def readings(filename: str) -> tuple[tuple[str, Version], ...]:
    """What a file name may say: normalised project and version, as PEP 625 has it first; nothing for other files."""
    if filename.endswith(".whl"):
        try:
            name, version, _, _ = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            return ()
        return ((name, version),)
    suffix = next((suffix for suffix in SUFFIXES if filename.endswith(suffix)), None)
    return () if suffix is None else _split(filename.removesuffix(suffix))


def version_of(filename: str, project: str) -> Version | None:
    """Version of a project that a wheel's or sdist's file name says; ``None`` for files of others."""
    wanted = canonicalize_name(project)
    return next((version for name, version in readings(filename) if name == wanted), None)


def choose_sdist(project: str, version: str, files: Iterable[_File]) -> _File | None:
    """The sdist of a version: one that is not yanked before one that is, then by :data:`SUFFIXES`.

    A name that could be another project's is taken last: a folder may hold both. ``None`` where there is no sdist.
    """
    wanted = Version(version)
    found = [file for file in files if _is_sdist(file.filename) and version_of(file.filename, project) == wanted]
    return min(found, key=_preference, default=None)


def explain_absence(project: str, version: str, files: Iterable[Offered]) -> Absence:
    """Why :func:`choose_sdist` found nothing, and what to do about it."""
    wanted, everything = Version(version), tuple(files)
    if not everything:
        return Absence(
            path=("source", "pypi"),
            message=f"the package index does not contain a project {project!r}",
            hint=f"correct the name, {_ELSEWHERE}",
        )
    versions = {file.filename: found for file in everything if (found := version_of(file.filename, project))}
    yanked = {file.filename for file in everything if file.yanked}
    sdists = {found for name, found in versions.items() if _is_sdist(name) and name not in yanked}
    wheels = [name for name, found in versions.items() if found == wanted]
    unread = [file.filename for file in everything if _is_unread(file.filename, project, wanted)]
    next_to = f"sdists exist for {_near(wanted, sdists)}" if sdists else "no version has an sdist"
    if unread:
        return Absence(
            path=("source", "pypi"),
            message=f"{visible(unread[0])} is not a supported archive ({', '.join(SUFFIXES)})",
            hint='unpack it yourself and use the folder: source = { path = "..." }',
            instead="unpack it yourself and give the folder instead of the name",
        )
    if wheels:
        many = f"{len(wheels)} wheels" if len(wheels) > 1 else wheels[0]
        return Absence(
            path=("source", "pypi"),
            message=f"{project} {version} has no sdist on the package index, only {many}; {next_to}",
            hint=(
                'build from its repository: source = { git = "https://...", ref = "..." }; or use a wheel as it is: '
                'source = { wheel = "https://...", sha256 = "..." }'
            ),
            instead=_REPOSITORY,
        )
    if not versions:
        shown = ", ".join(visible(file.filename) for file in everything[:_SHOWN])
        return Absence(
            path=("source", "pypi"),
            message=f"the package index has neither sdists nor wheels of {project}, only files such as {shown}",
            hint='build from its repository: source = { git = "https://...", ref = "..." }',
            instead=_REPOSITORY,
        )
    if not sdists:
        next_to = f"it has only wheels of {project}: {_near(wanted, set(versions.values()))}"
    return Absence(
        path=("version",),
        message=f"the package index has neither an sdist nor a wheel of {project} {version}; {next_to}",
        hint=f"correct `version`, {_ELSEWHERE}",
        instead=f"name another release, such as {project}=={_newest(sdists)}, {_ELSEWHERE}" if sdists else _REPOSITORY,
    )


def _newest(versions: Iterable[Version]) -> Version:
    """The last release; a pre-release only where there is no other."""
    return max(versions, key=lambda version: (not version.is_prerelease, version))


def _split(stem: str) -> tuple[tuple[str, Version], ...]:
    found: list[tuple[str, Version]] = []
    for match in reversed(list(re.finditer("-", stem))):
        name, version = stem[: match.start()], stem[match.end() :]
        if not _NAME.fullmatch(name):
            continue
        try:
            found.append((canonicalize_name(name), Version(version)))
        except InvalidVersion:
            continue  # `linux-x86_64` of a dumb binary archive, or a part of the name
    return tuple(found)


def _is_sdist(filename: str) -> bool:
    return filename.endswith(SUFFIXES)


def _is_unread(filename: str, project: str, wanted: Version) -> bool:
    """Whether it is an sdist of the version in an archive that can't be unpacked."""
    suffix = next((suffix for suffix in _OTHER_ARCHIVES if filename.lower().endswith(suffix)), None)
    return suffix is not None and (canonicalize_name(project), wanted) in _split(filename[: -len(suffix)])


def _preference(file: Offered) -> tuple[bool, bool, int, str]:
    rank = next(number for number, suffix in enumerate(SUFFIXES) if file.filename.endswith(suffix))
    return bool(file.yanked), len(readings(file.filename)) > 1, rank, file.filename


def _near(wanted: Version, versions: set[Version]) -> str:
    """Versions next to one, and the newest: ``1.17.1, 2.0.0 (the newest)``."""
    ordered = sorted(versions)
    released = [version for version in ordered if not version.is_prerelease] or ordered
    below = [version for version in ordered if version < wanted][-1:]
    above = [version for version in ordered if version > wanted][:1]
    shown = [str(version) for version in (*below, *above) if version != released[-1]]
    return ", ".join([*shown, f"{released[-1]} (the newest)"])
