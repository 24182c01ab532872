"""The wheel that is to be split: its directory and metadata, and a way to its members."""

from __future__ import annotations

import re

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.binary.elf.facts import is_elf, read_elf
from axletree.binary.zip.directory import ZipEntry, read_directory
from axletree.binary.zip.members import MemberSource, read_member
from axletree.core.errors import IntegrityError, Problem
from axletree.package.wheel.info import WheelInfo, parse_wheel_info
from axletree.package.wheel.metadata import Metadata, parse_metadata
from axletree.package.wheel.names import WheelName, dist_info_folder, parse_wheel_name
from axletree.package.wheel.record import RecordEntry, parse_record

MAX_READ = 256 << 20
"""Most bytes of a member that is read as a whole: metadata, and what is changed."""
NATIVE = re.compile(r"\.(so(\.\d+)*|dylib|dll|pyd|a|lib|exe)$")
"""Names of files that are for one platform."""


class SplitSource(msgspec.Struct, frozen=True, kw_only=True):
    """The wheel that is split."""

    filename: str
    name: WheelName
    buffer: bytes | memoryview
    """The archive; what is planned looks into it."""
    entries: dict[str, ZipEntry]
    """Path -> member, folders left out."""
    dist_info: str
    metadata: Metadata
    wheel_info: WheelInfo
    record: tuple[RecordEntry, ...]

    def read(self, path: str) -> bytes:
        """The content of a member."""
        return read_member(self.buffer, self.entries[path], archive=self.filename, limit=MAX_READ)

    def soname(self, path: str) -> str | None:
        """The SONAME of the shared library that a member is, ``None`` for what is none. Inflates it."""
        if not NATIVE.search(path):
            return None
        member = MemberSource(self.buffer, self.entries[path], archive=self.filename)
        first = b""
        for chunk in member.scan():
            first = first or chunk[:4]
        return read_elf(member, name=path).soname if is_elf(first) else None


def read_split_source(buffer: bytes | memoryview, *, filename: str) -> SplitSource:
    """Read the directory and the metadata of a wheel.

    Raises:
        IntegrityError: it is no wheel, its archive or metadata are damaged, or it is one of several variants.
    """
    name = parse_wheel_name(filename)
    if name.variant:
        hint = "split the plain wheel, then make variants from the parts"
        raise IntegrityError(
            Problem(
                file=filename,
                message=f"the file is a variant wheel ({name.variant!r}), which cannot be split",
                hint=hint,
            )
        )
    entries = {entry.name: entry for entry in read_directory(buffer, archive=filename) if not entry.directory}
    folder = dist_info_folder(name.project, name.version)
    if f"{folder}/METADATA" not in entries:  # names that are not normalised
        folder = next((path.rpartition("/")[0] for path in entries if path.endswith(".dist-info/METADATA")), folder)
    texts: dict[str, bytes] = {}
    for file in ("METADATA", "WHEEL", "RECORD"):
        entry = entries.get(f"{folder}/{file}")
        if entry is None:
            raise IntegrityError(Problem(file=filename, key=f"{folder}/{file}", message="the file is missing"))
        texts[file] = read_member(buffer, entry, archive=filename, limit=MAX_READ)
    metadata = parse_metadata(texts["METADATA"], file=f"{folder}/METADATA")
    if (canonicalize_name(metadata.name), Version(metadata.version)) != (name.project, Version(name.version)):
        message = f"the wheel has metadata for {metadata.name} {metadata.version}, which does not match its file name"
        raise IntegrityError(Problem(file=filename, message=message))
    return SplitSource(
        filename=filename,
        name=name,
        buffer=buffer,
        entries=entries,
        dist_info=folder,
        metadata=metadata,
        wheel_info=parse_wheel_info(texts["WHEEL"], file=f"{folder}/WHEEL"),
        record=parse_record(texts["RECORD"], file=f"{folder}/RECORD"),
    )
