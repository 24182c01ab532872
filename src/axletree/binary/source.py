"""Random access to bytes that may lie in a buffer or, still compressed, in an archive."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Source(Protocol):
    """A sequence of bytes that can be read in pieces."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    def read(self, offset: int, size: int) -> bytes:
        """The bytes from ``offset`` on, fewer than ``size`` only at the end. Never negative arguments."""


@runtime_checkable
class PassingSource(Source, Protocol):
    """A source whose content goes by once; going back is dear, unless it was told before what will be asked for."""

    def hold(self, offset: int, size: int) -> None:
        """Keep a range, from what has not gone by yet, for a later :meth:`read`."""


class BufferSource:
    """Bytes that are in memory, or in a mapped file."""

    def __init__(self, buffer: bytes | memoryview) -> None:
        """Look at a buffer; nothing is copied."""
        self._view = memoryview(buffer).cast("B")

    @property
    def size(self) -> int:
        """Bytes in all."""
        return len(self._view)

    def read(self, offset: int, size: int) -> bytes:
        """A copy of a range."""
        return bytes(self._view[offset : offset + size])
