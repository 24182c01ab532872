"""The payload of the devel package: its listing, checked before anything is written, and its content."""

from __future__ import annotations

import posixpath
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ._sdk import SdkError

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

NAMES = ("_devel.tar", "_devel.tar.xz")
OWN = frozenset({"_devel.json", "_devel_members.json", "_devel_new"})
"""Files that the expansion itself keeps in the tree."""
_BLOCK = 512
_CHUNK = 1 << 20
_MOST_HOPS = 40  # as Linux follows links
_SHOWN = 5


class Member(NamedTuple):
    """A member of the payload."""

    path: str
    kind: str
    """``folder``, ``file`` or ``link``."""
    link: str = ""
    """What a link says."""
    size: int = 0
    mtime: int = 0
    executable: bool = False


class Links:
    """Where links of the tree lead, followed as the kernel does: by name, in a site directory with known folders."""

    def __init__(self, root: str, members: Iterable[Member]) -> None:
        """Take the links of a payload that is expanded into a folder of the site directory."""
        self.root = root
        self._links = {f"{root}/{each.path}": each.link for each in members if each.kind == "link"}

    def follow(self, path: str) -> str:
        """The place in the site directory where a path of the tree ends; whether something is there is not asked.

        Raises:
            ValueError: it leaves the site directory, or goes in circles.
        """
        waiting = [self.root, *path.split("/")][::-1]
        done: list[str] = []
        hops = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                if not done:
                    raise ValueError("leads out of the site directory")
                done.pop()
            elif part not in {"", "."}:
                done.append(part)
                link = self._links.get("/".join(done))
                if link is not None:
                    hops += 1
                    if hops > _MOST_HOPS:
                        raise ValueError("is part of a loop of links")
                    done.pop()
                    waiting += link.split("/")[::-1]
        return "/".join(done)


def find_payload(module: Path) -> Path:
    """The archive in the devel package's Python package.

    Raises:
        SdkError: it is not there.
    """
    for name in NAMES:
        if (module / name).is_file():
            return module / name
    raise SdkError(f"{module / NAMES[0]} is missing: reinstall the devel package")


def read_members(payload: Path, root: str, folders: Iterable[str]) -> tuple[Member, ...]:
    """The listing of the payload.

    Args:
        payload: the archive.
        root: name of the folder that it is expanded into.
        folders: names of the platform folders that its links may lead to.

    Raises:
        SdkError: it is damaged, or has members that don't belong into a devel tree; nothing of it is to be used then.
    """
    members: list[Member] = []
    faults: list[str] = []
    with _opened(payload) as archive:
        for each in archive:
            name = each.name.rstrip("/") if each.isdir() else each.name
            fault = _name_fault(name) or _kind_fault(each)
            if fault:
                faults.append(f"{each.name!r} {fault}")
                continue
            kind = "folder" if each.isdir() else "link" if each.issym() else "file"
            size = each.size if kind == "file" else 0
            link = each.linkname if kind == "link" else ""
            members.append(Member(name, kind, link, size, int(each.mtime), kind == "file" and bool(each.mode & 0o100)))
        archive.fileobj.seek(archive.offset)
        if archive.fileobj.read(_BLOCK) != bytes(_BLOCK):
            raise SdkError(f"{payload} is truncated: reinstall its package")
    faults += _tree_faults(members, root, set(folders))
    if faults:
        more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise SdkError(f"{payload} is not safe to unpack: {'; '.join(faults[:_SHOWN])}{more}")
    return tuple(members)


def read_files(payload: Path, wanted: set[str], take: Callable[[str, Iterator[bytes]], None]) -> None:
    """Hand on the content of files in the order of the archive.

    Raises:
        SdkError: the archive is damaged.
    """
    left = set(wanted)
    with _opened(payload) as archive:
        for each in archive:
            if each.name in left and each.isreg():
                left.discard(each.name)
                take(each.name, _chunks(archive, each))
                if not left:
                    return


def _chunks(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    file = archive.extractfile(member)
    left = member.size
    while file is not None and left and (chunk := file.read(min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk
    if left:
        raise EOFError("unexpected end of data")


@contextmanager
def _opened(payload: Path) -> Iterator[tarfile.TarFile]:
    import tarfile
    import zlib

    errors: list[Any] = [tarfile.TarError, EOFError, zlib.error, UnicodeError]
    if payload.suffix == ".xz":
        try:
            import lzma
        except ImportError:
            raise SdkError(f"{payload} is compressed with xz, which this Python does not support") from None
        errors.append(lzma.LZMAError)
    try:
        with tarfile.open(payload, "r:xz" if payload.suffix == ".xz" else "r:", encoding="utf-8") as archive:
            yield archive
    except tuple(errors) as error:
        raise SdkError(f"{payload} is damaged ({error}): reinstall its package") from None


def _name_fault(name: str) -> str:
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        return "is not a path inside the tree"
    if "\\" in name or "\0" in name or (len(parts[0]) > 1 and parts[0][1] == ":"):
        return "has a name that is not allowed on every system"
    if name in OWN or parts[0] in OWN:
        return "has a name that is reserved for the runtime's own files"
    return ""


def _kind_fault(member: tarfile.TarInfo) -> str:
    if member.islnk() or not (member.isdir() or member.issym() or member.isreg()) or member.issparse():
        return "is not a file, folder or symbolic link"
    if member.issym() and (not member.linkname or member.linkname.startswith("/") or "\\" in member.linkname):
        return f"is a link to {member.linkname!r}, which is not a relative path"
    return ""


def _tree_faults(members: list[Member], root: str, folders: set[str]) -> Iterator[str]:
    """What is wrong with members together: places that two want, and links that lead out."""
    kinds: dict[str, str] = {}
    for member in members:
        if member.path in kinds and not member.kind == kinds[member.path] == "folder":
            yield f"{member.path!r} occurs twice"
        kinds[member.path] = member.kind
    links = Links(root, members)
    for member in members:
        above = posixpath.dirname(member.path)
        while above:
            if kinds.get(above, "folder") != "folder":
                yield f"{member.path!r} is nested under a {kinds[above]}"
            above = posixpath.dirname(above)
        if member.kind != "link":
            continue
        try:
            place = links.follow(member.path)
        except ValueError as error:
            yield f"{member.path!r} is a link that {error}"
            continue
        top = place.partition("/")[0]
        if top != root and (top not in folders or top == place):
            yield f"{member.path!r} is a link to {member.link!r}, outside the tree"
