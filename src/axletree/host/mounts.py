"""The system calls that change what a process sees of the file system, in a mount namespace of its own."""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, MS_BIND, MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_OPEN_TREE, _MOVE_MOUNT = 428, 429
"""Numbers of system calls of Linux 5.2, the same on all machines."""
_AT_FDCWD, _AT_RECURSIVE, _OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = -100, 0x8000, 1, 4
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
"""Machine -> number of ``pivot_root``, for which the C library has no function."""

_LIBC = ctypes.CDLL(None, use_errno=True)


def mount(
    source: str | Path, target: str | Path, kind: str | None = None, *, flags: int = 0, options: str = ""
) -> bool:
    """Mount a file system, or with ``MS_BIND`` a folder or file; whether that was done.

    ``ctypes.get_errno()`` has the reason if it was not.
    """
    data = options.encode() or None
    return bool(
        _LIBC.mount(os.fsencode(source), os.fsencode(target), kind.encode() if kind else None, flags, data) == 0
    )


def bind(source: str | Path, target: str | Path, *, whole: bool = True) -> bool:
    """Show a folder or file at another place too, with what is mounted below it if ``whole``; whether that was done."""
    return mount(source, target, flags=MS_BIND | (MS_REC if whole else 0))


@contextmanager
def cloned(folder: Path) -> Iterator[int]:
    """A descriptor for :func:`attach` of a folder with all that is mounted below it now; -1 if that is refused."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    descriptor = _LIBC.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(folder), flags)
    try:
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def attach(descriptor: int, target: str | Path) -> bool:
    """Mount what was :func:`cloned`; whether that was done."""
    place = os.fsencode(target)
    return bool(_LIBC.syscall(_MOVE_MOUNT, descriptor, b"", _AT_FDCWD, place, _MOVE_MOUNT_F_EMPTY_PATH) == 0)


def unmount(target: str | Path) -> bool:
    """Take a mount away now, and free it as soon as nobody uses it; whether that was done."""
    return bool(_LIBC.umount2(os.fsencode(target), _MNT_DETACH) == 0)


def make_read_only(target: str | Path) -> bool:
    """Make a mount read-only; whether that was done."""
    # In a user namespace flags of the file system below can't be lifted: leaving them out would be refused.
    kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
    return mount("none", target, flags=_MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def bind_read_only(path: Path) -> bool:
    """Mount a folder or file onto itself, read-only; whether that was done."""
    if not bind(path, path, whole=False):
        return False
    if not make_read_only(path):
        unmount(path)
        return False
    return True


def own_mounts() -> bool:
    """Keep what is mounted from now on to this namespace; whether that was done."""
    return mount("none", "/", flags=MS_REC | _MS_PRIVATE)


def fresh_proc(target: str | Path = "/proc") -> bool:
    """Show the namespace's own processes; some containers refuse that, and most tools do without."""
    return mount("proc", target, "proc", flags=MS_NOSUID | MS_NODEV | MS_NOEXEC)


def change_root(root: Path) -> bool:
    """Make a mounted folder the root of this process's mount namespace; whether that was done.

    The old root is no longer reachable, except through what the new one shows of it.
    """
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        return False
    os.chdir(root)
    if _LIBC.syscall(number, b".", b".") != 0:  # the old root is then mounted over the new one
        return False
    unmount(".")
    os.chdir("/")
    return True
