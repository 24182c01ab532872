"""Facts of a wheel, read in one pass over its archive: names, metadata, RECORD, ELF files. Nothing is unpacked."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

from axletree.binary.elf.facts import ElfFacts, constant_ranges, is_elf, read_elf, read_host_facts
from axletree.binary.formats import HEAD, MAGICS, CodeFormat, code_format
from axletree.binary.gpu.scan import DeviceScanner
from axletree.binary.gpu.scan import GpuSection as Place
from axletree.binary.mapped import FORGET_EVERY, forget
from axletree.binary.zip.directory import MAX_TOTAL, ZipEntry, read_directory
from axletree.binary.zip.members import SMALL, PassingMember, read_member
from axletree.core.errors import IntegrityError
from axletree.package.wheel.info import WheelInfo, parse_wheel_info
from axletree.package.wheel.metadata import Metadata, parse_metadata
from axletree.package.wheel.names import WheelName, dist_info_folder, parse_wheel_name
from axletree.package.wheel.record import (
    OTHER_HASHES,
    ReadContent,
    RecordEntry,
    RecordIssue,
    check_record,
    encode_hash,
    parse_record,
)
from axletree.package.wheel.texts import is_read_by_rules

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MAX_METADATA = 64 << 20
"""Most bytes of a file in ``.dist-info`` that is read as a whole."""
LARGEST_SMALL = 16 << 20
"""Largest member that ``hashes="small"`` takes the hash of."""


class WheelMember(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file of a wheel."""

    path: str
    size: int
    compressed: int
    sha256: str
    """Hexadecimal digest of the content; empty where it was not taken (see ``scan_wheel``)."""
    crc: int = 0
    """CRC-32 of the content, 0 where it is not known."""
    executable: bool = False
    format: CodeFormat = ""
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
    unhashed: tuple[str, ...] = ()
    """Members whose hash was not taken, so RECORD's is neither confirmed nor denied; see ``scan_wheel``."""


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
    """What is known before the content is read, and what is found in it."""

    buffer: bytes | memoryview
    archive: str
    other_hashes: dict[str, str]
    """Path -> algorithm, where RECORD names another one than SHA-256."""
    largest_hashed: int
    members: list[WheelMember]
    contents: dict[str, ReadContent]
    texts: dict[str, bytes]
    elfs: list[ElfMember]
    damaged: list[tuple[str, str]]


def scan_wheel(
    buffer: bytes | memoryview, *, filename: str, only_metadata: bool = False, hashes: Literal["all", "small"] = "all"
) -> WheelScan:
    """Read a wheel: each member is inflated once, hashed, and its ELF headers are read on the way.

    Memory stays bounded (tens of MB) whatever the size of the wheel.

    Args:
        buffer: the archive, in memory or mapped.
        filename: its name without folders.
        only_metadata: read ``.dist-info`` only; RECORD is then not compared with the content.
        hashes: ``small``: don't take the hash of members of more than 16 MiB, a third of the work for a wheel that has
            them. Sizes and CRCs are checked for all.

    Raises:
        IntegrityError: the name is no wheel name, or the archive is damaged, ambiguous or unsafe. Trouble inside its
            metadata or an ELF file is no error but a fact.
    """
    name = parse_wheel_name(filename)
    entries = tuple(entry for entry in read_directory(buffer, archive=filename) if not entry.directory)
    forget(buffer)
    wheel = _read_dist_info(buffer, entries, name, filename)
    if only_metadata:
        return WheelScan(wheel=msgspec.structs.replace(wheel, size=memoryview(buffer).nbytes))
    others = {line.path: line.algorithm for line in wheel.record or () if line.algorithm in OTHER_HASHES}
    found = _Pass(buffer, filename, others, MAX_TOTAL if hashes == "all" else LARGEST_SMALL, [], {}, {}, [], [])
    forgotten = 0
    for entry in entries:
        (_scan_small if entry.size <= SMALL else _scan_large)(entry, found)
        if entry.data - forgotten > FORGET_EVERY:
            forget(buffer, forgotten, entry.data)
            forgotten = entry.data
    issues: tuple[RecordIssue, ...] = ()
    if wheel.record is not None:
        issues = check_record(wheel.record, found.contents, dist_info=wheel.dist_info)
    wheel = msgspec.structs.replace(
        wheel,
        record_issues=issues,
        members=tuple(found.members),
        size=memoryview(buffer).nbytes,
        texts=found.texts,
        unhashed=tuple(member.path for member in found.members if not member.sha256),
    )
    return WheelScan(wheel=wheel, elfs=tuple(found.elfs), damaged_elfs=tuple(found.damaged))


