"""Where a project's files are: on a package index, in an archive, in a folder, in a git repository."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from axletree.core.errors import AxletreeError, HostError, IntegrityError, UsageError
from axletree.core.setting import LOCK
from axletree.core.units import format_bytes, plural
from axletree.host.archive import digest_file
from axletree.host.fetch import measure
from axletree.host.gitfetch import fetch_git, list_tags, resolve_ref
from axletree.host.indexes import IndexSettings, file_url, local_path, on_this_machine, redact
from axletree.host.project_tree import read_archive, read_folder
from axletree.host.simple_api import RemoteFile, list_files
from axletree.host.source_tree import describe
from axletree.package.drift.tags import parse_describe, tag_version
from axletree.package.project.tree import SourceTree
from axletree.recipe.addresses import is_git_address
from axletree.recipe.sdists import SUFFIXES, choose_sdist, explain_absence, readings, version_of

if TYPE_CHECKING:
    from axletree.recipe.locks import SourceLock

_PROJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_BUILT = ("build", "dist")
"""What building leaves beside a project; excluded before it is there, so that the recipe is the same afterwards."""
_ENVIRONMENTS = (".venv", "venv", ".tox", ".nox")


class ProjectSource(msgspec.Struct, frozen=True, kw_only=True):
    """A project's files, and the keys of a recipe's ``source`` that name them."""

    tree: SourceTree
    keys: tuple[tuple[str, str | bool | tuple[str, ...]], ...]
    origin: str
    """What was read, for people."""
    name: str
    """What the project is called where its files don't say."""
    version: str | None = None
    """What git, the index or the file's name says."""
    version_at: str = ""


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """What finding a project needs of this machine."""

    environ: Mapping[str, str]
    settings: IndexSettings
    cache: Path
    downloads: Path
    offline: bool
    note: Callable[[str], None]


def find_project(target: str, places: Places, *, beside: Path) -> ProjectSource:
    """The files of what a user names: ``NAME``, ``NAME==VERSION``, an archive, a folder, a git address.

    Args:
        target: What they named.
        places: What is needed of this machine.
        beside: Folder that paths in the recipe are relative to.

    Raises:
        UsageError: there is nothing of that name, or it is not one of these.
        HostError: it can't be had.
        IntegrityError: what came is no sdist.
    """
    path = Path(target)
    if path.is_dir():
        return _folder(path, places, beside)
    if path.is_file() and target.endswith(SUFFIXES):
        return _archive(path)
    if "://" in target:
        return _repository(target, places)
    if path.exists() or "/" in target or target.endswith(SUFFIXES):
        if path.exists():
            raise UsageError(f"{target} is not an archive", hint=f"archive names end with one of {', '.join(SUFFIXES)}")
        hint = "check the path; to build an sdist of the index, give its name without a path or a suffix: NAME==VERSION"
        raise UsageError(f"{target} does not exist", hint=hint)
    return _sdist(target, places)


def pinned_project(lock: SourceLock | None, folder: Path | None, places: Places, *, beside: Path) -> ProjectSource:
    """The files of a recipe's source.

    Args:
        lock: What pins it; ``None`` for a folder.
        folder: The folder; ``None`` for what has a lock.
        places: What is needed of this machine.
        beside: Folder of the recipe.

    Raises:
        UsageError: there is no such folder, or the index has the file no more.
        HostError: it can't be had.
        IntegrityError: what came is another file, or no archive.
    """
    if folder is not None:
        if not folder.is_dir():
            raise UsageError(f"the source folder does not exist: {folder}")
        return _folder(folder, places, beside)
    assert lock is not None  # noqa: S101 (of all but folders)
    if lock.commit is not None:
        return _at_ref(lock.location, lock.commit, places, said=lock.ref)
    filename = lock.filename or ""
    path = _pinned_file(lock, filename, places)
    if digest_file(path) != lock.sha256:
        raise IntegrityError(f"{filename} is not the file that the lock pins", hint=f"run `{LOCK} --upgrade`")
    found = [reading for reading in readings(filename) if lock.kind != "pypi" or reading[0] == lock.location]
    found = found or list(readings(filename))
    return ProjectSource(
        tree=read_archive(path, name=filename),
        keys=((lock.kind, lock.location),),
        origin=filename,
        name=found[0][0] if found else filename.partition(".")[0],
        version=lock.version if lock.kind == "pypi" else str(found[0][1]) if found else None,
        version_at=filename,
    )


