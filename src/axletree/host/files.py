"""Files that are whole or absent: made beside, then renamed into place; and what the system refuses, as an error."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from axletree.core.errors import HostError, Problem
from axletree.disk import part_file, sync_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

T = TypeVar("T")


@contextmanager
def file_errors(path: str | Path, trouble: str = "the file cannot be read", *, precise: bool = False) -> Iterator[None]:
    """Tell what the system refuses as an error of a file.

    Args:
        path: the file.
        trouble: what that means for it.
        precise: tell the file that the system names, if it names one, instead of this one.

    Raises:
        HostError: the system refused something.
    """
    try:
        yield
    except OSError as error:
        file = str((error.filename if precise else None) or path)
        raise HostError(Problem(file=file, message=f"{trouble}: {error.strerror}")) from error


def read_json(path: Path, kind: type[T]) -> T | None:
    """A value that a file holds; ``None`` where there is no such file, or something else is in it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


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
    with file_errors(path, "the file cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with part_file(path) as temporary:
            yield temporary
            temporary.replace(path)
        if sync:
            sync_path(path.parent)
