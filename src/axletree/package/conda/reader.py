"""Facts of a conda package, read in one pass over its archive, ``.conda`` or ``.tar.bz2``. Nothing is unpacked."""

from __future__ import annotations

import bz2
import hashlib
from contextlib import closing
from typing import IO, TYPE_CHECKING, Protocol, TypeVar, cast

import msgspec
import zstandard

from axletree.binary.mapped import FORGET_EVERY, forget
from axletree.binary.zip.directory import STORED, ZipEntry, read_directory
from axletree.package.ahead import made_ahead
from axletree.package.conda.info import IndexJson, PathEntry, PathsJson
from axletree.package.conda.model import FileMode, RunExports
from axletree.package.conda.names import parse_conda_name
from axletree.package.conda.prefix import PrefixSearch
from axletree.package.conda.untar import Kind, TarEntry, read_tar, tar_damaged, tar_refused

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping

T = TypeVar("T")

MAX_WINDOW = 1 << 27
"""Most memory that an archive may ask for unpacking it: what other readers give as well."""
MAX_INFO = 256 << 20
"""Most bytes of ``info/`` together that are kept."""
_ELF = b"\x7fELF"
_PIECE = 1 << 20
_AHEAD = 8
"""Pieces that are unpacked before they are hashed: small files take Python's time, large ones the libraries'."""


