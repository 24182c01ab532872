"""What goes wrong with the disk, as an error that says which path and what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, StoreError
from axletree.core.units import format_bytes
from axletree.disk import FULL
from axletree.store.layout import STORE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.core.errors import AxletreeError
    from axletree.store.layout import StoreLayout

_HINTS = dict.fromkeys((errno.EMFILE, errno.ENFILE), "allow more open files: ulimit -n 65536")
_HINTS |= {
    errno.EIO: "the disk reported an error: see the kernel log (dmesg)",
    errno.EROFS: "the disk is read-only, possibly because of an error: see the kernel log (dmesg)",
}
"""Advice where rights are not what is wrong."""


@contextlib.contextmanager
def disk_errors(
    layout: StoreLayout, *, target: Path | None = None, needs: Callable[[], int] | None = None
) -> Iterator[None]:
    """Turn an ``OSError`` into an error that says which path and what to do.

    Args:
        layout: the store that is used.
        target: where is written to, when that is not the store.
        needs: how many bytes were to be written; asked only when the disk is full.

    Raises:
        StoreError: something in the store cannot be read or written, or its disk is full.
        HostError: the same for a path outside of it.
    """
    try:
        yield
    except OSError as error:
        raise _explain(
            layout, error, target or layout.root, needs() if needs and error.errno in FULL else None
        ) from error


def _explain(layout: StoreLayout, error: OSError, target: Path, needs: int | None) -> AxletreeError:
    reason = error.strerror or str(error)
    if error.errno in FULL:
        room = "" if needs is None else f": needs {format_bytes(needs)}, has {format_bytes(_free(target))} free"
        message = f"no space left on {mount_point(target)}{room}"
        if target.is_relative_to(layout.root):
            return StoreError(
                message, hint=f"set {STORE_VARIABLE} to a folder on a larger disk, or run `axletree store gc`"
            )
        return HostError(message, hint="free some space there, or choose a different folder")
    hint = _HINTS.get(error.errno or 0)
    path = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else str(target)
    if Path(path).is_relative_to(layout.root):
        return StoreError(
            f"cannot use the store: {reason}: {path}",
            hint=hint or f"make the folder writable, or set {STORE_VARIABLE} to a folder that you can write to",
        )
    return HostError(
        f"{reason}: {path}", hint=hint or "create the path, or give this user permission to read and write it"
    )


def mount_point(path: Path) -> Path:
    """The root of the file system that holds a path."""
    path = path.absolute()
    return next((folder for folder in (path, *path.parents) if folder.is_mount()), Path("/"))


def _free(path: Path) -> int:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    return shutil.disk_usage(existing).free
