"""Takes the inventory of a root: of an image in the store, or of this machine. Nothing in it is started."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from axletree.host.archive import digest_file
from axletree.host.image.inside import read_inside, resolve_inside
from axletree.host.tools import SYSTEM_PATH
from axletree.package.image.inventory import FOLDERS, TOOLS, fitting
from axletree.package.image.packages import apk_packages, dpkg_packages, rpm_packages
from axletree.recipe.image_locks import LockedInventory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Literal

_LARGEST = 256 << 20
_DPKG, _DISTROLESS = "/var/lib/dpkg/status", "/var/lib/dpkg/status.d"
_APK = ("/lib/apk/db/installed", "/usr/lib/apk/db/installed")
_RPM = ("/var/lib/rpm", "/usr/lib/sysimage/rpm")
_OLD_RPM = ("Packages", "Packages.db")
"""Databases of RPM in formats of its own."""
_GCC_PARTS = ("cc1", "cc1plus", "collect2", "f951", "lto1")
"""What a GCC starts; it lies in a folder of its release."""
_IGNORED = frozenset({"__pycache__"})
"""Written by whatever runs a Python there, and from the sources beside it."""


def take_inventory(
    root: Path, *, variables: Mapping[str, str], tools: Iterable[str] = (), whole: bool = False
) -> LockedInventory:
    """What is in a root, as far as builds depend on it.

    Args:
        root: its files; ``/`` for those of this machine.
        variables: those that the image sets; ``PATH`` says where its programs are.
        tools: programs that stages declare, beside the usual ones.
        whole: whether each file has an entry, however many there are.
    """
    database, packages = _packages(root)
    files = {path: what for folder in FOLDERS for path, what in _listed(root, folder)}
    entries, depth = (dict(sorted(files.items())), None) if whole else fitting(files)
    return LockedInventory(
        database=database, packages=packages, files=entries, depth=depth, tools=_tools(root, variables, tools)
    )


def _packages(root: Path) -> tuple[Literal["dpkg", "rpm", "apk"] | None, tuple[str, ...]]:
    found = dpkg_packages("\n\n".join(_dpkg_texts(root)))
    if found:
        return "dpkg", found
    for path in _APK:
        text = read_inside(root, path, most=_LARGEST)
        if text:
            return "apk", apk_packages(text.decode(errors="replace"))
    for folder in _RPM:
        found = _rpm(root, folder)
        if found:
            return "rpm", found
    return None, ()


def _dpkg_texts(root: Path) -> Iterator[str]:
    """What dpkg's database says; images without a shell have a file for each package."""
    folder = resolve_inside(root, _DISTROLESS)
    names = sorted(os.listdir(folder)) if folder is not None and folder.is_dir() else []  # noqa: PTH208 (names)
    for path in (_DPKG, *(f"{_DISTROLESS}/{name}" for name in names if not name.endswith(".md5sums"))):
        data = read_inside(root, path, most=_LARGEST)
        if data is not None:
            yield data.decode(errors="replace").strip("\n")


def _rpm(root: Path, folder: str) -> tuple[str, ...]:
    """Packages of RPM's database; where only RPM can read it, the digest of the file stands for them."""
    database = resolve_inside(root, f"{folder}/rpmdb.sqlite")
    if database is not None and database.is_file():
        try:
            with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro&immutable=1", uri=True)) as connection:
                return rpm_packages(bytes(row[0]) for row in connection.execute("SELECT blob FROM Packages"))
        except (sqlite3.Error, ValueError):
            return (f"{folder}/rpmdb.sqlite sha256:{digest_file(database)[:16]}",)
    for name in _OLD_RPM:
        found = resolve_inside(root, f"{folder}/{name}")
        if found is not None and found.is_file():
            return (f"{folder}/{name} sha256:{digest_file(found)[:16]}",)
    return ()


def _listed(root: Path, folder: str) -> Iterator[tuple[str, str]]:
    """The files and links below a folder: path, and kind with size or target."""
    start = resolve_inside(root, folder)
    waiting = [] if start is None else [(start, folder)]
    while waiting:
        place, named = waiting.pop()
        try:
            entries = list(os.scandir(place))
        except OSError as error:
            if place != start or place.is_dir():
                yield _text(named), f"unreadable: {error.strerror}"
            continue
        for entry in entries:
            path = f"{named}/{entry.name}"
            if entry.is_symlink():
                yield _text(path), f"-> {_text(os.readlink(entry.path))}"  # noqa: PTH115 (text, not normalised)
            elif entry.is_dir():
                if entry.name not in _IGNORED:
                    waiting.append((Path(entry.path), path))
            elif entry.is_file() and not entry.name.endswith(".pyc"):
                status = entry.stat(follow_symlinks=False)
                yield _text(path), f"{'program' if status.st_mode & stat.S_IXUSR else 'file'} {status.st_size}"


def _text(name: str) -> str:
    """A name as text that every format can carry."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _tools(root: Path, variables: Mapping[str, str], declared: Iterable[str]) -> dict[str, str]:
    """Digests of programs, and of the parts of a GCC; a declared one that is not there has none."""
    folders = variables.get("PATH", ":".join(SYSTEM_PATH)).split(":")
    found: dict[str, str] = dict.fromkeys(declared, "")
    prefixes: dict[str, None] = {}
    for name in (*TOOLS, *found):
        for folder in folders:
            path = resolve_inside(root, f"{folder}/{name}")
            if path is not None and path.is_file():
                found[name] = digest_file(path)
                prefixes[str(PurePosixPath(folder).parent)] = None
                break
    for prefix in prefixes:
        found |= _gcc_parts(root, prefix)
    return dict(sorted(found.items()))


def _gcc_parts(root: Path, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in ("lib", "libexec"):
        folder = resolve_inside(root, f"{prefix}/{base}/gcc")
        paths = sorted(folder.glob("*/*/*")) if folder is not None and folder.is_dir() else []
        for path in paths:
            if path.name in _GCC_PARTS and path.is_file() and not path.is_symlink() and folder is not None:
                found[f"{prefix.rstrip('/')}/{base}/gcc/{path.relative_to(folder)}"] = digest_file(path)
    return found
