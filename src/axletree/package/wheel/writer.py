"""Write a wheel: the same bytes for the same content, for any number of threads and on any day.

Members are sorted, the metadata folder last and RECORD last of all (PEP 427); dates, modes and the block size of the
compressor are fixed. Content may come in chunks, so a member may be larger than memory.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
from zlib_ng import zlib_ng

from axletree.binary.zip.deflate import BLOCK, LEVEL, DeflateBlock, cut, deflate
from axletree.binary.zip.directory import DEFLATED, STORED
from axletree.binary.zip.records import EARLIEST, Written, both_headers, dos_time, end_records, local_header
from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import all_safe_paths, is_safe_path, paths_above_others
from axletree.package.wheel.info import WheelInfo, render_wheel_info
from axletree.package.wheel.metadata import Metadata, render_metadata
from axletree.package.wheel.names import dist_info_folder
from axletree.package.wheel.record import SIGNATURES, RecordEntry, encode_hash, render_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

_MAX_PATH = 0xFFFF
_LONG = _MAX_PATH // 4
"""Characters up to which a path can't have too many bytes."""
_BATCH = 1 << 20
_ITEM = 1 << 10
"""Bytes of content that an item costs as much as, beside compressing."""


class Sink(Protocol):
    """Where an archive is written, such as a buffered file.

    If it also has ``copy_range(data, offset) -> bool``, large members that are compressed already go through that: it
    may append them by a shorter way (``data`` begins at ``offset`` of the archive that it is a part of, which is -1
    where that is not known), or return ``False``.
    """

    def write(self, data: bytes | memoryview, /) -> object:
        """Append all of it."""

    def seek(self, offset: int, /) -> object:
        """Go on writing there."""


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
    offset: int = -1
    """Where ``data`` begins in the archive that it is a part of, -1 where it is none."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A file that goes into a wheel."""

    path: str
    """Path in the wheel."""
    data: bytes | Packed | Callable[[], Iterable[bytes]]
    """The content, what already is compressed, or what yields the content in chunks when it is its turn.

    Chunks are not copied, so they must stay as they are. Those of :data:`~axletree.binary.zip.deflate.BLOCK` bytes cost
    least.
    """
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
    copied: frozenset[str] = frozenset()
    """Members that came compressed: their hashes are what somebody said. Those of the others, like their CRC, were
    taken of what was compressed."""


class _Digest:
    """Hash, CRC and size of a member, taken while its chunks go by."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.crc = 0
        self.size = 0

    def add(self, chunk: bytes | memoryview) -> None:
        self.sha256.update(chunk)
        self.crc = zlib_ng.crc32(chunk, self.crc)
        self.size += len(chunk)

    def watch(self, chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
        for chunk in chunks:
            self.add(chunk)
            yield chunk


class _Piece(NamedTuple):
    """A block of a member on its way into the archive."""

    member: Member
    digest: _Digest
    """Of the whole member once this is its last block."""
    block: DeflateBlock
    first: bool


class _Copy(NamedTuple):
    """A member that is compressed already."""

    member: Member
    packed: Packed


def write_wheel(
    sink: Sink,
    members: Sequence[Member],
    *,
    metadata: Metadata,
    wheel_info: WheelInfo,
    epoch: int = EARLIEST,
    level: int = LEVEL,
    threads: int = 1,
) -> WrittenWheel:
    """Write a wheel into an empty sink.

    Args:
        sink: where the archive goes, from its present position 0.
        members: all files but METADATA, WHEEL and RECORD, in any order.
        metadata: its name and version also name the metadata folder.
        wheel_info: the WHEEL file.
        epoch: date of the members, seconds since 1970 (``SOURCE_DATE_EPOCH``).
        level: deflate level, 0 (store all) to 9.
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
    prefix = f"{folder}/"
    ordered = sorted([*members, *own], key=lambda member: (member.path.startswith(prefix), member.path))
    _check(ordered, folder)
    archive = _Archive(sink, dos_time(epoch), stored=level == 0)
    _fill(archive, ordered, level=level, threads=threads)
    record = (*archive.record, RecordEntry(path=f"{folder}/RECORD"))
    _fill(archive, [Member(path=f"{folder}/RECORD", data=render_record(record))], level=level, threads=1)
    copied = frozenset(member.path for member in ordered if isinstance(member.data, Packed))
    return WrittenWheel(record=record, size=archive.close(), metadata=text, copied=copied)


