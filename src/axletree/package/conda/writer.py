"""Write a ``.conda`` archive (format 2): the same bytes for the same content, for any number of threads, on any day.

It is a ZIP archive with three stored members: ``metadata.json``, then two tar archives compressed with Zstandard, first
the files of the package, then ``info/``, which is known only when all files were hashed. Everything goes by once and in
pieces; no file is unpacked, copied or held as a whole.

Zstandard gives other bytes with worker threads than without, but the same for any number of them as long as the pieces
have one size. So there is always at least one worker.
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO

import msgspec
import zstandard
from zlib_ng import zlib_ng

from axletree.binary.zip.directory import STORED, ZipEntry
from axletree.binary.zip.members import iter_member
from axletree.binary.zip.records import EARLIEST, Written, central_header, dos_time, end_records, local_header
from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.core.globs import glob_matcher
from axletree.package.ahead import made_ahead
from axletree.package.conda.info import OWN, PathEntry, info_files
from axletree.package.conda.model import CondaFile, CondaPackage, Late, check_description, link_place
from axletree.package.conda.prefix import MIN_BINARY, PrefixSearch
from axletree.package.tar import END, header_size, padding, tar_header, whole_blocks
from axletree.package.wheel.record import encode_hash
from axletree.package.wheel.writer import Packed

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

LEVELS = range(1, 20)
"""Levels of Zstandard; higher ones ask more than 8 MiB of memory of whoever unpacks."""
DEFAULT_LEVEL = 9
"""Of torch's libraries and sources, level 16 leaves 7 % less for 11 times the CPU time, level 12 1 % less for twice."""

COMPRESSOR = f"zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))}"
"""What the bytes of an archive depend on besides its content and level."""

_FEED = 1 << 20
_AHEAD = 8
"""Pieces that are read and hashed before they are compressed: compressing goes on while many small files are read."""
_NOTHING = hashlib.sha256().hexdigest()


