"""Changes to a file as values: what to overwrite, blank and move, applied while the content goes by.

Whoever decides what must change (an ELF header, a fat binary) returns edits; nobody has to hold the file. The same
edits can be applied to a compressed member on its way into another archive, or to a file in place.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.binary.source import Source

CHUNK = 1 << 20
"""Most bytes that are handed on at once."""


class Put(NamedTuple):
    """Bytes to write at an offset; at the end of the file, or beyond it, the file grows (gaps are zeros)."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """The first byte after the edit."""
        return self.offset + len(self.data)


class Blank(NamedTuple):
    """A stretch to fill with zeros."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first byte after the edit."""
        return self.offset + self.size


class Move(NamedTuple):
    """A stretch to fill with bytes that stood elsewhere in the *original* file."""

    offset: int
    size: int
    source: int

    @property
    def end(self) -> int:
        """The first byte after the edit."""
        return self.offset + self.size


Edit = Put | Blank | Move


def ordered_edits(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Edits sorted by offset, empty ones left out.

    Raises:
        IntegrityError: two of them overlap.
    """
    result = tuple(sorted((edit for edit in edits if edit.end > edit.offset), key=lambda edit: edit.offset))
    for edit, following in itertools.pairwise(result):
        if edit.end > following.offset:
            raise IntegrityError(f"edits overlap at offset {following.offset}")
    return result


class EditedSource:
    """A source with edits applied, itself a :class:`~axletree.binary.source.Source`; the original stays as it is."""

    def __init__(self, source: Source, edits: Iterable[Edit], *, size: int | None = None) -> None:
        """Look at a source through edits.

        Args:
            source: the original.
            edits: what is different.
            size: where the result ends; as far as the source or the last edit reaches if ``None``.

        Raises:
            IntegrityError: the edits overlap, move bytes that the source does not have, or lie behind the end.
        """
        self._source = source
        self._edits = ordered_edits(edits)
        reach = max([0, *(edit.end for edit in self._edits)])
        self._size = max(source.size, reach) if size is None else size
        if reach > self._size:
            raise IntegrityError(f"an edit ends at offset {reach}, past the end of the file ({self._size})")
        for edit in self._edits:
            if isinstance(edit, Move) and edit.source + edit.size > source.size:
                raise IntegrityError(f"an edit moves bytes from past the end of the file ({edit.source + edit.size})")

    @property
    def size(self) -> int:
        """Bytes once edited."""
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """A range of the edited content."""
        return b"".join(self._pieces(offset, min(offset + size, self._size)))

    def _pieces(self, offset: int, end: int) -> Iterator[bytes]:
        for edit in self._edits[self._first(offset) :]:
            if edit.offset >= end:
                break
            if offset < edit.offset:
                yield self._original(offset, edit.offset)
                offset = edit.offset
            stop = min(edit.end, end)
            yield self._changed(edit, offset, stop)
            offset = stop
        if offset < end:
            yield self._original(offset, end)

    def _first(self, offset: int) -> int:
        """Index of the first edit that ends after an offset."""
        low, high = 0, len(self._edits)
        while low < high:
            middle = (low + high) // 2
            if self._edits[middle].end <= offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _original(self, offset: int, end: int) -> bytes:
        data = self._source.read(offset, end - offset) if offset < self._source.size else b""
        return data + bytes(end - offset - len(data))

    def _changed(self, edit: Edit, offset: int, end: int) -> bytes:
        match edit:
            case Put(start, data):
                return data[offset - start : end - start]
            case Blank():
                return bytes(end - offset)
            case Move(start, _, source):
                return self._source.read(source + offset - start, end - offset)


def iter_source(source: Source, *, chunk: int = CHUNK) -> Iterator[bytes]:
    """The whole content of a source, in pieces."""
    for offset in range(0, source.size, chunk):
        yield source.read(offset, min(chunk, source.size - offset))
