"""A root file system that is written from layers of strangers.

Every name is opened relative to its folder, and no link is ever followed: a folder of the path that is one is an error.
So nothing outside of the root is read or written, whatever the layers contain.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from axletree.disk import write_all
from axletree.package.conda.untar import tar_damaged

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

    from axletree.core.errors import IntegrityError

Names = tuple[str, ...]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o755
"""Of folders that no layer mentions."""
_UNFIT = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})
"""How file systems refuse a name."""


class RootWriter:
    """Writes entries of layers, one layer after the other, into an empty folder."""

    def __init__(self, folder: Path) -> None:
        """Open the folder."""
        self._top = os.open(folder, _FOLDER)
        self._open: list[tuple[str, int]] = []
        """The folders from the top to the one that was used last."""
        self._folders: dict[Names, tuple[int, int]] = {}
        """Permissions and dates, which folders get at the end: until then, all of them can be written to."""
        self._layer = ""
        self._entry: Names = ()
        self._first = True
        self._written: set[Names] = set()
        """What this layer made, and the folders above it: its whiteouts are about lower layers only."""

    def __enter__(self) -> Self:
        """Nothing more."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close all folders."""
        self._leave(0)
        os.close(self._top)

    def begin(self, layer: str, *, first: bool) -> None:
        """The next entries are those of another layer, which errors call so."""
        self._layer, self._first = layer, first
        self._written.clear()

    def file(self, path: Names, content: Iterable[bytes | memoryview], *, mode: int, mtime: int) -> int:
        """Write a file in place of what is there; its size.

        Raises:
            IntegrityError: its folder is a link or a file, or the file system takes no such name.
            OSError: the disk is full, or as the system says.
        """
        self._entry = path
        folder = self._place(path)
        try:
            descriptor = os.open(path[-1], _NEW, 0o600, dir_fd=folder)
        except OSError as error:
            raise self._unfit(error) from error
        try:
            size = 0
            for piece in content:
                write_all(descriptor, piece)
                size += len(piece)
            os.fchmod(descriptor, mode)
            os.utime(descriptor, (mtime, mtime))
        finally:
            os.close(descriptor)
        return size

    def link(self, path: Names, target: str, *, mtime: int) -> None:
        """Make a symbolic link in place of what is there; as :meth:`file`."""
        self._entry = path
        folder = self._place(path)
        try:
            os.symlink(target, path[-1], dir_fd=folder)
            os.utime(path[-1], (mtime, mtime), dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise self._unfit(error) from error

    def hard_link(self, path: Names, target: Names) -> None:
        """Give a file of the image another name; as :meth:`file`.

        Raises:
            IntegrityError: there is no such file in the image.
        """
        self._entry = path
        if path == target:
            raise self._refused("the entry is a hard link to itself")
        folder = os.dup(self._place(path))
        try:
            source = self._find(target[:-1])
            status = None if source is None else _status(source, target[-1])
            if source is None or status is None or stat.S_ISDIR(status.st_mode):
                raise self._refused(
                    f"the entry is a hard link to a file that is not in the image: {'/'.join(target)!r}"
                )
            os.link(target[-1], path[-1], src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise self._unfit(error) from error
        finally:
            os.close(folder)

    def folder(self, path: Names, *, mode: int, mtime: int) -> None:
        """Make a folder, or keep the one that is there with what is in it; as :meth:`file`."""
        self._entry = path
        above = self._enter(path[:-1])
        status = _status(above, path[-1])
        if status is not None and not stat.S_ISDIR(status.st_mode):
            self._remove(above, path)
            status = None
        if status is None:
            self._make(above, path)
        self._note(path)
        self._folders[path] = (mode, mtime)

    def hide(self, path: Names) -> None:
        """Remove what lower layers have at a path; this layer's own entries stay."""
        self._entry = path
        if self._first or (above := self._find(path[:-1])) is None:
            return
        if path in self._written:
            self.hide_content(path)
        else:
            self._remove(above, path)

    def hide_content(self, path: Names) -> None:
        """Remove what lower layers have in a folder; this layer's own entries stay."""
        self._entry = path
        if self._first or (folder := self._find(path)) is None:
            return
        with os.scandir(folder) as found:
            names = [(each.name, each.is_dir(follow_symlinks=False)) for each in found]
        for name, is_folder in names:
            inner = (*path, name)
            if inner not in self._written:
                self._remove(self._enter(path), inner)
            elif is_folder:
                self.hide_content(inner)

    def finish(self) -> None:
        """Give all folders their permissions and dates; those that no layer mentions are usual ones."""
        for path, (mode, mtime) in sorted(self._folders.items(), reverse=True):  # the inner ones first
            descriptor = self._find(path)
            if descriptor is not None:
                os.fchmod(descriptor, mode)
                os.utime(descriptor, (mtime, mtime))

    def _place(self, path: Names) -> int:
        """The folder of a new entry, in which nothing has its name any more."""
        folder = self._enter(path[:-1])
        if _status(folder, path[-1]) is not None:
            self._remove(folder, path)
        self._note(path)
        return folder

    def _note(self, path: Names) -> None:
        if not self._first:
            self._written.update(path[:size] for size in range(1, len(path) + 1))

    def _find(self, path: Names) -> int | None:
        """A folder, opened from the top; ``None`` where there is none, or only a link to one."""
        for size in range(self._shared(path), len(path)):
            try:
                descriptor = os.open(path[size], _FOLDER, dir_fd=self._last)
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                    return None
                raise self._unfit(error) from error
            self._open.append((path[size], descriptor))
        return self._last

    def _enter(self, path: Names) -> int:
        """A folder, opened from the top, and made where it is not there, with those above it."""
        for size in range(self._shared(path), len(path)):
            try:
                descriptor = os.open(path[size], _FOLDER, dir_fd=self._last)
            except FileNotFoundError:
                self._make(self._last, path[: size + 1])
                self._folders[path[: size + 1]] = (_MODE, 0)
                descriptor = os.open(path[size], _FOLDER, dir_fd=self._last)
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise self._unfit(error) from error
                status = _status(self._last, path[size])
                what = "a link" if status is not None and stat.S_ISLNK(status.st_mode) else "a file"
                raise self._refused(
                    f"the entry is below {'/'.join(path[: size + 1])!r}, which is {what} in the image"
                ) from None
            self._open.append((path[size], descriptor))
        return self._last

    def _shared(self, path: Names) -> int:
        """How many folders of a path are open already; the others are closed."""
        shared = 0
        while shared < min(len(self._open), len(path)) and self._open[shared][0] == path[shared]:
            shared += 1
        self._leave(shared)
        return shared

    @property
    def _last(self) -> int:
        """The innermost folder that is open."""
        return self._open[-1][1] if self._open else self._top

    def _leave(self, size: int) -> None:
        while len(self._open) > size:
            os.close(self._open.pop()[1])

    def _make(self, above: int, path: Names) -> None:
        try:
            os.mkdir(path[-1], 0o700, dir_fd=above)
        except OSError as error:
            raise self._unfit(error) from error

    def _remove(self, above: int, path: Names) -> None:
        """Remove what is at a path, whatever it is; absent is fine."""
        self._leave(len(path) - 1)
        with suppress(FileNotFoundError):
            status = _status(above, path[-1])
            if status is not None and stat.S_ISDIR(status.st_mode):
                shutil.rmtree(path[-1], dir_fd=above)
                self._folders.pop(path, None)
            else:
                os.unlink(path[-1], dir_fd=above)

    def _unfit(self, error: OSError) -> Exception:
        """What to raise where the system refuses a name: an error of the layer, if it is the name's fault."""
        if error.errno in _UNFIT:
            return self._refused(f"the entry has a name that cannot be used here: {error.strerror}")
        return error

    def _refused(self, message: str) -> IntegrityError:
        return tar_damaged(self._layer, message, member="/".join(self._entry))


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