class WrittenConda(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    paths: tuple[PathEntry, ...]
    """Its ``paths.json``."""
    size: int
    """Bytes of the archive."""
    content: int
    """Bytes of all files together."""


def write_conda(
    sink: BinaryIO,
    package: CondaPackage,
    files: Sequence[CondaFile],
    *,
    epoch: int = EARLIEST,
    level: int = DEFAULT_LEVEL,
    threads: int = 1,
) -> WrittenConda:
    """Write a package into an empty, seekable sink.

    Args:
        sink: where the archive goes, from its present position 0.
        package: what it says of itself.
        files: everything that goes below the prefix, in any order.
        epoch: date of its files and of the package, seconds since 1970 (``SOURCE_DATE_EPOCH``).
        level: Zstandard's, 1 to 19.
        threads: how many compress at once. No part of the result.

    Raises:
        IntegrityError: files or fields that can't make a package; a file that is not as long, or not what, it said;
            the placeholder of the prefix in a binary file that may not hold it. Lists all of them.
        UsageError: no such level.
    """
    if level not in LEVELS:
        raise UsageError(f"the Zstandard level must be {LEVELS[0]} to {LEVELS[-1]}, not {level}")
    check_description(package, files)
    problems = [
        Problem(
            file=f"{package.stem}.conda",
            key=f"info/{file.path}",
            message="Axletree creates this file itself, so the package cannot contain another one with this path",
        )
        for file in package.info
        if file.path in OWN
    ]
    if problems:
        raise IntegrityError(*problems)
    archive = _Zip(sink, dos_time(epoch))
    archive.add_whole("metadata.json", b'{"conda_pkg_format_version": 2}')
    tree = _Tree(package, epoch)
    ordered = sorted(files, key=lambda file: (isinstance(file.data, Late), file.path))
    archive.add_packed(f"pkg-{package.stem}.tar.zst", tree.tar(ordered), tree.sizes(ordered), level, threads)
    paths = tree.paths(ordered)
    info = [
        msgspec.structs.replace(file, path=f"info/{file.path}")
        for file in sorted(info_files(package, paths, epoch=epoch), key=lambda file: file.path)
    ]
    about = _Tree(msgspec.structs.replace(package, placeholder=None), epoch)
    archive.add_packed(f"info-{package.stem}.tar.zst", about.tar(info), about.sizes(info), level, threads)
    content = sum(entry.size_in_bytes or 0 for entry in paths)
    return WrittenConda(paths=paths, size=archive.close(), content=content)


def content_chunks(file: CondaFile, digests: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
    """The content of a file in pieces, whatever form it has.

    Args:
        file: no link.
        digests: path -> SHA-256 of the files before; for :class:`~axletree.package.conda.model.Late` content.

    Raises:
        IntegrityError: compressed content is damaged.
    """
    data = file.data
    if isinstance(data, bytes):
        yield data
    elif isinstance(data, Packed):
        yield from _unpacked(file.path, data)
    elif isinstance(data, Late):
        yield data.render(digests or {})
    else:
        yield from data()


def _unpacked(path: str, data: Packed) -> Iterator[bytes]:
    """Content of another archive; read through that, where it is mapped, so that what was read leaves memory."""
    archive, place = data.data, 0
    if isinstance(archive, memoryview) and data.offset >= 0:
        archive, place = memoryview(archive.obj).cast("B"), data.offset
    entry = ZipEntry(
        name=path,
        method=data.method,
        crc=data.crc,
        compressed=len(data.data),
        size=data.size,
        offset=place,
        data=place,
        mode=0,
    )
    yield from iter_member(archive, entry, archive="the file's archive")


class _Tree:
    """The files of one tar archive, hashed and searched for the prefix while they are written."""

    def __init__(self, package: CondaPackage, epoch: int) -> None:
        self._package = package
        self._epoch = epoch
        self._placeholder = package.placeholder.encode() if package.placeholder else None
        self._digests: dict[str, str] = {}
        self._late: dict[str, int] = {}
        self._entries: dict[str, PathEntry] = {}

    def sizes(self, files: Iterable[CondaFile]) -> int:
        """Bytes of the whole tar archive."""
        return sum(header_size(file.path, link=file.link) + whole_blocks(self._size(file)) for file in files) + len(END)

    def tar(self, files: Iterable[CondaFile]) -> Iterator[bytes | memoryview]:
        """The tar archive in pieces.

        Raises:
            IntegrityError: as :func:`write_conda`.
        """
        problems: list[Problem] = []
        for file in files:
            yield self._header(file)
            if file.link is None:
                yield from self._content(file, problems)
                yield padding(self._size(file))
        yield END
        if problems:
            raise IntegrityError(*problems)

    def paths(self, files: Iterable[CondaFile]) -> tuple[PathEntry, ...]:
        """The lines of ``paths.json``, sorted, once the archive was written."""
        links = {file.path: file.link for file in files if file.link is not None}
        for path, target in links.items():
            digest = self._digests.get(_follow(path, links), _NOTHING)
            size = len(target.encode())
            self._entries[path] = PathEntry(path=path, path_type="softlink", sha256=digest, size_in_bytes=size)
        return tuple(self._entries[path] for path in sorted(self._entries))

    def _header(self, file: CondaFile) -> bytes:
        size = self._size(file)
        return tar_header(file.path, size=size, executable=file.executable, mtime=self._epoch, link=file.link)

    def _size(self, file: CondaFile) -> int:
        data = file.data
        if isinstance(data, bytes):
            return len(data)
        if isinstance(data, Packed):
            return data.size
        if isinstance(data, Late):
            if file.path not in self._late:
                self._late[file.path] = len(data.render({}))
            return self._late[file.path]
        return file.size or 0

    def _content(self, file: CondaFile, problems: list[Problem]) -> Iterator[bytes | memoryview]:
        digest, size, expected = hashlib.sha256(), 0, self._size(file)
        search = PrefixSearch(self._placeholder) if self._placeholder and not file.path.endswith(".pyc") else None
        for chunk in content_chunks(file, self._digests):
            digest.update(chunk)
            size += len(chunk)
            if search:
                search.feed(chunk)
            yield chunk
        where = f"{self._package.stem}.conda"
        if size != expected:
            message = f"the file has {size} bytes, but was declared with {expected}"
            raise IntegrityError(Problem(file=where, key=file.path, message=message))
        if isinstance(file.data, Packed) and file.data.hash.startswith("sha256="):
            found = encode_hash(digest.digest())
            if found != file.data.hash.rstrip("="):
                message = f"the file has {found}, but was declared with {file.data.hash[:80]}"
                problems.append(Problem(file=where, key=file.path, message=message))
        mode = search.mode if search else None
        if mode == "binary":
            problems.extend(self._binary_problems(file, where))
        self._digests[file.path] = digest.hexdigest()
        self._entries[file.path] = PathEntry(
            path=file.path,
            path_type="hardlink",
            sha256=self._digests[file.path],
            size_in_bytes=size,
            file_mode=mode,
            prefix_placeholder=self._package.placeholder if mode else None,
            no_link=file.no_link,
        )

    def _binary_problems(self, file: CondaFile, where: str) -> Iterator[Problem]:
        package, length = self._package, len(self._placeholder or b"")
        if not glob_matcher(package.binary_prefix)(file.path):
            message = "the binary file contains its build prefix, which cannot be safely replaced"
            hint = (
                "build the file without the path, or list the file in binary_prefix after checking how it uses the path"
            )
            yield Problem(file=where, key=file.path, message=message, hint=hint)
        elif length < MIN_BINARY:
            message = (
                f"the file contains a prefix of {length} bytes, but a binary file needs {MIN_BINARY}, so that "
                "longer prefixes can replace it"
            )
            yield Problem(
                file=where, key=file.path, message=message, hint="build in a folder whose path is at least that long"
            )


def _follow(path: str, links: Mapping[str, str]) -> str:
    """Where a chain of links ends; the path itself where it runs in a circle."""
    seen: set[str] = set()
    while path in links and path not in seen:
        seen.add(path)
        path = link_place(path, links[path]) or ""
    return path


class _Zip:
    """The growing archive: stored members, then the central directory."""

    def __init__(self, sink: BinaryIO, stamp: tuple[int, int]) -> None:
        self._sink = sink
        self._stamp = stamp
        self._position = 0
        self._members: list[Written] = []

    def add_whole(self, name: str, data: bytes) -> None:
        """A member from memory."""
        member = self._begin(name, len(data))
        self._grow(member, data)
        self._finish(member)

    def add_packed(self, name: str, chunks: Iterable[bytes | memoryview], size: int, level: int, threads: int) -> None:
        """A member that is compressed on its way; ``size`` is that of all its chunks together."""
        member = self._begin(name, size)
        parameters = zstandard.ZstdCompressionParameters.from_level(
            level, source_size=size, threads=max(1, threads), write_checksum=True, write_content_size=True
        )
        packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=size)
        with closing(made_ahead(_coalesced(chunks), most=_AHEAD)) as pieces:
            for piece in pieces:
                if packed := packer.compress(piece):
                    self._grow(member, packed)
        self._grow(member, packer.flush())
        self._finish(member)

    def close(self) -> int:
        """Write the central directory; returns the bytes of the archive."""
        directory = b"".join(central_header(member, self._stamp) for member in self._members)
        end = end_records(entries=len(self._members), size=len(directory), offset=self._position)
        self._sink.write(directory + end)
        return self._position + len(directory) + len(end)

    def _begin(self, name: str, bound: int) -> Written:
        """Leave room for a header; its length depends on how large the member may become."""
        member = Written(
            path=name, method=STORED, executable=False, offset=self._position, size=0, bound=bound + (bound >> 8)
        )
        self._members.append(member)
        header = local_header(member, self._stamp)
        self._sink.write(header)
        self._position += len(header)
        return member

    def _grow(self, member: Written, data: bytes) -> None:
        self._sink.write(data)
        self._position += len(data)
        member.crc = zlib_ng.crc32(data, member.crc)
        member.size = member.compressed = member.size + len(data)

    def _finish(self, member: Written) -> None:
        self._sink.seek(member.offset)
        self._sink.write(local_header(member, self._stamp))
        self._sink.seek(self._position)


def _coalesced(chunks: Iterable[bytes | memoryview]) -> Generator[bytes | memoryview, None, None]:
    """The same bytes in pieces that are worth a call: headers and small files together."""
    waiting: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk)
        if size >= _FEED:
            yield b"".join(waiting) if len(waiting) > 1 else waiting[0]
            waiting, size = [], 0
    yield b"".join(waiting)
