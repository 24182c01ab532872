"""Files and folders that are whole or absent: made beside, then renamed into place.

What is being made has a name that ends in :data:`PART`, and an owner: the process that made it keeps a file of that
name locked (``flock``) as long as it lives. That says "alive" without a guess, whatever happens to process numbers, in
containers and after a restart alike. So whoever comes next may remove what a killed process left, and nothing else.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, Problem
from axletree.disk import remove_tree, sync_path

if TYPE_CHECKING:
    from collections.abc import Iterator

PART = ".axletree-part"
"""How the names of files end that were not finished. A killed process leaves them."""
NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""How a file system says that it has no locks."""
_FOLDER = ".d"
"""What the name of an unfinished folder has behind its owner's file's."""
_OURS = re.compile(rf"\..*\.[0-9a-f]{{16}}{re.escape(PART)}", re.DOTALL)
_LONGEST = 200
"""Bytes of a file's name that are a part of its temporary one; file systems allow 255 in all."""


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old content or the new, whatever is killed when.

    Raises:
        OSError: as the system says; no temporary file stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with part_file(path) as temporary:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(path)


@contextmanager
def appearing(path: Path, *, sync: bool = True) -> Iterator[Path]:
    """A place beside a file that is to be written; when the block ends without an error, it gets the file's name.

    Args:
        path: the file; what was there is replaced. Its folder is made if it is not there.
        sync: bring the new name to the disk. The content is the block's business.

    Yields:
        An empty file that is there already. To be filled, not replaced: it says that its owner lives.

    Raises:
        HostError: something could not be written, in the block or here. Nothing is left behind, whatever the error.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part_file(path) as temporary:
            yield temporary
            temporary.replace(path)
        if sync:
            sync_path(path.parent)
    except OSError as error:
        raise HostError(Problem(file=str(path), message=f"cannot be written: {error.strerror}")) from error


@contextmanager
def part_file(path: Path) -> Iterator[Path]:
    """An empty temporary file beside another one. If it is still there after the block, it goes.

    What killed processes left in that folder goes first.

    Raises:
        OSError: as the system says.
    """
    with suppress(OSError):
        remove_leftovers(path.parent)
    temporary, descriptor = _claim(path)
    try:
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        os.close(descriptor)  # last: nobody may take it for a leftover before


@contextmanager
def part_folder(path: Path) -> Iterator[Path]:
    """An empty temporary folder beside another one. If it is still there after the block, it goes.

    What killed processes left in the folder that both lie in goes first.

    Raises:
        OSError: as the system says.
    """
    with part_file(path) as owner:
        folder = _folder_of(owner)
        folder.mkdir(mode=0o777)
        try:
            yield folder
        finally:
            _remove_tree(folder)


def remove_leftovers(folder: Path, *, below: bool = False) -> None:
    """Remove the unfinished files and folders of processes that are gone; those of living ones stay.

    Where a file system has no locks nobody knows who is gone: all stays.

    Args:
        folder: in which they lie.
        below: whether to look into its folders as well, all the way down. Hidden ones and links are passed over.

    Raises:
        OSError: the folder can't be read.
    """
    within: list[str] = []
    with os.scandir(folder) as found:
        for entry in found:
            if _OURS.fullmatch(entry.name):
                _remove_if_left(Path(entry.path))
            elif below and not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                within.append(entry.path)
    for path in within:
        with suppress(OSError):  # another user's, or gone
            remove_leftovers(Path(path), below=True)


def is_same(path: Path, descriptor: int) -> bool:
    """Whether an open file is what lies at a path; not if it was removed or replaced meanwhile."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _claim(path: Path) -> tuple[Path, int]:
    """Make a temporary file and lock it; another one, where a cleaner took the first between the two."""
    stem = os.fsencode(path.name)[:_LONGEST].decode(errors="ignore")
    while True:
        temporary = path.with_name(f".{stem}.{secrets.token_hex(8)}{PART}")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            if _lock_now(descriptor) is not False and is_same(temporary, descriptor):
                return temporary, descriptor
        except BaseException:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
            raise
        os.close(descriptor)


def _lock_now(descriptor: int) -> bool | None:
    """Lock a file if nobody holds it; ``None`` where its file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise
    return True


def _remove_if_left(owner: Path) -> None:
    """Remove an unfinished file, and the folder that it owns, if whoever made it is gone."""
    try:
        descriptor = os.open(owner, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # gone, another user's, or no file
        return
    try:
        with suppress(OSError):
            ours = stat.S_ISREG(os.fstat(descriptor).st_mode)
            if ours and _lock_now(descriptor) and is_same(owner, descriptor) and _remove_tree(_folder_of(owner)):
                owner.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _folder_of(owner: Path) -> Path:
    return owner.with_name(f"{owner.name}{_FOLDER}")


def _remove_tree(folder: Path) -> bool:
    """Remove a folder, also where parts of it are read-only; whether nothing of it is left."""
    with suppress(OSError):
        remove_tree(folder)
    return not os.path.lexists(folder)