def write_zip(
    sink: Sink, members: Iterable[Member], *, epoch: int = EARLIEST, level: int = LEVEL, threads: int = 1
) -> tuple[RecordEntry, ...]:
    """Write a plain archive of some files into an empty sink, sorted by path; as :func:`write_wheel` otherwise.

    Returns:
        Path, hash and size of each file.

    Raises:
        IntegrityError: paths that are unsafe or double, or a member that is not as long as it said.
    """
    ordered = sorted(members, key=lambda member: member.path)
    _check(ordered, "")
    archive = _Archive(sink, dos_time(epoch), stored=level == 0)
    _fill(archive, ordered, level=level, threads=threads)
    archive.close()
    return tuple(archive.record)


def _check(members: Sequence[Member], folder: str) -> None:
    paths = [member.path for member in members]
    seen = set(paths)
    reserved = {f"{folder}/{name}" for name in ("RECORD", *SIGNATURES)}
    problems: list[Problem] = []
    if (
        len(seen) < len(paths)
        or not all_safe_paths(paths)
        or max(map(len, paths)) > _LONG
        or not reserved.isdisjoint(seen)
    ):
        problems += _path_problems(paths, reserved)
    problems += (
        Problem(key=member.path, message="the file's size must be specified, because its content is given in chunks")
        for member in members
        if member.size is None and not isinstance(member.data, bytes | Packed)
    )
    both = "the path is both a file and a folder in the wheel"
    problems += (Problem(key=path, message=both) for path in paths_above_others(seen))
    others = {top for path in seen if (top := path.partition("/")[0]).endswith(".dist-info")} - {folder}
    problems += (
        Problem(
            key=top, message=f"a wheel can contain only one *.dist-info folder, but this one also contains {folder}"
        )
        for top in sorted(others)
    )
    if problems:
        raise IntegrityError(*dict.fromkeys(problems))


