"""Write a wheel: the same bytes for the same content, for any number of threads and on any day.

Members are sorted, the metadata folder last and RECORD last of all (PEP 427); dates, modes and the block size of the
compressor are fixed. Content may come in chunks, so a member may be larger than memory.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from axletree.binary.zips import DEFLATED, STORED
from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import is_safe_path
from axletree.package.deflate import Block, cut, deflate
from axletree.package.metadata import Metadata, render_metadata
from axletree.package.names import dist_info_folder
from axletree.package.record import RecordEntry, encode_hash, render_record
from axletree.package.wheel_info import WheelInfo, render_wheel_info
from axletree.package.zip_records import Written, central_header, dos_time, end_records, local_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

EARLIEST = 315532800
"""1980-01-01, the first date that an archive can hold; what members get where nothing else is said."""


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """Content as it already stands in another archive, to be copied without inflating it."""

    data: bytes | memoryview
    """The bytes in the archive: deflated, or the content itself where ``method`` is ``STORED``."""
    method: int
    crc: int
    size: int
    """Bytes of the content."""
    hash: str
    """As RECORD writes it: ``sha256=`` and base64."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A file that goes into a wheel."""

    path: str
    """Path in the wheel."""
    data: bytes | Packed | Callable[[], Iterable[bytes]]
    """The content, what already is compressed, or what yields the content in chunks when it is its turn."""
    size: int | None = None
    """Bytes of the content; needed where it comes in chunks."""
    executable: bool = False


