"""The content of an archive's members: in chunks, whole, or with random access, always in bounded memory.

For random access, one pass inflates the whole member (so that its hash and CRC can be checked on the way) and keeps a
copy of the inflater's state every few MiB. Going back then costs at most one such step, never a second pass, and the
content is never in memory as a whole: a shared library of 500 MB is read with about 20 MB.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.zips import DEFLATED, ZipEntry, damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20
"""Most bytes that one step of inflating yields."""
STEP = 4 << 20
"""Bytes between two kept states."""
_KEPT_STEPS = 3
_FEED = 1 << 16


def iter_member(
    buffer: bytes | memoryview, entry: ZipEntry, *, archive: str = "archive", limit: int | None = None
) -> Iterator[bytes]:
    """The content of a member in chunks of at most :data:`CHUNK` bytes; size and CRC are checked at the end.

    Args:
        buffer: the whole archive.
        entry: the member, from :func:`~axletree.binary.zips.read_directory` of the same buffer.
        archive: what errors call the archive.
        limit: most bytes that the caller wants to see.

    Raises:
        IntegrityError: the content is longer than ``limit``, or not what the archive declares.
    """
    if limit is not None and entry.size > limit:
        raise damaged(archive, f"has {entry.size} bytes, more than the {limit} allowed here", member=entry.name)
    yield from MemberSource(buffer, entry, archive=archive).scan()


def read_member(buffer: bytes | memoryview, entry: ZipEntry, *, archive: str = "archive", limit: int) -> bytes:
    """The whole content of a member, at most ``limit`` bytes.

    Raises:
        IntegrityError: as :func:`iter_member`.
    """
    return b"".join(iter_member(buffer, entry, archive=archive, limit=limit))


class _State(NamedTuple):
    """An inflater that stands at a multiple of :data:`STEP`, and how far it has read the compressed bytes."""

    inflater: zlib._Decompress
    position: int


class MemberSource:
    """A member as a :class:`~axletree.binary.source.Source`; call :meth:`scan` once, to its end, before reading."""

    def __init__(self, buffer: bytes | memoryview, entry: ZipEntry, *, archive: str = "archive") -> None:
        """Look at a member of an archive that is in memory or mapped."""
        self._view = memoryview(buffer).cast("B")[entry.data : entry.data + entry.compressed]
        self._entry = entry
        self._archive = archive
        self._states: list[_State] = []
        self._steps: dict[int, bytes] = {}

    @property
    def size(self) -> int:
        """Bytes of the member."""
        return self._entry.size

    def scan(self) -> Iterator[bytes]:
        """The content once, in chunks; size and CRC are checked at the end.

        Raises:
            IntegrityError: the content is not what the archive declares.
        """
        entry, crc, total = self._entry, 0, 0
        for chunk in self._chunks():
            crc = zlib.crc32(chunk, crc)
            total += len(chunk)
            yield chunk
        if total != entry.size:
            raise damaged(self._archive, f"declares {entry.size} bytes, but holds {total}", member=entry.name)
        if crc != entry.crc:
            message = f"its content has CRC {crc:08x}, not {entry.crc:08x} as declared"
            raise damaged(self._archive, message, member=entry.name)

    def _chunks(self) -> Iterator[bytes]:
        if self._entry.method != DEFLATED:
            for start in range(0, len(self._view), CHUNK):
                yield bytes(self._view[start : start + CHUNK])
            return
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        position = produced = 0
        while produced < self._entry.size:
            if produced % STEP == 0:
                self._states.append(_State(inflater.copy(), position))
            wanted = min(CHUNK, self._entry.size - produced, STEP - produced % STEP)
            chunk, position = self._advance(inflater, position, wanted)
            produced += len(chunk)
            yield chunk
        rest, position = self._advance(inflater, position, 1, final=True)
        if rest or not inflater.eof or inflater.unused_data or position < len(self._view):
            raise damaged(self._archive, "its deflate stream does not end where it should", member=self._entry.name)

    def _advance(
        self, inflater: zlib._Decompress, position: int, wanted: int, *, final: bool = False
    ) -> tuple[bytes, int]:
        """Exactly ``wanted`` bytes (``final``: what is there), and the new place in the compressed bytes."""
        parts: list[bytes] = []
        missing = wanted
        while missing and not inflater.eof:
            feed: bytes | memoryview = inflater.unconsumed_tail
            if not feed:
                feed = self._view[position : position + _FEED]
                position += len(feed)
            try:
                part = inflater.decompress(feed, missing)
            except zlib.error as error:
                name = self._entry.name
                raise damaged(self._archive, f"its deflate stream is damaged ({error})", member=name) from error
            if not part and not feed:
                break
            parts.append(part)
            missing -= len(part)
        if missing and not final:
            raise damaged(self._archive, "its deflate stream ends before the declared size", member=self._entry.name)
        return b"".join(parts), position

    def read(self, offset: int, size: int) -> bytes:
        """A range of the content, after :meth:`scan`."""
        if self._entry.method != DEFLATED:
            return bytes(self._view[offset : offset + size])
        end = min(offset + size, self._entry.size)
        parts: list[bytes] = []
        while offset < end:
            step, start = divmod(offset, STEP)
            part = self._step(step)[start : start + end - offset]
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def _step(self, number: int) -> bytes:
        found = self._steps.pop(number, None)
        if found is None:
            state = self._states[number]
            wanted = min(STEP, self._entry.size - number * STEP)
            found, _ = self._advance(state.inflater.copy(), state.position, wanted)
            while len(self._steps) >= _KEPT_STEPS:
                del self._steps[next(iter(self._steps))]
        self._steps[number] = found  # the last one used is the last to go
        return found