class CondaMember(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What lies at a path of a package."""

    path: str
    kind: Kind
    size: int
    sha256: str = ""
    """Of a file's content, hexadecimal."""
    executable: bool = False
    target: str = ""
    """Where a link points, as written."""
    prefix: FileMode | None = None
    """How the prefix stands in it, if it does: the one that ``paths.json`` names for it, or for others."""
    elf: bool = False
    """Whether it begins as an ELF file."""


class CondaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a package says of itself, and what it holds."""

    filename: str
    name: str
    version: str
    build: str
    size: int
    """Bytes of the archive."""
    index: IndexJson | None
    paths: tuple[PathEntry, ...] | None
    """``paths.json``; ``None`` where it is missing, as in packages of before 2017."""
    run_exports: RunExports | None = None
    files: tuple[str, ...] | None = None
    """``info/files``."""
    members: tuple[CondaMember, ...] = ()
    """What lies below the prefix, in the order of the archive."""
    info: dict[str, int] = {}
    """Files of ``info/`` and their sizes."""
    about: dict[str, object] = {}
    hash_input: dict[str, object] = {}
    unreadable: tuple[str, ...] = ()
    """What is missing or damaged in ``info/``, one sentence each."""


class CodeSink(Protocol):
    """Takes the content of the ELF files of a package, one after the other."""

    def write(self, chunk: bytes | memoryview) -> None:
        """The next piece of the file."""

    def end(self, path: str) -> None:
        """The file is complete; it lies at this path."""


def scan_conda(buffer: bytes | memoryview, *, filename: str, code: CodeSink | None = None) -> CondaFacts:
    """Read a package: each file is unpacked in pieces and hashed, nothing is kept.

    Args:
        buffer: the archive, in memory or mapped.
        filename: its name without folders.
        code: who wants the content of its ELF files.

    Raises:
        IntegrityError: the name is none of a conda package; the archive is damaged, ambiguous or unsafe. Trouble in
            its metadata is no error but a fact.
    """
    name, version, build = parse_conda_name(filename)
    info: dict[str, bytes] = {}
    members: list[CondaMember] = []
    paths: dict[str, PathEntry] | None = None
    left = MAX_INFO
    for chunks in _archives(buffer, filename):
        # Closed here, also where the archive is damaged: its thread must not wait for the garbage collector.
        with closing(chunks):
            for entry, content in read_tar(chunks, archive=filename):
                if entry.path.startswith("info/"):
                    left -= entry.size
                    if left < 0:
                        raise tar_refused(filename, f"it has more than {MAX_INFO >> 20} MiB in info/")
                    _keep(entry, content, info, filename)
                elif entry.path not in {"info", "."}:
                    if paths is None and "paths.json" in info:
                        paths = _paths(info)
                    members.append(_member(entry, content, paths or {}, code))
    unreadable: list[str] = []
    paths_json = _decode(info, "paths.json", PathsJson, unreadable)
    return CondaFacts(
        filename=filename,
        name=name,
        version=version,
        build=build,
        size=memoryview(buffer).nbytes,
        index=_decode(info, "index.json", IndexJson, unreadable, required=True),
        paths=paths_json.paths if paths_json else None,
        run_exports=_decode(info, "run_exports.json", RunExports, unreadable),
        files=_lines(info, unreadable),
        members=tuple(members),
        info={path: len(data) for path, data in sorted(info.items())},
        about=_decode(info, "about.json", dict[str, object], unreadable) or {},
        hash_input=_decode(info, "hash_input.json", dict[str, object], unreadable) or {},
        unreadable=tuple(unreadable),
    )


def _archives(buffer: bytes | memoryview, filename: str) -> Iterator[Generator[bytes, None, None]]:
    """The tar archives of a package, uncompressed; ``info`` first where there are two."""
    view = memoryview(buffer).cast("B")
    if filename.endswith(".tar.bz2"):
        yield _unpack_bzip2(view, filename)
        return
    stem = filename.removesuffix(".conda")
    entries = {entry.name: entry for entry in read_directory(view, archive=filename)}
    wanted = ("metadata.json", f"info-{stem}.tar.zst", f"pkg-{stem}.tar.zst")
    if entries.keys() != set(wanted):
        found = ", ".join(sorted(entries)[:5])
        raise tar_refused(filename, f"a package must contain only {', '.join(wanted)}, found {found}")
    if any(entry.method != STORED for entry in entries.values()):
        raise tar_refused(
            filename, "it compresses a member that is already compressed; that member must be stored uncompressed"
        )
    _check_format(view, entries["metadata.json"], filename)
    for name in wanted[1:]:
        yield made_ahead(_unpack_zstd(view, entries[name], filename), most=_AHEAD)


def _check_format(view: memoryview, entry: ZipEntry, filename: str) -> None:
    try:
        metadata = msgspec.json.decode(view[entry.data : entry.data + entry.compressed], type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise tar_damaged(filename, f"the file is not a JSON object: {error}", member="metadata.json") from error
    version = metadata.get("conda_pkg_format_version")
    if version != 2:
        message = f"conda_pkg_format_version is {version!r}, but only version 2 is supported"
        raise tar_refused(filename, message, member="metadata.json")


class _Feed:
    """A stored member as a file; what was read leaves memory."""

    def __init__(self, view: memoryview, entry: ZipEntry) -> None:
        self._view = view
        self._place, self._end = entry.data, entry.data + entry.compressed
        self._forgotten = entry.data

    def read(self, size: int = -1) -> bytes:
        start = self._place
        self._place = min(start + size, self._end) if size >= 0 else self._end
        if start - self._forgotten >= FORGET_EVERY:
            forget(self._view, self._forgotten, start)
            self._forgotten = start
        return bytes(self._view[start : self._place])


def _unpack_zstd(view: memoryview, entry: ZipEntry, filename: str) -> Generator[bytes, None, None]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    try:
        expected = zstandard.frame_content_size(bytes(view[entry.data : entry.data + min(entry.compressed, 32)]))
        total = 0
        with unpacker.stream_reader(cast("IO[bytes]", _Feed(view, entry)), read_across_frames=True) as stream:
            while piece := stream.read(_PIECE):
                total += len(piece)
                yield piece
    except zstandard.ZstdError as error:
        raise tar_damaged(filename, f"the Zstandard stream is damaged ({error})") from error
    if expected >= 0 and total < expected:
        raise tar_damaged(filename, f"the Zstandard stream ends after {total} of {expected} bytes")


def _unpack_bzip2(view: memoryview, filename: str) -> Generator[bytes, None, None]:
    position = 0
    while position < len(view):
        unpacker = bz2.BZ2Decompressor()
        while not unpacker.eof:
            feed = b""
            if unpacker.needs_input:
                feed = bytes(view[position : position + _PIECE])
                position += len(feed)
                if not feed:
                    raise tar_damaged(filename, "it is truncated")
            try:
                piece = unpacker.decompress(feed, _PIECE)
            except OSError as error:
                raise tar_damaged(filename, f"the bzip2 stream is damaged ({error})") from error
            if piece:
                yield piece
        position -= len(unpacker.unused_data)


def _keep(entry: TarEntry, content: Iterable[bytes | memoryview], info: dict[str, bytes], filename: str) -> None:
    if entry.kind == "folder":
        return
    path = entry.path.removeprefix("info/")
    if path in info:
        raise tar_refused(filename, "the file occurs twice", member=entry.path)
    info[path] = b"".join(content)


def _member(
    entry: TarEntry, content: Iterable[bytes | memoryview], paths: Mapping[str, PathEntry], code: CodeSink | None
) -> CondaMember:
    digest = hashlib.sha256()
    declared = paths.get(entry.path) or paths.get("")
    search = PrefixSearch(declared.prefix_placeholder.encode()) if declared and declared.prefix_placeholder else None
    head = b""
    for chunk in content:
        head = head or bytes(chunk[:4])
        if code is not None and head == _ELF:
            code.write(chunk)
        digest.update(chunk)
        if search:
            search.feed(chunk)
    if code is not None and head == _ELF:
        code.end(entry.path)
    return CondaMember(
        path=entry.path,
        kind=entry.kind,
        size=entry.size,
        sha256=digest.hexdigest() if entry.kind == "file" else "",
        executable=entry.executable,
        target=entry.target,
        prefix=search.mode if search else None,
        elf=head == _ELF,
    )


def _paths(info: Mapping[str, bytes]) -> dict[str, PathEntry]:
    """Path -> line with a placeholder; "" -> any of them, for files that name none."""
    paths = _decode(info, "paths.json", PathsJson, [])
    found = {entry.path: entry for entry in (paths.paths if paths else ()) if entry.prefix_placeholder}
    return found | {"": next(iter(found.values()))} if found else {}


def _decode(
    info: Mapping[str, bytes], name: str, kind: type[T], unreadable: list[str], *, required: bool = False
) -> T | None:
    if name not in info:
        if required:
            unreadable.append(f"info/{name} is missing")
        return None
    try:
        return msgspec.json.decode(info[name], type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        unreadable.append(f"info/{name} cannot be read: {error}")
        return None


def _lines(info: Mapping[str, bytes], unreadable: list[str]) -> tuple[str, ...] | None:
    if "files" not in info:
        return None
    try:
        return tuple(line for line in info["files"].decode().splitlines() if line)
    except UnicodeDecodeError:
        unreadable.append("info/files is not UTF-8 text")
        return None
