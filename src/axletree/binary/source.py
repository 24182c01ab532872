"""Random access to bytes that may lie in a buffer or, still compressed, in an archive."""

from __future__ import annotations

from typing import Protocol


class Source(Protocol):
    """A sequence of bytes that can be read in pieces."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    def read(self, offset: int, size: int) -> bytes:
        """The bytes from ``offset`` on, fewer than ``size`` only at the end. Never negative arguments."""


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
