"""Take the members of a wheel over into another one as they are: still compressed, with the hashes of their RECORD."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from axletree.binary.zip.members import iter_member
from axletree.core.errors import IntegrityError, Problem
from axletree.package.wheel.info import carry_data, carry_dist_info
from axletree.package.wheel.record import SIGNATURES, encode_hash
from axletree.package.wheel.writer import Member, Packed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.binary.zip.directory import ZipEntry
    from axletree.package.wheel.record import RecordEntry

_SHA256 = re.compile(r"sha256=[A-Za-z0-9_-]{43}=*")


def packed_members(
    buffer: bytes | memoryview,
    entries: Iterable[ZipEntry],
    record: Iterable[RecordEntry],
    *,
    folder: str,
    archive: str = "archive",
) -> tuple[Member, ...]:
    """The members of a wheel, to be written into another without inflating them.

    Args:
        buffer: the archive; the members look into it, so it must outlive them.
        entries: which members, from :func:`~axletree.binary.zip.directory.read_directory` of the same buffer. Folders
            are left out, and so is what each wheel has anew: METADATA, WHEEL, RECORD and its signatures.
        record: the wheel's RECORD. Its SHA-256 hashes are taken over unread: whoever writes the new wheel with
            verification finds the ones that are not true. A member without one is inflated and hashed.
        folder: the wheel's ``.dist-info`` folder.
        archive: what errors call the archive.

    Raises:
        IntegrityError: RECORD has another size than the archive for a member, or a member that had to be inflated is
            damaged. Names all of them.
    """
    view = memoryview(buffer).cast("B")
    lines = {line.path: line for line in record}
    skipped = {f"{folder}/{name}" for name in ("METADATA", "WHEEL", "RECORD", *SIGNATURES)}
    members: list[Member] = []
    problems: list[Problem] = []
    for entry in entries:
        name, size = entry.name, entry.size
        if name in skipped or entry.directory:
            continue
        line = lines.get(name)
        if line is not None and line.size is not None and line.size != size:
            message = f"the file has {size} bytes, but RECORD lists {line.size}"
            problems.append(Problem(file=archive, key=name, message=message))
            continue
        if line is not None and _SHA256.fullmatch(line.hash):
            digest = line.hash.rstrip("=") if line.hash[-1] == "=" else line.hash
        else:
            digest = _hash(view, entry, archive)
        packed = Packed(
            data=view[entry.data : entry.data + entry.compressed],
            method=entry.method,
            crc=entry.crc,
            size=size,
            hash=digest,
            offset=entry.data,
        )
        members.append(Member(path=name, data=packed, size=size, executable=entry.executable))
    if problems:
        raise IntegrityError(*problems)
    return tuple(members)


def _hash(view: memoryview, entry: ZipEntry, archive: str) -> str:
    digest = hashlib.sha256()
    for chunk in iter_member(view, entry, archive=archive):
        digest.update(chunk)
    return encode_hash(digest.digest())


def renamed_members(members: Iterable[Member], *, source: str, target: str) -> tuple[Member, ...]:
    """Members whose ``.dist-info`` and ``.data`` folders get another name, as :func:`carry_dist_info` has it.

    What tells of an installation, or signs what is no more, is left out.

    Args:
        members: of one wheel.
        source: its ``.dist-info`` folder as it is.
        target: how the folder is called in the new wheel.
    """
    members = tuple(members)
    paths = [member.path for member in members]
    prefix = f"{source}/"
    moved = carry_dist_info(paths, source=source, target=target) | carry_data(paths, source=source, target=target)
    return tuple(
        member if member.path == moved.get(member.path, member.path) else replace(member, path=moved[member.path])
        for member in members
        if member.path in moved or not member.path.startswith(prefix)
    )
