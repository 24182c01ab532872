"""The content of an archive's members: in chunks, whole, as it goes by, or with random access. Bounded memory always.

* :func:`iter_member`, :func:`read_member`: front to back.
* :class:`PassingMember`: one pass that keeps what the reader of an ELF file will ask for. Cheapest.
* :class:`MemberSource`: any range at any time. It keeps a copy of the inflater's state every few MiB, so that going
  back costs one such step: a shared library of 500 MB is read with about 20 MB.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from isal.isal_zlib import crc32
from zlib_ng.zlib_ng import MAX_WBITS, decompressobj
from zlib_ng.zlib_ng import error as zlib_ng_error

from axletree.binary.mapped import FORGET_EVERY, forget
from axletree.binary.zip.directory import DEFLATED, ZipEntry, damaged, refused
from axletree.binary.zip.inflate import CHUNK, inflate, inflate_at_once
from axletree.core.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    class _Inflater(Protocol):
        """A decompressor of zlib-ng (its stub lacks ``copy``)."""

        eof: bool
        unused_data: bytes
        unconsumed_tail: bytes

        def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes: ...
        def copy(self) -> _Inflater: ...


_Error: type[Exception] = zlib_ng_error  # type: ignore[assignment]  # its stub takes it for an exception, not a class
SMALL = 1 << 20
"""Members up to this size are inflated at once."""
STEP = 4 << 20
"""Bytes between two kept states."""
HEAD = 8 << 20
"""Bytes at the beginning that a :class:`PassingMember` keeps: symbols and strings of most libraries lie there."""
_WINDOW = 2
"""Chunks behind the current one that it keeps as well."""
_KEPT_STEPS = 3
_FEED = 1 << 16
_MAX_STATES = 512
"""Most kept states; where the content is longer than so many steps, they stand further apart."""


def iter_member(
    buffer: bytes | memoryview, entry: ZipEntry, *, archive: str = "archive", limit: int | None = None
) -> Iterator[bytes]:
    """The content of a member in chunks of at most :data:`CHUNK` bytes; size and CRC are checked at the end.

    Args:
        buffer: the whole archive.
        entry: the member, from :func:`~axletree.binary.zip.directory.read_directory` of the same buffer.
        archive: what errors call the archive.
        limit: most bytes that the caller wants to see.

    Raises:
        IntegrityError: the content is longer than ``limit``, or not what the archive declares.
    """
    if limit is not None and entry.size > limit:
        raise refused(archive, f"the member has {entry.size} bytes, more than the limit of {limit}", member=entry.name)
    failed = _failure(archive, entry)
    view, end = memoryview(buffer).cast("B"), entry.data + entry.compressed
    deflated = entry.method == DEFLATED
    crc = total = 0
    for chunk in inflate(view, entry.data, end, size=entry.size, failed=failed) if deflated else _slices(view, entry):
        crc = crc32(chunk, crc)
        total += len(chunk)
        yield chunk
    if total != entry.size:
        raise failed(f"the member declares {entry.size} bytes, but contains {total}")
    if crc != entry.crc:
        raise failed(f"the content has CRC {crc:08x}, but {entry.crc:08x} is declared")


def read_member(buffer: bytes | memoryview, entry: ZipEntry, *, archive: str = "archive", limit: int) -> bytes:
    """The whole content of a member, at most ``limit`` bytes.

    Raises:
        IntegrityError: as :func:`iter_member`.
    """
    if entry.size > min(limit, SMALL):
        return b"".join(iter_member(buffer, entry, archive=archive, limit=limit))
    packed = memoryview(buffer)[entry.data : entry.data + entry.compressed]
    if entry.method == DEFLATED:
        content = inflate_at_once(packed, entry.size, _failure(archive, entry))
    else:
        content = bytes(packed)
    crc = crc32(content)
    if crc != entry.crc:
        raise _failure(archive, entry)(f"the content has CRC {crc:08x}, but {entry.crc:08x} is declared")
    return content


def _failure(archive: str, entry: ZipEntry) -> Callable[[str], IntegrityError]:
    return lambda message: damaged(archive, message, member=entry.name)


def _slices(view: memoryview, entry: ZipEntry) -> Iterator[bytes]:
    end = entry.data + entry.compressed
    for start in range(entry.data, end, CHUNK):
        yield bytes(view[start : min(start + CHUNK, end)])
        if (start - entry.data) % FORGET_EVERY == 0:
            forget(view, max(start - FORGET_EVERY, entry.data), start)


class PassingMember:
    """A member whose content goes by once, as a :class:`~axletree.binary.source.PassingSource`.

    Kept are its first 8 MiB, the last MiB, and what was asked for with :meth:`hold`. Reading anything else is right as
    well, but inflates a second time up to there.
    """

    def __init__(
        self,
        buffer: bytes | memoryview,
        entry: ZipEntry,
        *,
        archive: str = "archive",
        watch: Callable[[int, bytes], object] | None = None,
    ) -> None:
        """Look at a member of an archive that is in memory or mapped.

        Args:
            buffer: the whole archive.
            entry: the member.
            archive: what errors call the archive.
            watch: called with each chunk and its offset, in order.
        """
        self._buffer = buffer
        self._entry = entry
        self._archive = archive
        self._watch = watch
        self._chunks = iter_member(buffer, entry, archive=archive)
        self._passed = 0
        self._held: list[tuple[int, int]] = []
        self._starts: list[int] = []
        self._kept: list[bytes] = []
        self._window: list[tuple[int, bytes]] = []
        self._again: MemberSource | None = None
        self._error: IntegrityError | None = None

    @property
    def size(self) -> int:
        """Bytes of the member."""
        return self._entry.size

    def hold(self, offset: int, size: int) -> None:
        """Keep a range, from what has not gone by yet (or is in the window), for a later :meth:`read`."""
        self._held.append((offset, offset + size))
        for start, chunk in self._window:
            if start < offset + size and offset < start + len(chunk):
                self._keep(start, chunk)

    def finish(self) -> None:
        """Let the rest go by.

        Raises:
            IntegrityError: the content is not what the archive declares.
        """
        while self._next() is not None:
            pass

    def read(self, offset: int, size: int) -> bytes:
        """A range of the content.

        Raises:
            IntegrityError: as :meth:`finish`.
        """
        end = min(offset + size, self.size)
        parts: list[bytes] = []
        position = offset
        while position < end:
            if position < self._passed:
                found = self._find(position)
                if found is None:
                    return self._read_again(offset, end - offset)
            else:
                found = self._next()
                if found is None:
                    break
            start, chunk = found
            if start + len(chunk) > position:
                parts.append(chunk[position - start : end - start])
                position = start + len(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _next(self) -> tuple[int, bytes] | None:
        """The next chunk and its offset; the trouble that ended the content comes again whenever more is asked for."""
        if self._error is not None:
            raise self._error
        try:
            chunk = next(self._chunks, None)
        except IntegrityError as error:
            self._error = error
            raise
        if chunk is None:
            return None
        start = self._passed
        self._passed = end = start + len(chunk)
        if start < HEAD:
            self._keep(start, chunk)
        else:
            for first, stop in self._held:
                if start < stop and first < end:
                    self._keep(start, chunk)
        self._window.append((start, chunk))
        if len(self._window) > _WINDOW:
            del self._window[0]
        if self._watch is not None:
            self._watch(start, chunk)
        return start, chunk

    def _keep(self, start: int, chunk: bytes) -> None:
        at = bisect_right(self._starts, start)
        if at == 0 or self._starts[at - 1] != start:
            self._starts.insert(at, start)
            self._kept.insert(at, chunk)

    def _find(self, position: int) -> tuple[int, bytes] | None:
        """The kept chunk that has a position, and where it starts."""
        at = bisect_right(self._starts, position) - 1
        if at >= 0 and position < self._starts[at] + len(self._kept[at]):
            return self._starts[at], self._kept[at]
        for start, chunk in self._window:
            if start <= position < start + len(chunk):
                return start, chunk
        return None

    def _read_again(self, offset: int, size: int) -> bytes:
        if self._again is None:
            self._again = MemberSource(self._buffer, self._entry, archive=self._archive)
        return self._again.read(offset, size)


class _State(NamedTuple):
    """An inflater, and how far it has read the compressed bytes."""

    inflater: _Inflater
    position: int


class MemberSource:
    """A member as a :class:`~axletree.binary.source.Source`. :meth:`scan` checks its size and CRC on the way."""

    def __init__(self, buffer: bytes | memoryview, entry: ZipEntry, *, archive: str = "archive") -> None:
        """Look at a member of an archive that is in memory or mapped."""
        self._buffer = buffer
        self._view = memoryview(buffer).cast("B")[entry.data : entry.data + entry.compressed]
        self._entry = entry
        self._failed = _failure(archive, entry)
        self._fed = 0
        self._states = [_State(cast("_Inflater", decompressobj(-MAX_WBITS)), 0)]
        self._every = 1 + entry.size // (STEP * _MAX_STATES)
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
            crc = crc32(chunk, crc)
            total += len(chunk)
            yield chunk
        if total != entry.size:
            raise self._failed(f"the member declares {entry.size} bytes, but contains {total}")
        if crc != entry.crc:
            raise self._failed(f"the content has CRC {crc:08x}, but {entry.crc:08x} is declared")

    def _chunks(self) -> Iterator[bytes]:
        if self._entry.method != DEFLATED:
            for start in range(0, len(self._view), CHUNK):
                yield bytes(self._view[start : start + CHUNK])
            return
        inflater, position = self._states[0].inflater.copy(), 0
        produced = 0
        while produced < self._entry.size:
            if produced == len(self._states) * self._every * STEP:
                self._states.append(_State(inflater.copy(), position))
            wanted = min(CHUNK, self._entry.size - produced, STEP - produced % STEP)
            chunk, position = self._advance(inflater, position, wanted)
            produced += len(chunk)
            yield chunk
        rest, position = self._advance(inflater, position, 1, final=True)
        if rest or not inflater.eof or inflater.unused_data or position < len(self._view):
            raise self._failed("the deflate stream does not end at the declared size")

    def _advance(self, inflater: _Inflater, position: int, wanted: int, *, final: bool = False) -> tuple[bytes, int]:
        """Exactly ``wanted`` bytes (``final``: what is there), and the new place in the compressed bytes."""
        parts: list[bytes] = []
        missing = wanted
        while missing and not inflater.eof:
            feed: bytes | memoryview = inflater.unconsumed_tail
            if not feed:
                feed = self._view[position : position + _FEED]
                position += len(feed)
                self._forget(position, len(feed))
            try:
                part = inflater.decompress(feed, missing)
            except _Error as error:
                raise self._failed(f"the deflate stream is damaged ({error})") from error
            if not part and not feed:
                break
            parts.append(part)
            missing -= len(part)
        if missing and not final:
            raise self._failed("the deflate stream ends before the declared size")
        return b"".join(parts), position

    def _forget(self, position: int, fed: int) -> None:
        """Let mapped pages go that lie behind a place in the compressed bytes, now and then."""
        self._fed += fed
        if self._fed >= FORGET_EVERY:
            behind = self._entry.data + position - fed
            forget(self._buffer, max(behind - self._fed, self._entry.data), behind)
            self._fed = 0

    def read(self, offset: int, size: int) -> bytes:
        """A range of the content; cheaper where :meth:`scan` was run before.

        Raises:
            IntegrityError: the deflate stream is damaged.
        """
        end = min(offset + size, self._entry.size)
        if self._entry.method != DEFLATED:
            return bytes(self._view[offset:end])
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
            found = self._inflate_step(number)
            while len(self._steps) >= _KEPT_STEPS:
                del self._steps[next(iter(self._steps))]
        self._steps[number] = found  # the last one used is the last to go
        return found

    def _inflate_step(self, number: int) -> bytes:
        """Inflate from the nearest kept state on, and keep further ones on the way."""
        nearest = min(number // self._every, len(self._states) - 1)
        inflater, position = self._states[nearest].inflater.copy(), self._states[nearest].position
        content = b""
        for step in range(nearest * self._every, number + 1):
            if step == len(self._states) * self._every:
                self._states.append(_State(inflater.copy(), position))
            content, position = self._advance(inflater, position, min(STEP, self._entry.size - step * STEP))
        return content