def _path_problems(paths: Iterable[str], reserved: set[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for path in paths:
        if not is_safe_path(path) or len(path.encode()) > _MAX_PATH:
            yield Problem(key=path[:200], message="the path is not valid in a wheel")
        if path in seen:
            yield Problem(key=path, message="the wheel lists this file twice")
        seen.add(path)
        if path in reserved:
            message = "the wheel cannot contain this file, because RECORD is generated and signatures are not supported"
            yield Problem(key=path, message=message)


def _items(members: Iterable[Member]) -> Iterator[_Piece | _Copy]:
    """What is to be done for members, in order; what is compressed already stays as it is."""
    for member in members:
        data = member.data
        if isinstance(data, Packed):
            yield _Copy(member, data)
            continue
        yield from _pieces(member, data)


def _pieces(member: Member, data: bytes | Callable[[], Iterable[bytes]]) -> Iterator[_Piece]:
    """Read and hash a member block by block."""
    digest = _Digest()
    if isinstance(data, bytes) and len(data) <= BLOCK:
        digest.add(data)
        yield _Piece(member, digest, DeflateBlock(data, b"", last=True), first=True)
        return
    first = True
    for block in cut(digest.watch((data,) if isinstance(data, bytes) else data())):
        yield _Piece(member, digest, block, first)
        first = False


def _batches(items: Iterable[_Piece | _Copy]) -> Iterator[list[_Piece | _Copy]]:
    """Items together that are worth handing to a thread."""
    batch: list[_Piece | _Copy] = []
    size = 0
    for item in items:
        batch.append(item)
        size += _ITEM + (len(item.block.data) if isinstance(item, _Piece) else 0)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def _fill(archive: _Archive, members: Iterable[Member], *, level: int, threads: int) -> None:
    """Compress and append members; with several threads, a few batches are compressed while one is written."""
    if threads <= 1 or not level:
        for member in members:
            data = member.data
            if isinstance(data, Packed):
                archive.copy(member, data)
            else:
                for piece in _pieces(member, data):
                    archive.put(piece, _pack(piece, level))
        return
    waiting: deque[tuple[list[_Piece | _Copy], Future[list[bytes]]]] = deque()
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (start-up time: with one thread it is not needed)

    with ThreadPoolExecutor(max_workers=threads) as pool:
        for batch in _batches(_items(members)):
            waiting.append((batch, pool.submit(_pack_all, batch, level)))
            while waiting and (len(waiting) > 2 * threads or waiting[0][1].done()):
                archive.put_all(*waiting.popleft())
        while waiting:
            archive.put_all(*waiting.popleft())


def _pack(item: _Piece | _Copy, level: int) -> bytes:
    return deflate(item.block, level) if level and isinstance(item, _Piece) else b""


def _pack_all(batch: list[_Piece | _Copy], level: int) -> list[bytes]:
    return [_pack(item, level) for item in batch]


class _Archive:
    """The growing archive: members, then the central directory."""

    def __init__(self, sink: Sink, stamp: tuple[int, int], *, stored: bool) -> None:
        self._sink = sink
        self._copy_range = getattr(sink, "copy_range", None)
        self._stamp = stamp
        self._stored = stored
        self._position = 0
        self._current: Written | None = None
        self._directory: list[bytes] = []
        self.record: list[RecordEntry] = []

    def put_all(self, batch: list[_Piece | _Copy], packed: Future[list[bytes]]) -> None:
        """Append a batch once it is compressed."""
        for item, data in zip(batch, packed.result(), strict=True):
            if isinstance(item, _Copy):
                self.copy(*item)
            else:
                self.put(item, data)

    def close(self) -> int:
        """Write the central directory; returns the bytes of the archive."""
        directory = b"".join(self._directory)
        end = end_records(entries=len(self._directory), size=len(directory), offset=self._position)
        self._append(directory + end)
        return self._position

    def copy(self, member: Member, packed: Packed) -> None:
        """Append a member that was compressed already."""
        data, size = packed.data, packed.size
        written = Written(
            path=member.path,
            method=packed.method,
            executable=member.executable,
            offset=self._position,
            size=size,
            crc=packed.crc,
            compressed=len(data),
        )
        header, entry = both_headers(written, self._stamp)
        self._directory.append(entry)
        self.record.append(RecordEntry(path=member.path, hash=packed.hash, size=size))
        self._append(header)
        if self._copy_range is not None and self._copy_range(data, packed.offset):
            self._position += len(data)
        else:
            self._append(data)

    def put(self, piece: _Piece, packed: bytes) -> None:
        """Append a block of a member; the blocks of one follow each other."""
        block, member = piece.block, piece.member
        if piece.first:
            stored = self._stored or (block.last and len(packed) >= len(block.data))
            self._current = self._begin(member, stored=stored)
        written = self._current
        assert written is not None  # noqa: S101 (a member begins with its first block)
        content = block.data if written.method == STORED else packed
        written.compressed += len(content)
        if block.last:
            self._check_size(piece, written)
            written.crc = piece.digest.crc
            digest = encode_hash(piece.digest.sha256.digest())
            self.record.append(RecordEntry(path=member.path, hash=digest, size=written.size))
            header, entry = both_headers(written, self._stamp)
            self._directory.append(entry)
        else:
            header = local_header(written, self._stamp)
        if piece.first:
            self._append(header)
        self._append(content)
        if block.last and not piece.first:  # only now the header's values are known
            self._sink.seek(written.offset)
            self._sink.write(header)
            self._sink.seek(self._position)

    def _begin(self, member: Member, *, stored: bool) -> Written:
        size = len(member.data) if isinstance(member.data, bytes) else member.size or 0
        return Written(
            path=member.path,
            method=STORED if stored else DEFLATED,
            executable=member.executable,
            offset=self._position,
            size=size,
        )

    @staticmethod
    def _check_size(piece: _Piece, written: Written) -> None:
        if piece.digest.size != written.size:
            message = f"the file was declared with {written.size} bytes, but has {piece.digest.size}"
            raise IntegrityError(Problem(key=written.path, message=message))

    def _append(self, data: bytes | memoryview) -> None:
        self._sink.write(data)
        self._position += len(data)
