"""Put a wheel on disk: written beside its place, read back by the strict reader, then moved there. All or nothing."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.mapped import forget
from axletree.binary.zip.deflate import LEVEL
from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import SMALL, iter_member, read_member
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem, some_problems
from axletree.core.values import Digest
from axletree.disk import write_all
from axletree.host.files import appearing, file_errors
from axletree.package.wheel.names import WheelName, render_wheel_name
from axletree.package.wheel.record import ReadContent, check_record, content_of, encode_hash, parse_record
from axletree.package.wheel.writer import WrittenWheel, write_wheel, write_zip

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from axletree.binary.zip.directory import ZipEntry
    from axletree.package.wheel.info import WheelInfo
    from axletree.package.wheel.metadata import Metadata
    from axletree.package.wheel.writer import Member

WRITTEN_WRONG = "run the command again; if this repeats, check the disk and the memory, or report it as a bug"
"""What to do where an output does not read back as it was written."""


class WheelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel on disk."""

    path: Path
    size: int
    written: WrittenWheel
    digest: Digest | None = None
    """SHA-256 of the whole file, where it was taken while that was written."""

    @property
    def sha256(self) -> Digest:
        """Of the whole file, which is read for it where that is still to be done."""
        return self.digest or digest_file(self.path)


class ZipFile(msgspec.Struct, frozen=True, kw_only=True):
    """A plain archive on disk."""

    path: Path
    size: int

    @property
    def sha256(self) -> Digest:
        """Of the whole file, which is read for it."""
        return digest_file(self.path)


_FILES: weakref.WeakKeyDictionary[mmap.mmap, int] = weakref.WeakKeyDictionary()
"""What is mapped -> a descriptor of its file, so that parts of it can be copied without touching its pages."""

_PER_MEMBER = 20_000
"""Bytes of content that a member costs as much as, beside them."""
_BUFFER = 1 << 18
_STEP = 8 << 20
"""Bytes that are copied, hashed and then leave memory; so many that threads seldom wait for each other."""
_COPY_FROM = 1 << 18
"""Bytes from which on asking the kernel to copy costs less than copying."""


def map_file(path: Path) -> memoryview:
    """A file's bytes without reading them into memory.

    Raises:
        HostError: it can't be opened.
        IntegrityError: it is empty.
    """
    with file_errors(path), path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise IntegrityError(Problem(file=str(path), message="the file is empty"))
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        _FILES[mapped] = descriptor = os.dup(file.fileno())
        weakref.finalize(mapped, os.close, descriptor)
    # Not closed here: the traceback of an error may still hold views. The mapping goes with the last of them.
    return memoryview(mapped)


def digest_file(path: Path) -> Digest:
    """SHA-256 of a file's content."""
    with path.open("rb") as stream:  # read, not mapped: pages of a mapping count as memory of ours
        return Digest(hashlib.file_digest(stream, "sha256").hexdigest())


class _Output:
    """A new file that an archive is written into: buffered, and with a short way from a mapped file to it."""

    def __init__(self, descriptor: int, *, digest: bool) -> None:
        self._descriptor = descriptor
        self._sha256 = hashlib.sha256() if digest else None
        self._waiting: list[bytes | memoryview] = []
        self._size = 0

    def write(self, data: bytes | memoryview) -> None:
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= _BUFFER:
            self.flush()

    @property
    def digest(self) -> Digest | None:
        """SHA-256 of what was written, if it was wanted and nothing was written over."""
        return None if self._sha256 is None else Digest(self._sha256.hexdigest())

    def seek(self, offset: int) -> None:
        self.flush()
        self._sha256 = None
        os.lseek(self._descriptor, offset, os.SEEK_SET)

    def flush(self) -> None:
        data = memoryview(b"".join(self._waiting)) if len(self._waiting) != 1 else memoryview(self._waiting[0])
        self._waiting, self._size = [], 0
        if self._sha256 is not None:
            self._sha256.update(data)
        write_all(self._descriptor, data)

    def copy_range(self, data: bytes | memoryview, offset: int) -> bool:
        """Let the kernel copy a part of a mapped file; its pages are touched for the digest only."""
        mapped = data.obj if isinstance(data, memoryview) else None
        if offset < 0 or len(data) < _COPY_FROM or not isinstance(mapped, mmap.mmap) or mapped not in _FILES:
            return False
        self.flush()
        source, end, whole = _FILES[mapped], offset + len(data), memoryview(mapped)
        step = end - offset if self._sha256 is None else _STEP
        while offset < end:
            sent = os.sendfile(self._descriptor, source, offset, min(end - offset, step))
            if not sent:
                raise OSError(errno.EIO, "the source file became shorter while it was being copied")
            if self._sha256 is not None:
                self._sha256.update(whole[offset : offset + sent])
                forget(whole, offset, offset + sent)
            offset += sent
        return True


def write_wheel_file(
    folder: Path,
    name: WheelName,
    members: Sequence[Member],
    *,
    metadata: Metadata,
    wheel_info: WheelInfo,
    epoch: int = EARLIEST,
    level: int = LEVEL,
    threads: int = 1,
    verify: bool = True,
    digest: bool = False,
) -> WheelFile:
    """Write a wheel into a folder under its normalised name; what was there under that name is replaced.

    Args:
        folder: where it goes; made if it is not there.
        name: gives the file name.
        members: as :func:`~axletree.package.wheel.writer.write_wheel` takes them, and so are the other arguments.
        metadata: the METADATA file.
        wheel_info: the WHEEL file.
        epoch: date of the members.
        level: deflate level.
        threads: how many compress at once.
        verify: read the whole wheel back before it gets its name, and bring it to the disk. Without, it costs little
            more than copying what it is made of; a loss of power can then take it.
        digest: take the SHA-256 of the file on the way where that can be done; it costs less than reading it again.

    Raises:
        IntegrityError: the members can't make a wheel, or what was written does not read back as such.
        HostError: the folder can't be written, or the disk is full. Nothing is left behind then.
    """
    path = folder / render_wheel_name(name)
    with appearing(path, sync=verify) as temporary:
        with temporary.open("wb", buffering=0) as sink:
            output = _Output(sink.fileno(), digest=digest)
            written = write_wheel(
                output, members, metadata=metadata, wheel_info=wheel_info, epoch=epoch, level=level, threads=threads
            )
            output.flush()
            if verify:
                os.fsync(sink.fileno())
        if verify:
            _verify(temporary, path.name, written, threads)
    return WheelFile(path=path, size=written.size, written=written, digest=output.digest)


