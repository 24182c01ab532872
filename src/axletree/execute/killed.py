"""What a killed build leaves behind, and what of it is of use to the next one.

A build that is killed may leave files half written, and only ninja's log tells which are whole. Make and setuptools go
by time and take half an object for a finished one. So where no ninja worked, every file that was written since the
build began is removed; what earlier builds made stays. What was compiled and is removed comes back out of the compiler
cache. A file's time of change (``ctime``) tells, which no program can set back, as ``tar`` and ``install -p`` do with
the other one.

What a program had written reaches the disk some time later. A build that was under way when the machine stopped may
have left empty files that ninja's log calls finished: nothing in such a folder is trusted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.host.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable

_NINJA_LOG = ".ninja_log"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Salvage(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to a folder after a kill."""

    removed: int
    objects: int
    """Of those, what compilers write."""
    kept: int
    """Files that were there before the build that was killed."""

    def __str__(self) -> str:
        """The words for a log."""
        return f"removed {self.removed:,} files that may be incomplete; kept {self.kept:,}"


def begin(mark: Path) -> None:
    """Note that a build begins. The file's time is when; who ends otherwise than by a kill removes it.

    Raises:
        OSError: as the system says.
    """
    replace_file(mark, _boot().encode())


def was_stopped(mark: Path) -> bool:
    """Whether the machine was started anew since a build began that never ended."""
    written = mark.read_text(encoding="utf-8", errors="replace")
    return written not in {"", _boot()}


def has_ninja(folder: Path) -> bool:
    """Whether ninja built in a folder: its log says what is whole, and ninja itself looks at that."""
    return any(_NINJA_LOG in names for _, _, names in os.walk(folder))


def remove_written(folder: Path, mark: Path, *, ours: Callable[[Path], bool]) -> Salvage:
    """Remove what was written into a folder since a build began, but for files that are known to be whole.

    Args:
        folder: where it built.
        mark: what :func:`begin` made.
        ours: whether a file is known not to be of the build.

    Raises:
        OSError: something can't be removed.
    """
    began = mark.stat().st_mtime_ns
    removed = objects = kept = 0
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        for name in (*names, *links):
            path = Path(place, name)
            if ours(path):
                continue
            if path.lstat().st_ctime_ns >= began:
                path.unlink()
                removed += 1
                objects += name.endswith(".o")
            else:
                kept += 1
    return Salvage(removed=removed, objects=objects, kept=kept)


def _boot() -> str:
    """What is another text after each start of the machine; empty where the system does not tell."""
    try:
        return _BOOT.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
