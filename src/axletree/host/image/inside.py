"""Reading files of a root as its own system would see them: absolute links begin at the root, and none leads out."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MOST_LINKS = 40
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_inside(root: Path, path: str, *, most: int) -> bytes | None:
    """The start of a file in a root, at most so many bytes; ``None`` where there is no such file."""
    found = resolve_inside(root, path)
    if found is None:
        return None
    try:
        descriptor = os.open(found, _READ)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            return stream.read(most)
    finally:
        os.close(descriptor)


def resolve_inside(root: Path, path: str) -> Path | None:
    """Where a path of a root leads to, with all links followed as after ``chroot``; ``None`` where that is nothing."""
    done: list[str] = []
    waiting = [part for part in reversed(path.split("/")) if part]
    links = 0
    while waiting:
        part = waiting.pop()
        if part in {".", ".."}:
            done = done[:-1] if part == ".." else done
            continue
        here = root.joinpath(*done, part)
        try:
            target = os.readlink(here)  # noqa: PTH115 (text, which is not normalised)
        except OSError as error:
            if error.errno != errno.EINVAL:  # it is there, and no link
                return None
            done.append(part)
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        if target.startswith("/"):
            done = []
        waiting += [each for each in reversed(target.split("/")) if each]
    return root.joinpath(*done)
