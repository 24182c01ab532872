"""Facts of a wheel, read in one pass over its archive: names, metadata, RECORD, ELF files. Nothing is unpacked."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

from axletree.binary.elf import ElfFacts, is_elf, read_elf
from axletree.binary.members import MemberSource, read_member
from axletree.binary.zips import ZipEntry, read_directory
from axletree.core.errors import IntegrityError
from axletree.package.metadata import Metadata, parse_metadata
from axletree.package.names import WheelName, dist_info_folder, parse_wheel_name
from axletree.package.record import Content, RecordEntry, RecordIssue, check_record, parse_record
from axletree.package.wheel_info import WheelInfo, parse_wheel_info

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MAX_METADATA = 64 << 20
"""Most bytes of a file in ``.dist-info`` that is read as a whole."""


class WheelMember(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a wheel."""

    path: str
    size: int
    compressed: int
    sha256: str
    """Hexadecimal digest of the content; empty where it was not taken (see ``scan_wheel``)."""
    executable: bool = False
    format: Literal["", "elf", "mach-o", "pe"] = ""
    """Kind of machine code by its first bytes."""


class WheelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a wheel says of itself, and what is true of it."""

    filename: str
    name: WheelName
    """Its file name's parts."""
    dist_info: str
    """Its metadata folder."""
    metadata: Metadata | None
    wheel_info: WheelInfo | None
    record: tuple[RecordEntry, ...] | None
    unreadable: tuple[str, ...] = ()
    """What is missing or damaged in the metadata folder, one sentence each."""
    record_issues: tuple[RecordIssue, ...] = ()
    members: tuple[WheelMember, ...] = ()
    """Its files in the order of the archive, folders left out."""
    size: int = 0
    """Bytes of the archive."""
    texts: dict[str, bytes] = {}
    """Path -> content of the small files that rules read: version modules, ``variant.json``, SBOMs."""


class ElfMember(msgspec.Struct, frozen=True, kw_only=True):
    """An ELF file of a wheel."""

    path: str
    facts: ElfFacts


class WheelScan(msgspec.Struct, frozen=True, kw_only=True):
    """All that one pass over a wheel gives."""

    wheel: WheelFacts
    elfs: tuple[ElfMember, ...] = ()
    damaged_elfs: tuple[tuple[str, str], ...] = ()
    """(path, what is wrong) of files that begin as ELF files and are none."""


class _Pass(NamedTuple):
    members: list[WheelMember]
    elfs: list[ElfMember]
    damaged: list[tuple[str, str]]


def scan_wheel(buffer: bytes | memoryview, *, filename: str, only_metadata: bool = False) -> WheelScan:
    """Read a wheel: each member is inflated once, hashed, and its ELF headers are read on the way.

    Memory stays bounded (tens of MB) whatever the size of the wheel.

    Args:
        buffer: the archive, in memory or mapped.
        filename: its name without folders.
        only_metadata: read ``.dist-info`` only; RECORD is then not compared with the content.

    Raises:
        IntegrityError: the name is no wheel name, or the archive is damaged, ambiguous or unsafe. Trouble inside its
            metadata or an ELF file is no error but a fact.
    """
    name = parse_wheel_name(filename)
    entries = tuple(entry for entry in read_directory(buffer, archive=filename) if not entry.directory)
    found = _Pass([], [], [])
    if not only_metadata:
        for entry in entries:
            _scan_member(buffer, entry, filename, found)
    wheel = _read_dist_info(buffer, entries, name, filename)
    issues: tuple[RecordIssue, ...] = ()
    if wheel.record is not None and not only_metadata:
        contents = {member.path: Content(sha256=member.sha256, size=member.size) for member in found.members}
        issues = check_record(wheel.record, contents, dist_info=wheel.dist_info)
    wheel = msgspec.structs.replace(
        wheel, record_issues=issues, members=tuple(found.members), size=memoryview(buffer).nbytes
    )
    return WheelScan(wheel=wheel, elfs=tuple(found.elfs), damaged_elfs=tuple(found.damaged))


def _scan_member(buffer: bytes | memoryview, entry: ZipEntry, filename: str, found: _Pass) -> None:
    source = MemberSource(buffer, entry, archive=filename)
    digest = hashlib.sha256()
    head = b""
    for chunk in source.scan():
        digest.update(chunk)
        head = head or chunk[:4]
    found.members.append(
        WheelMember(
            path=entry.name,
            size=entry.size,
            compressed=entry.compressed,
            sha256=digest.hexdigest(),
            executable=entry.executable,
        )
    )
    if is_elf(head):
        try:
            found.elfs.append(ElfMember(path=entry.name, facts=read_elf(source, name=entry.name)))
        except IntegrityError as error:
            found.damaged.append((entry.name, error.problems[0].message))


def _read_dist_info(
    buffer: bytes | memoryview, entries: tuple[ZipEntry, ...], name: WheelName, filename: str
) -> WheelFacts:
    unreadable: list[str] = []
    files = {entry.name: entry for entry in entries}
    folder = _find_dist_info(entries, name, unreadable)

    def read(file: str, parse: Callable[..., T]) -> T | None:
        entry = files.get(f"{folder}/{file}")
        if entry is None:
            unreadable.append(f"{folder}/{file} is missing")
            return None
        try:
            return parse(read_member(buffer, entry, archive=filename, limit=MAX_METADATA), file=entry.name)
        except IntegrityError as error:
            unreadable.extend(str(error).splitlines())
            return None

    return WheelFacts(
        filename=filename,
        name=name,
        dist_info=folder,
        metadata=read("METADATA", parse_metadata),
        wheel_info=read("WHEEL", parse_wheel_info),
        record=read("RECORD", parse_record),
        unreadable=tuple(unreadable),
    )


def _find_dist_info(entries: tuple[ZipEntry, ...], name: WheelName, unreadable: list[str]) -> str:
    """The one metadata folder; where there is none or are several, the one that the file name asks for."""
    folders = sorted({top for entry in entries if (top := entry.name.partition("/")[0]).endswith(".dist-info")})
    expected = dist_info_folder(name.project, name.version)
    if len(folders) == 1:
        return folders[0]
    if folders:
        unreadable.append(f"it has {len(folders)} metadata folders: {', '.join(folders[:5])}")
    return expected
