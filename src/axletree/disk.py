"""What the store and the host do to files alike: durable writes, locks, unfinished files. They raise ``OSError``.

What is being made has a name that ends in :data:`PART`, and an owner: the process that made it keeps a file of that
name locked (``flock``) as long as it lives. That says "alive" without a guess, whatever happens to process numbers, in
containers and after a restart alike. So whoever comes next may remove what a killed process left, and nothing else.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FULL = (errno.ENOSPC, errno.EDQUOT)
"""How a file system says that it is full."""
_SECTOR = 512
"""Bytes of what ``st_blocks`` counts."""
PART = ".axletree-part"
"""How the names of files end that were not finished. A killed process leaves them."""
NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
"""How a file system says that it has no locks."""
_FOLDER = ".d"
"""What the name of an unfinished folder has behind its owner's file's."""
_OURS = re.compile(rf"\..*\.[0-9a-f]{{16}}{re.escape(PART)}", re.DOTALL)
_LONGEST = 200
"""Bytes of a file's name that are a part of its temporary one; file systems allow 255 in all."""
_FICLONE = 0x40049409  # linux/fs.h
_FALLOC_FL_KEEP_SIZE = 1  # linux/falloc.h


def set_aside(descriptor: int, size: int) -> None:
    """Take room behind the end of an open file, for what is still to be written to it, where the system can (Linux).

    The file does not get longer by it. Nobody else can use that room, so it is there when the disk is full.
    """
    import ctypes  # noqa: PLC0415 (start-up time: every command imports the store)

    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is not None:
        end = os.fstat(descriptor).st_size
        fallocate(descriptor, _FALLOC_FL_KEEP_SIZE, ctypes.c_long(end), ctypes.c_long(size))


def has_room_behind(path: Path) -> bool:
    """Whether a file has room that :func:`set_aside` took, and nobody gave back."""
    status = path.stat()
    return status.st_blocks * _SECTOR >= status.st_size + 2 * status.st_blksize


def give_room_back(descriptor: int) -> None:
    """Give back what :func:`set_aside` took."""
    os.ftruncate(descriptor, os.fstat(descriptor).st_size)


def write_new(path: str, data: bytes | memoryview, *, mode: int, durable: bool) -> None:
    """Write a file that does not exist yet; durable: on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of it, however many calls that takes."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def sync_path(path: str | Path) -> None:
    """Make the content of a file, or the names in a folder, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(folder: str, files: Iterable[str]) -> None:
    """Make the content of many files on the file system of a folder survive a loss of power.

    One ``syncfs`` (Linux) instead of an ``fsync`` a file: each of those would wait for a journal commit of its own.
    """
    import ctypes  # noqa: PLC0415 (start-up time: every command imports the store)

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is not None and syncfs(descriptor) == 0:
            return
        if syncfs is not None and ctypes.get_errno() in (errno.EIO, *FULL):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), folder)
    finally:
        os.close(descriptor)
    for file in files:
        sync_path(file)


def lock_now(descriptor: int, operation: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file (``flock``) unless somebody else holds it; whether that was done."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def clone(source: int, target: int) -> bool:
    """Share a file's extents with an empty one, where the file system can (btrfs, XFS); whether that was done."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def each_entry(folder: str | Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below a folder that is no folder itself, with its path in there; links are not followed."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(f"{folder}/{below}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{below}{entry.name}/")
                else:
                    yield f"{below}{entry.name}", entry


def measure_root(folder: Path) -> tuple[int, int, str]:
    """What the root of an image contains: entries, bytes of its files (each once), and a SHA-256 over the listing.

    In the listing are paths, kinds, permissions, sizes and targets of links; neither contents nor dates.

    Raises:
        OSError: as the system says.
    """
    lines: list[bytes] = []
    size, seen, waiting = 0, set[tuple[int, int]](), [b""]
    top = os.fsencode(folder)
    while waiting:
        below = waiting.pop()
        with os.scandir(top + b"/" + below) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                path, kind, extra = below + entry.name, stat.S_IFMT(status.st_mode), b""
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path + b"/")
                elif stat.S_ISLNK(status.st_mode):
                    extra = os.readlink(entry.path)  # noqa: PTH115 (bytes)
                else:
                    extra = b"%d" % status.st_size
                    identity = (status.st_dev, status.st_ino)
                    if status.st_nlink == 1 or identity not in seen:
                        seen.update([identity] if status.st_nlink > 1 else [])
                        size += status.st_size
                mode = 0 if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
                lines.append(b"%s\0%o\0%s\n" % (path, kind | mode, extra))
    return len(lines), size, hashlib.sha256(b"".join(sorted(lines))).hexdigest()


def remove_tree(folder: str | Path) -> None:
    """Remove a folder with all that is in it, also where a build made parts of it read-only. Absent is fine."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        if os.path.lexists(folder):
            shutil.rmtree(folder, ignore_errors=True)
    except PermissionError:
        for parent, names, _ in os.walk(folder):
            for name in (".", *names):
                path = Path(parent, name)
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(folder)


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
        temporary = path.with_name(f".{stem}.{os.urandom(8).hex()}{PART}")
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
        return lock_now(descriptor)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        raise


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
