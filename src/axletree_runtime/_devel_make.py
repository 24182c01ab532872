"""Making a devel tree what it is to be: all of it in an empty folder, or what differs in one that is there."""

from __future__ import annotations

import os
import shutil
import stat
from functools import partial
from typing import TYPE_CHECKING, Any

from ._devel_links import MAKERS, copy_file, hardlink, is_same_file
from ._devel_payload import read_files
from ._devel_plan import is_program
from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from ._devel_plan import Wanted

_SPARE = 32 << 20
"""Bytes that stay free."""
_BLOCK = 4096
_ORDER = ("folder", "file", "mirror", "alias", "link")


class Tree:
    """A devel tree on disk, and what it is to be."""

    def __init__(
        self,
        root: Path,
        wanted: dict[str, Wanted],
        mode: str,
        *,
        work: Path,
        site: Path,
        name: str = "",
        before: Mapping[str, list[Any] | str] | None = None,
    ) -> None:
        """Take a folder.

        Args:
            root: the tree, or the folder that becomes it.
            wanted: what belongs into it.
            mode: how files of other packages get into it.
            work: folder for single files that are being made.
            site: the folder that the tree will lie in: where relative links start from.
            name: what the tree will be called there; default: as it is.
            before: what the tree was made of, where it is there already.
        """
        self.root = _long(str(root))
        self.wanted = wanted
        self.mode = mode
        self.work = _long(str(work))
        self.site = site
        self.name = name or root.name
        self.before = before or {}
        self._number = 0

    def at(self, path: str) -> str:
        """Where a path of the tree lies."""
        return os.path.join(self.root, *path.split("/")) if os.name == "nt" else f"{self.root}/{path}"

    def differences(self) -> list[str]:
        """Paths at which the tree is not what it is to be, by kinds, sizes, times and inodes."""
        wrong: list[str] = []
        below: tuple[str, ...] = ()  # what is behind a link that replaced a folder is not in the tree
        for path, wanted in sorted(self.wanted.items(), key=lambda each: each[1].kind != "folder"):
            if (below and path.startswith(below)) or not self.is_right(path, wanted):
                wrong.append(path)
                below += (f"{path}/",) if wanted.kind == "folder" else ()
        return wrong

    def is_right(self, path: str, wanted: Wanted) -> bool:
        """Whether there is the right thing at a path."""
        place = self.at(path)
        try:
            facts = os.lstat(place)
            if wanted.kind == "folder":
                return stat.S_ISDIR(facts.st_mode)
            text = self.link_text(path, wanted)
            if text is not None:
                return stat.S_ISLNK(facts.st_mode) and os.readlink(place) == text and os.path.exists(place)
            if not stat.S_ISREG(facts.st_mode):
                return False
            if wanted.kind == "file" and wanted.member is not None:
                return (facts.st_size, int(facts.st_mtime)) == (wanted.member.size, wanted.member.mtime)
            source = os.stat(wanted.source if wanted.kind == "mirror" else self.at(wanted.source))
        except OSError:
            return False
        one = os.path.samestat(facts, source)
        if one or self.mode == "hardlink":
            return one == (self.mode == "hardlink" or wanted.kind == "alias")
        same = (facts.st_size, int(facts.st_mtime)) == (source.st_size, int(source.st_mtime))
        return same and (wanted.kind == "alias" or self.before.get(path) == _facts(facts, wanted.folder))

    def differences_with_names(self, wrong: Iterable[str]) -> list[str]:
        """Paths that are wrong, and the further names of those that are hard links."""
        found = dict.fromkeys(wrong)
        if self.mode != "symlink":
            found.update(
                dict.fromkeys(p for p, each in self.wanted.items() if each.kind == "alias" and each.source in found)
            )
        return list(found)

    def is_copied(self, path: str, wanted: Wanted) -> bool:
        """Whether a file of another package takes room of its own: programs do so, too, where libraries are links."""
        return self.mode == "copy" or (self.mode == "symlink" and is_program(path, _mode(wanted.source)))

    def link_text(self, path: str, wanted: Wanted) -> str | None:
        """What the symbolic link at a path says; None where there is to be none."""
        if wanted.kind == "link" or (wanted.kind == "alias" and self.mode == "symlink"):
            return wanted.text
        if wanted.kind != "mirror" or self.mode != "symlink" or self.is_copied(path, wanted):
            return None
        here = os.path.join(self.site, self.name, os.path.dirname(path))
        if wanted.member is not None and os.path.normpath(os.path.join(here, wanted.member.link)) == wanted.source:
            return wanted.member.link
        return os.path.relpath(wanted.source, here)

    def bytes_needed(self, paths: Iterable[str]) -> int:
        """Bytes on disk that paths will take."""
        total = 0
        for path in paths:
            wanted = self.wanted[path]
            size = wanted.member.size if wanted.kind == "file" and wanted.member else 0
            if wanted.kind == "mirror" and self.is_copied(path, wanted):
                size = os.stat(wanted.source).st_size
            total += size + -size % _BLOCK + (_BLOCK if wanted.kind == "folder" else 0)
        return total

    def check_space(self, paths: Iterable[str]) -> None:
        """See that there is room.

        Raises:
            SdkError: there is not; nothing was written then.
        """
        needed, free = self.bytes_needed(paths) + _SPARE, shutil.disk_usage(self.work).free
        if needed > free:
            raise SdkError(
                f"only {free >> 20} MB are free in {self.site}, but the devel tree needs {(needed >> 20) + 1} MB"
            )

    def fill(self, paths: Iterable[str], payload: Path, *, aside: Callable[[str], None] | None = None) -> None:
        """Make what belongs at paths.

        Args:
            paths: some of what is wanted.
            payload: the archive with the content of files.
            aside: called with a path at which something else lies, that is to be out of the way afterwards; without
                it the tree is a new one.

        Raises:
            SdkError: the archive is damaged, or lacks a file.
            OSError: the file system refuses.
        """
        chosen = sorted(paths, key=lambda path: (_ORDER.index(self.wanted[path].kind), path))
        files = {path for path in chosen if self.wanted[path].kind == "file"}
        for path in chosen:
            if self.wanted[path].kind == "folder":
                self.put(path, os.mkdir, aside)
        self._fill_files(files, payload, aside)
        for path in chosen:
            wanted = self.wanted[path]
            if wanted.kind not in {"folder", "file"}:
                self.put(path, partial(self._make, path=path, wanted=wanted), aside)

    def put(self, path: str, make: Callable[[str], Any], aside: Callable[[str], None] | None) -> None:
        """Make something at a path: there and then in a new tree, else beside, and renamed into its place."""
        place = self.at(path)
        if aside is None:
            make(place)
            return
        self._number += 1
        beside = os.path.join(self.work, f"new-{self._number}")
        make(beside)
        if os.path.lexists(place):
            aside(path)
        os.replace(beside, place)

    def other_content(self, payload: Path) -> list[str]:
        """Files that have the right size and time, but other content than they are to have."""
        found: list[str] = []
        files = {path for path, wanted in self.wanted.items() if wanted.kind == "file" and wanted.member}

        def compare(path: str, chunks: Iterator[bytes]) -> None:
            try:
                with open(self.at(path), "rb") as file:
                    same = all(file.read(len(chunk)) == chunk for chunk in chunks)
            except OSError:
                same = False
            if not same:
                found.append(path)

        read_files(payload, files, compare)
        for path, wanted in self.wanted.items():
            if wanted.kind == "mirror" and not same_content(self.at(path), wanted.source):
                found.append(path)
        return found

    def expected(self, path: str) -> list[Any] | str:
        """What :meth:`made` will say of a path once it is made."""
        wanted = self.wanted[path]
        text = self.link_text(path, wanted)
        if text is not None:
            return text
        while wanted.kind == "alias":
            wanted = self.wanted[wanted.source]
        if wanted.member is not None and wanted.kind == "file":
            return [wanted.member.size, wanted.member.mtime]
        return _facts(os.stat(wanted.source), wanted.folder)

    def made(self) -> dict[str, list[Any] | str]:
        """What lies at the paths: size and time of files, texts of links."""
        found: dict[str, list[Any] | str] = {}
        for path, wanted in self.wanted.items():
            if wanted.kind == "folder":
                continue
            facts = os.lstat(self.at(path))
            link = stat.S_ISLNK(facts.st_mode)
            found[path] = os.readlink(self.at(path)) if link else _facts(facts, wanted.folder)
        return found

    def _fill_files(self, files: set[str], payload: Path, aside: Callable[[str], None] | None) -> None:
        left = set(files)

        def take(path: str, chunks: Iterator[bytes]) -> None:
            left.discard(path)
            self.put(path, lambda place: self._write(place, path, chunks), aside)

        for path in sorted(files):
            member = self.wanted[path].member
            if member is not None and not member.size:
                take(path, iter(()))
        if left:
            read_files(payload, left.copy(), take)
        if left:
            raise SdkError(f"{min(left)} is missing from {payload}: reinstall its package")

    def _write(self, place: str, path: str, chunks: Iterator[bytes]) -> None:
        member = self.wanted[path].member
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.open(place, flags, 0o777 if member and member.executable else 0o666)
        with open(file, "wb") as opened:  # buffered: an unbuffered file takes less than it is given, and says nothing
            opened.writelines(chunks)
        if member:
            os.utime(place, (member.mtime, member.mtime))

    def _make(self, place: str, path: str, wanted: Wanted) -> None:
        text = self.link_text(path, wanted)
        if text is not None:
            real = os.path.normpath(os.path.join(os.path.dirname(self.at(path)), text))
            os.symlink(text, place, target_is_directory=os.path.isdir(real))
        elif wanted.kind == "alias":
            _link_or_copy(self.at(wanted.source), place)
        else:
            MAKERS["copy" if self.mode == "symlink" else self.mode](wanted.source, place)


def _facts(facts: os.stat_result, folder: str) -> list[Any]:
    return [facts.st_size, int(facts.st_mtime), *([folder] if folder else [])]


def _link_or_copy(source: str, place: str) -> None:
    """Another name for a file of the tree; where its file system has no hard links, another file."""
    try:
        hardlink(source, place)
    except OSError:
        if os.path.lexists(place):
            os.unlink(place)
        copy_file(source, place)


def same_content(one: str, other: str) -> bool:
    """Whether two files have the same bytes."""
    import filecmp

    try:
        return is_same_file(one, other) or filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


def _mode(path: str) -> int:
    return os.stat(path).st_mode


def _long(path: str) -> str:
    """A path that Windows takes at any length."""
    if os.name != "nt" or path.startswith("\\\\"):
        return path
    return f"\\\\?\\{os.path.abspath(path)}"
