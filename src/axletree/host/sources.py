"""Files on disk as sources of bytes, and sources of bytes as files on disk."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Self

from axletree.core.errors import HostError, Problem
from axletree.host.files import appearing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType


class DiskSource:
    """A file that is read in pieces, as a :class:`~axletree.binary.source.Source`.

    A mapping brings 64 KiB into memory with each page that is touched: for thousands of small headers in a library of
    500 MB that adds up to its better part. Reading takes what is asked for.
    """

    def __init__(self, path: Path | str) -> None:
        """Open a file; close it by leaving the context.

        Raises:
            HostError: it can't be opened, or is no regular file.
        """
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise self._error(error.strerror or "unknown error") from error
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            raise self._error("it is not a regular file")
        self._size = status.st_size

    def __enter__(self) -> Self:
        """The source itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @property
    def size(self) -> int:
        """Bytes in all, when it was opened."""
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """The bytes from ``offset`` on, fewer than ``size`` only at the end.

        Raises:
            HostError: the system can't read them.
        """
        try:
            found = os.pread(self._descriptor, size, offset) if size > 0 else b""
            while 0 < len(found) < size and (
                part := os.pread(self._descriptor, size - len(found), offset + len(found))
            ):
                found += part  # more than the system hands out at once
        except OSError as error:
            raise self._error(error.strerror or "unknown error") from error
        return found

    def _error(self, reason: str) -> HostError:
        return HostError(Problem(file=str(self._path), message=f"the file cannot be read: {reason}"))


def write_source(path: Path, chunks: Iterable[bytes], *, like: Path) -> None:
    """Write a file from chunks, with the mode of another: beside its place, then renamed into it.

    Raises:
        HostError: it can't be written. No part of it stays, whatever ``chunks`` raises.
    """
    with appearing(path) as temporary:
        with temporary.open("wb") as sink:
            for chunk in chunks:
                sink.write(chunk)
            sink.flush()
            os.fsync(sink.fileno())
        temporary.chmod(like.stat().st_mode & 0o777)