def _pinned_file(lock: SourceLock, filename: str, places: Places) -> Path:
    """A locked archive on this machine."""
    kept = places.downloads / f"{lock.sha256}.partial"
    if kept.is_file() and digest_file(kept) == lock.sha256:
        return kept
    if lock.kind != "pypi":
        local = local_path(lock.location)
        if local is not None:
            return local
        file = RemoteFile(filename=filename, url=lock.location, sha256=lock.sha256, size=lock.size)
        return _fetched(file, places)
    settings = on_this_machine(places.settings) if places.offline else places.settings
    files = [file for file in list_files(lock.location, settings) if file.filename == filename]
    if not files:
        raise UsageError(f"the index does not contain {filename}", hint=f"run `{LOCK} --upgrade`")
    places.note(f"reading {filename}")
    return _fetched(files[0], places)


def _folder(folder: Path, places: Places, beside: Path) -> ProjectSource:
    relative = Path(_relative(folder.resolve(), beside.resolve()))
    exclude = (*_BUILT, *(name for name in _ENVIRONMENTS if (folder / name).is_dir()))
    version, at = described_version(folder, places.environ)
    return ProjectSource(
        tree=read_folder(folder),
        keys=(("path", relative.as_posix()), ("exclude", exclude)),
        origin=f"the folder {folder.resolve().name}",
        name=folder.resolve().name,
        version=version,
        version_at=at,
    )


def _relative(folder: Path, start: Path) -> str:
    """The way from one folder to another."""
    shared = next(parent for parent in (start, *start.parents) if folder.is_relative_to(parent))
    up = len(start.relative_to(shared).parts)
    return "/".join([*[".."] * up, *folder.relative_to(shared).parts]) or "."