class WrittenWheel(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    record: tuple[RecordEntry, ...]
    """The lines of its RECORD."""
    size: int
    """Bytes of the archive."""
    metadata: bytes
    """Its METADATA file, which an index serves beside the wheel (PEP 658)."""


class _Digest:
    """Hash, CRC and size of a member, taken while its chunks go by."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.crc = 0
        self.size = 0

    def watch(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.sha256.update(chunk)
            self.crc = zlib.crc32(chunk, self.crc)
            self.size += len(chunk)
            yield chunk


class _Piece(NamedTuple):
    """A block of a member on its way into the archive."""

    member: Member
    digest: _Digest
    """Of the whole member once this is its last block."""
    block: Block
    first: bool


def write_wheel(
    sink: BinaryIO,
    members: Sequence[Member],
    *,
    metadata: Metadata,
    wheel_info: WheelInfo,
    epoch: int = EARLIEST,
    level: int = 6,
    threads: int = 1,
) -> WrittenWheel:
    """Write a wheel into an empty, seekable sink.

    Args:
        sink: where the archive goes, from its present position 0.
        members: all files but METADATA, WHEEL and RECORD, in any order.
        metadata: its name and version also name the metadata folder.
        wheel_info: the WHEEL file.
        epoch: date of the members, seconds since 1970 (``SOURCE_DATE_EPOCH``).
        level: deflate level, 0 to 9.
        threads: how many compress at once. No part of the result.

    Raises:
        IntegrityError: paths that are unsafe, double or reserved, or a member that is not as long as it said.
    """
    folder = dist_info_folder(metadata.name, metadata.version)
    text = render_metadata(metadata)
    own = [
        Member(path=f"{folder}/METADATA", data=text),
        Member(path=f"{folder}/WHEEL", data=render_wheel_info(wheel_info)),
    ]
    ordered = sorted([*members, *own], key=lambda member: (member.path.startswith(f"{folder}/"), member.path))
    _check(ordered, folder)
    stamp = dos_time(epoch)
    archive = _Archive(sink, stamp)
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        archive.write(ordered, level=level, pool=pool, ahead=threads * 2 if threads > 1 else 0)
        record = (*archive.record, RecordEntry(path=f"{folder}/RECORD"))
        last = Member(path=f"{folder}/RECORD", data=render_record(record))
        archive.write([last], level=level, pool=pool, ahead=0)
    size = archive.close()
    return WrittenWheel(record=record, size=size, metadata=text)


def _check(members: Sequence[Member], folder: str) -> None:
    problems: list[Problem] = []
    paths = {member.path for member in members}
    seen: set[str] = set()
    reserved = {f"{folder}/{name}" for name in ("RECORD", "RECORD.jws", "RECORD.p7s")}
    for member in members:
        path = member.path
        if not is_safe_path(path) or len(path.encode()) > 0xFFFF:
            problems.append(Problem(key=path[:200], message="no path for a member of a wheel"))
        if path in seen:
            problems.append(Problem(key=path, message="is in the wheel twice"))
        seen.add(path)
        parent = path.rpartition("/")[0]
        while parent:
            if parent in paths:
                problems.append(Problem(key=parent, message="is both a file and a folder in the wheel"))
            parent = parent.rpartition("/")[0]
        if path in reserved or (path.partition("/")[0].endswith(".dist-info") and not path.startswith(f"{folder}/")):
            problems.append(Problem(key=path, message=f"only the writer makes RECORD, and only in {folder}"))
        if not isinstance(member.data, bytes | Packed) and member.size is None:
            problems.append(Problem(key=path, message="comes in chunks and needs a size"))
    if problems:
        raise IntegrityError(*dict.fromkeys(problems))


def _pieces(members: Iterable[Member]) -> Iterator[_Piece | tuple[Member, Packed]]:
    """Read and hash members block by block; what is compressed already stays as it is."""
    for member in members:
        data = member.data
        if isinstance(data, Packed):
            yield member, data
            continue
        digest = _Digest()
        chunks = (data,) if isinstance(data, bytes) else data()
        first = True
        for block in cut(digest.watch(chunks)):
            yield _Piece(member, digest, block, first)
            first = False


class _Archive:
    """The growing archive: members, then the central directory."""

    def __init__(self, sink: BinaryIO, stamp: tuple[int, int]) -> None:
        self._sink = sink
        self._stamp = stamp
        self._position = 0
        self._written: list[Written] = []
        self.record: list[RecordEntry] = []

    def write(self, members: Iterable[Member], *, level: int, pool: ThreadPoolExecutor, ahead: int) -> None:
        """Compress and append members; up to ``ahead`` blocks are compressed beside the one that is written."""
        waiting: deque[tuple[_Piece, Future[bytes]]] = deque()
        for piece in _pieces(members):
            if not isinstance(piece, _Piece):
                while waiting:
                    oldest, packed = waiting.popleft()
                    self._put(oldest, packed.result())
                self._copy(*piece)
                continue
            if not ahead:
                self._put(piece, deflate(piece.block, level))
                continue
            waiting.append((piece, pool.submit(deflate, piece.block, level)))
            if len(waiting) > ahead:
                oldest, packed = waiting.popleft()
                self._put(oldest, packed.result())
        for piece, packed in waiting:
            self._put(piece, packed.result())

    def close(self) -> int:
        """Write the central directory; returns the bytes of the archive."""
        start = self._position
        for written in self._written:
            self._append(central_header(written, self._stamp))
        self._append(end_records(entries=len(self._written), size=self._position - start, offset=start))
        return self._position

    def _copy(self, member: Member, packed: Packed) -> None:
        written = Written(
            path=member.path,
            method=packed.method,
            executable=member.executable,
            offset=self._position,
            size=packed.size,
            crc=packed.crc,
            compressed=len(packed.data),
        )
        self._written.append(written)
        self.record.append(RecordEntry(path=member.path, hash=packed.hash, size=packed.size))
        self._append(local_header(written, self._stamp))
        self._append(packed.data)

    def _put(self, piece: _Piece, packed: bytes) -> None:
        block, member = piece.block, piece.member
        if piece.first:
            self._begin(piece, stored=block.last and len(packed) >= len(block.data))
        written = self._written[-1]
        content = block.data if written.method == STORED else packed
        written.compressed += len(content)
        if block.last:
            self._check_size(piece, written)
            written.crc = piece.digest.crc
            digest = encode_hash(piece.digest.sha256.digest())
            self.record.append(RecordEntry(path=member.path, hash=digest, size=written.size))
        if piece.first:
            self._append(local_header(written, self._stamp))
        self._append(content)
        if block.last and not piece.first:  # only now the header's values are known
            self._sink.seek(written.offset)
            self._sink.write(local_header(written, self._stamp))
            self._sink.seek(self._position)

    def _begin(self, piece: _Piece, *, stored: bool) -> None:
        member = piece.member
        size = len(member.data) if isinstance(member.data, bytes) else member.size or 0
        self._written.append(
            Written(
                path=member.path,
                method=STORED if stored else DEFLATED,
                executable=member.executable,
                offset=self._position,
                size=size,
            )
        )

    @staticmethod
    def _check_size(piece: _Piece, written: Written) -> None:
        if piece.digest.size != written.size:
            message = f"was announced with {written.size} bytes, but has {piece.digest.size}"
            raise IntegrityError(Problem(key=written.path, message=message))

    def _append(self, data: bytes | memoryview) -> None:
        self._sink.write(data)
        self._position += len(data)