def _scan_small(entry: ZipEntry, found: _Pass) -> None:
    content = read_member(found.buffer, entry, archive=found.archive, limit=SMALL)
    kind = code_format(content[:HEAD]) if content.startswith(MAGICS) else ""
    if kind == "elf":
        try:
            found.elfs.append(ElfMember(path=entry.name, facts=read_elf(content, name=entry.name)))
        except IntegrityError as error:
            found.damaged.append((entry.name, error.problems[0].message))
    if is_read_by_rules(entry.name, entry.size):
        found.texts[entry.name] = content
    digests = _digests(entry, found)
    for digest in digests:
        digest.update(content)
    _add_member(entry, found, kind, digests)


def _scan_large(entry: ZipEntry, found: _Pass) -> None:
    digests = _digests(entry, found)
    scanner: DeviceScanner | None = None
    ranges: tuple[tuple[int, int], ...] = ()

    def watch(offset: int, chunk: bytes) -> None:
        nonlocal scanner
        for digest in digests:
            digest.update(chunk)
        if offset == 0 and is_elf(chunk):
            scanner = DeviceScanner()
        if scanner is not None:
            end = offset + len(chunk)
            if scanner.inside or not ranges or any(start < end and offset < stop for start, stop in ranges):
                scanner.feed(offset, chunk)

    member = PassingMember(found.buffer, entry, archive=found.archive, watch=watch)
    kind = code_format(member.read(0, HEAD))
    elf: tuple[ElfFacts, tuple[Place, ...]] | None = None
    if kind == "elf":
        try:
            ranges = constant_ranges(member, name=entry.name)
            elf = read_host_facts(member, name=entry.name)
        except IntegrityError as error:
            found.damaged.append((entry.name, error.problems[0].message))
    if is_read_by_rules(entry.name, entry.size):
        found.texts[entry.name] = member.read(0, entry.size)
    member.finish()
    if elf is not None and scanner is not None:
        facts, places = elf
        if places:
            facts = msgspec.structs.replace(facts, device=scanner.finish(places, source=member))
        found.elfs.append(ElfMember(path=entry.name, facts=facts))
    _add_member(entry, found, kind, digests)


def _digests(entry: ZipEntry, found: _Pass) -> list[hashlib._Hash]:
    """SHA-256, and the other hash that RECORD has for a member; none for what is too large."""
    if entry.size > found.largest_hashed:
        return []
    other = found.other_hashes.get(entry.name)
    return [hashlib.sha256()] if other is None else [hashlib.sha256(), hashlib.new(other)]


def _add_member(entry: ZipEntry, found: _Pass, kind: CodeFormat, digests: list[hashlib._Hash]) -> None:
    sha256 = digests[0].hexdigest() if digests else ""
    other = encode_hash(digests[1].digest(), found.other_hashes[entry.name]) if len(digests) > 1 else ""
    found.contents[entry.name] = ReadContent(sha256=sha256, size=entry.size, other=other)
    found.members.append(
        WheelMember(
            path=entry.name,
            size=entry.size,
            compressed=entry.compressed,
            sha256=sha256,
            crc=entry.crc,
            executable=entry.executable,
            format=kind,
        )
    )


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
        unreadable.append(f"the wheel has {len(folders)} metadata folders: {', '.join(folders[:5])}")
    return expected
