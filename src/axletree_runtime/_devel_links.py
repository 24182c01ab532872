"""How files of other packages get into the devel tree, and what of it works between two places.

A hard link costs nothing and is the same file for the loader: a library that a process reaches both ways is loaded
once (two copies of LLVM in one process abort it). On overlayfs a hard link to a file of a lower layer copies that file
up first: an image grows by it, and other layers keep the old file. There, and across file systems, symbolic links do
the same. A copy is the last resort.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

MODES = ("auto", "hardlink", "symlink", "copy", "reflink")
_FICLONE = 0x40049409  # linux/fs.h


def choose_mode(asked: str, work: Path, samples: Iterable[Path]) -> str:
    """The link mode for a tree, tried on one file of each package.

    Args:
        asked: one of :data:`MODES`.
        work: folder on the file system of the tree.
        samples: files that the tree is to mirror.

    Raises:
        ValueError: there is no such mode.
        SdkError: it does not work here.
    """
    if asked not in MODES:
        raise ValueError(f"link mode {asked!r} is not one of {', '.join(MODES)}")
    files = list(samples)
    if asked != "auto":
        fault = next((text for each in files if (text := _fault(asked, each, work))), "")
        if fault:
            raise SdkError(f"link mode {asked} does not work here: {fault} (use `auto` to select a mode that works)")
        return asked
    if not is_overlay(work) and not any(_fault("hardlink", each, work) for each in files):
        return "hardlink"
    return "copy" if any(_fault("symlink", each, work) for each in files) or not can_symlink(work) else "symlink"


def is_overlay(folder: Path) -> bool:
    """Whether a folder lies on a union file system, whose lower layers are not its own (Linux)."""
    try:
        device = folder.stat().st_dev
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    wanted = f"{os.major(device)}:{os.minor(device)}"
    kinds = [line.partition(" - ")[2].split(" ")[0] for line in lines if line.split(" ")[2:3] == [wanted]]
    return any("overlay" in kind or "aufs" in kind for kind in kinds)


def can_symlink(work: Path) -> bool:
    """Whether symbolic links can be made: on Windows it takes a right that users seldom have."""
    probe = work / f"link-{os.getpid()}"
    try:
        os.symlink("nothing", probe)
        probe.unlink()
    except OSError:
        return False
    return True


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths are one file, links followed."""
    try:
        return os.path.samestat(os.stat(one), os.stat(other))  # thousands of paths
    except OSError:
        return False


def hardlink(source: str, place: str) -> None:
    """Make a hard link, and see that it is one: file systems exist on which it becomes a copy.

    Raises:
        OSError: it can't be made.
    """
    os.link(os.path.realpath(source) if os.path.islink(source) else source, place)
    if not is_same_file(source, place):
        raise OSError(f"a hard link to {source} turned into a separate file")


def copy_file(source: str, place: str) -> None:
    """Copy content, mode and time."""
    shutil.copyfile(source, place)
    _like(source, place)


def reflink(source: str, place: str) -> None:
    """A copy that shares its blocks with the file until one of them is written to.

    Raises:
        OSError: the file system has none.
    """
    import fcntl

    with open(source, "rb") as old, open(place, "xb") as new:
        fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
    _like(source, place)


MAKERS: dict[str, Callable[[str, str], None]] = {"hardlink": hardlink, "copy": copy_file, "reflink": reflink}


def _like(source: str, place: str) -> None:
    facts = os.stat(source)
    os.chmod(place, facts.st_mode & 0o777 | 0o200)
    os.utime(place, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _fault(mode: str, source: Path, work: Path) -> str:
    """Why a file can't be taken over in a mode; empty if it can."""
    probe = work / f"probe-{os.getpid()}"
    try:
        if mode == "symlink":
            probe.symlink_to(source)
        elif mode != "copy":
            MAKERS[mode](str(source), str(probe))
        return (
            ""
            if mode in {"copy", "reflink"} or is_same_file(str(source), str(probe))
            else "a link turns into a separate file"
        )
    except (OSError, ImportError) as error:
        return f"{source}: {getattr(error, 'strerror', None) or error}"
    finally:
        if os.path.lexists(probe):
            probe.unlink()