def write_zip_file(
    path: Path, members: Sequence[Member], *, epoch: int = EARLIEST, level: int = LEVEL, threads: int = 1
) -> ZipFile:
    """Write a plain archive; what was there under its name is replaced.

    Args:
        path: where it goes.
        members: its files; see :func:`~axletree.package.wheel.writer.write_zip`, also for the other arguments.
        epoch: date of the members.
        level: deflate level.
        threads: how many compress at once.

    Raises:
        IntegrityError: the members can't make an archive, or what was written does not read back as such.
        HostError: it can't be written, or the disk is full. Nothing is left behind then.
    """
    with appearing(path) as temporary:
        with temporary.open("wb", buffering=0) as sink:
            output = _Output(sink.fileno(), digest=False)
            written = write_zip(output, members, epoch=epoch, level=level, threads=threads)
            output.flush()
            os.fsync(sink.fileno())
        view = map_file(temporary)
        contents = read_contents(view, read_directory(view, archive=path.name), archive=path.name, threads=threads)
        sizes = {name: (encode_hash(bytes.fromhex(found.sha256)), found.size) for name, found in contents.items()}
        if sizes != {line.path: (line.hash, line.size) for line in written}:
            raise IntegrityError(
                Problem(file=path.name, message="the archive was not written correctly"), hint=WRITTEN_WRONG
            )
    return ZipFile(path=path, size=path.stat().st_size)


def read_contents(
    view: memoryview,
    entries: Iterable[ZipEntry],
    *,
    archive: str,
    threads: int = 1,
    hashed: Container[str] | None = None,
) -> dict[str, ReadContent]:
    """Inflate every member and compare its CRC: its path -> what was read. Folders are left out.

    Args:
        view: the archive.
        entries: its members.
        archive: what errors call it.
        threads: how many inflate at once.
        hashed: of which members the SHA-256 is taken as well; ``None``: of all.

    Raises:
        IntegrityError: a member is damaged.
    """

    def read(group: list[ZipEntry]) -> list[tuple[str, ReadContent]]:
        return [
            (entry.name, read_content(view, entry, archive=archive, hashed=hashed is None or entry.name in hashed))
            for entry in group
        ]

    groups = share_out([entry for entry in entries if not entry.directory], threads)
    if len(groups) == 1:
        return dict(read(groups[0]))
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (start-up time: whoever maps a file is here)

    with ThreadPoolExecutor(max_workers=threads) as pool:
        return dict(pair for pairs in pool.map(read, groups) for pair in pairs)


def share_out(entries: Sequence[ZipEntry], parts: int) -> list[list[ZipEntry]]:
    """Divide members into groups of about the same work, each in the order of the archive."""
    if parts <= 1 or len(entries) < 2:
        return [list(entries)]
    load = [0] * parts
    owner: dict[str, int] = {}
    for entry in sorted(entries, key=lambda entry: -entry.size):
        owner[entry.name] = least = load.index(min(load))
        load[least] += entry.size + _PER_MEMBER
    return [[entry for entry in entries if owner[entry.name] == part] for part in range(parts)]


def read_content(
    view: memoryview,
    entry: ZipEntry,
    *,
    archive: str,
    hashed: bool = True,
    write: Callable[[bytes | memoryview], object] = lambda _: None,
) -> ReadContent:
    """What a member holds, which ``write`` gets as it is read."""
    if entry.size <= SMALL:
        data = read_member(view, entry, archive=archive, limit=SMALL)
        write(data)
        return content_of(data)
    digest = hashlib.sha256()
    for chunk in iter_member(view, entry, archive=archive):
        if hashed:
            digest.update(chunk)
        write(chunk)
    return ReadContent(sha256=digest.hexdigest() if hashed else "", size=entry.size)


def _verify(path: Path, filename: str, written: WrittenWheel, threads: int) -> None:
    """Read the whole wheel back as a stranger would.

    Of large members that were hashed as they were compressed the CRC is compared, which was taken of the same bytes as
    the hash was: a third of what reading back costs.
    """
    view = map_file(path)
    entries = read_directory(view, archive=filename)
    own = written.record[-1].path
    record = next((entry for entry in entries if entry.name == own), None)
    if record is None or entries[-1] is not record:
        raise IntegrityError(
            Problem(file=filename, message="the archive was not written correctly: RECORD is not its last member"),
            hint=WRITTEN_WRONG,
        )
    lines = parse_record(read_member(view, record, archive=filename, limit=record.size), file=own)
    contents = read_contents(view, entries, archive=filename, threads=threads, hashed=written.copied)
    issues = check_record(lines, contents, dist_info=own.rpartition("/")[0])
    problems = [
        Problem(file=filename, key=issue.path, message=f"the archive was not written correctly: {issue.detail}")
        for issue in issues
    ]
    if lines != written.record or view.nbytes != written.size:
        problems.append(Problem(file=filename, message="the archive was not written correctly"))
    if problems:
        raise IntegrityError(*some_problems(problems), hint=WRITTEN_WRONG)