def described_version(folder: Path, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The version that the nearest tag tells, as setuptools_scm guesses it; nothing where there is no tag."""
    if not (folder / ".git").exists():
        return None, ""
    try:
        described = parse_describe(describe(folder, environ=environ))
    except AxletreeError:
        return None, ""
    version = tag_version(described.tag) if described is not None else None
    if described is None or version is None:
        return None, ""
    if described.commits == 0:
        return str(version), f"tag {described.tag}"
    *first, last = version.release
    following = ".".join(map(str, [*first, last + 1]))
    return f"{following}.dev{described.commits}", f"{plural(described.commits, 'commit')} after tag {described.tag}"


def _archive(path: Path) -> ProjectSource:
    found = readings(path.name)
    keys = (("url", file_url(path.resolve())), ("sha256", str(digest_file(path))))
    return ProjectSource(
        tree=read_archive(path),
        keys=keys,
        origin=path.name,
        name=found[0][0] if found else path.name.partition(".")[0],
        version=str(found[0][1]) if found else None,
        version_at=path.name,
    )


def _repository(target: str, places: Places) -> ProjectSource:
    """A repository at a ref, as pip writes it (``URL@REF``); else at its newest release, else as it is now."""
    url, ref = _split_ref(target.removeprefix("git+"))
    if not is_git_address(url):
        raise UsageError(f"unsupported git address: {redact(url)}", hint="use https:// or file://")
    cache = places.cache / "git"
    if ref is None:
        tags = {tag: tag_version(tag) for tag in list_tags(url, cache=cache, environ=places.environ)}
        releases = {tag: found for tag, found in tags.items() if found is not None and not found.is_prerelease}
        newest = max(releases, key=lambda tag: (releases[tag], -len(tag)), default=None)
        ref = newest or resolve_ref(url, "HEAD", cache=cache, environ=places.environ).commit
    return _at_ref(url, ref, places, said=ref)


def _at_ref(url: str, ref: str, places: Places, *, said: str | None) -> ProjectSource:
    """A repository at a ref; ``said`` is what a user calls it, whose tag may tell the version."""
    cache, version, at = places.cache / "git", None, ""
    if said and (tagged := tag_version(said)) is not None and not re.fullmatch(r"[0-9a-f]{40,64}", said):
        version, at = str(tagged), f"tag {said}"
    with tempfile.TemporaryDirectory(prefix="axletree-") as scratch:
        folder = Path(scratch) / "source"
        fetch_git(url, ref, folder, cache=cache, environ=places.environ, offline=places.offline)
        tree = read_folder(folder)
    submodules = [("submodules", True)] if ".gitmodules" in tree.sizes else []
    name = url.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return ProjectSource(
        tree=tree,
        keys=(("git", url), ("ref", said or ref), *submodules),
        origin=f"{name} at {said or ref}",
        name=name,
        version=version,
        version_at=at,
    )


def _split_ref(address: str) -> tuple[str, str | None]:
    """An address and the ref behind it; an ``@`` in front of the host's name belongs to a login."""
    before, at, ref = address.rpartition(".git@")
    if at:
        return f"{before}.git", ref
    before, at, ref = address.rpartition("@")
    return (before, ref) if at and "/" not in ref and "/" in urlsplit(before).path else (address, None)


def _sdist(target: str, places: Places) -> ProjectSource:
    name, _, asked = target.partition("==")
    if not _PROJECT.fullmatch(name.strip()):
        raise UsageError(
            f"{target!r} is not a valid project name",
            hint="use a name such as msgpack or msgpack==1.1.0, a folder or a git address",
        )
    name = name.strip()
    files = list_files(name, on_this_machine(places.settings) if places.offline else places.settings)
    version = _wanted(name, asked.strip(), files)
    chosen = choose_sdist(name, version, files)
    if chosen is None:
        absence = explain_absence(name, version, files)
        raise UsageError(absence.message, hint=absence.instead or absence.hint)
    places.note(f"reading {chosen.filename}")
    return ProjectSource(
        tree=read_archive(_fetched(chosen, places), name=chosen.filename),
        keys=(("pypi", canonicalize_name(name)),),
        origin=chosen.filename,
        name=name,
        version=version,
        version_at=chosen.filename,
    )


def _wanted(name: str, asked: str, files: tuple[RemoteFile, ...]) -> str:
    """The version that is asked for, else the newest release that has an sdist."""
    if asked:
        try:
            return str(Version(asked))
        except InvalidVersion:
            raise UsageError(f"{asked!r} is not a valid version (PEP 440)") from None
    with_sdist = {
        version
        for file in files
        if not file.yanked and file.filename.endswith(SUFFIXES) and (version := version_of(file.filename, name))
    }
    releases = {version for version in with_sdist if not version.is_prerelease} or with_sdist
    others = {version for file in files if (version := version_of(file.filename, name))}
    return str(max(releases or others or {Version("0")}))


def _fetched(file: RemoteFile, places: Places) -> Path:
    """The file on this machine; what is downloaded waits where a build looks for it."""
    local = local_path(file.url)
    if local is not None:
        return local
    if places.offline:
        raise HostError(
            f"offline, but not available on this machine: {redact(file.url)}",
            hint="run the command once without --offline",
        )
    kept = places.downloads / f"{file.sha256}.partial"
    if file.sha256 and kept.is_file() and digest_file(kept) == file.sha256:
        return kept
    if file.size is not None:
        places.note(f"downloading {file.filename} ({format_bytes(file.size)})")
    sha256, size = measure(file.url, keep=places.downloads, note=lambda _: None)
    if file.sha256 not in {None, sha256}:
        raise IntegrityError(f"{file.filename} has sha256 {sha256} ({size} bytes), but the index says {file.sha256}")
    return places.downloads / f"{sha256}.partial"
