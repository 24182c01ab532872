"""Writes the files of an SDK as TheRock's artifacts: folders of hard links, or archives, always the same bytes."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import zstandard

from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.disk import part_folder, write_all
from axletree.host.files import file_errors
from axletree.host.sdk.together import all_results
from axletree.package.ahead import made_ahead
from axletree.package.sdk.artifact_name import MANIFEST, ArtifactName, parse_artifact_name
from axletree.package.sdk.entries import SdkEntry
from axletree.package.tar import END, padding, tar_header
from axletree.report.sdk import LaidArtifact, LaidOut

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

RECORDS = ArtifactName("base", "lib")
"""The artifact that what TheRock's builder wants to know of an SDK lies in."""
RECORDS_BASE = "base/aux-overlay/stage"
LEVEL = 3
"""Zstandard's level of archives, as TheRock has it."""
_PIECE = 1 << 20
_AHEAD = 4
_NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS})
"""Why a file system may refuse a hard link that a copy can stand in for."""


class _Member(msgspec.Struct, frozen=True, kw_only=True):
    """A path of an artifact, from its folder."""

    path: str
    entry: SdkEntry | None = None
    data: bytes = b""
    """Where there is no entry."""

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return len(self.data) if self.entry is None else self.entry.size


def lay_out(
    entries: Iterable[SdkEntry],
    out: Path,
    *,
    archives: bool = False,
    records: Mapping[str, bytes] | None = None,
    epoch: int = EARLIEST,
    threads: int = 1,
) -> LaidOut:
    """Write entries as artifacts, ``NAME_COMPONENT_TARGET``, which read back as the same entries.

    Args:
        entries: sorted by path, each path once.
        out: folder to make; it may exist if nothing is in it. It appears whole or not at all.
        archives: write ``.tar.zst`` with a ``.sha256sum`` beside it, instead of folders.
        records: path below the prefix -> content; what else belongs to :data:`RECORDS`.
        epoch: date of the members of archives.
        threads: how many archives are written at once. No part of the result.

    Raises:
        IntegrityError: an artifact or target can't be in a name, a record is already there, a file has changed since
            it was listed.
        UsageError: the folder exists and something is in it.
        HostError: something can't be read or written. Nothing is left behind then.
    """
    members = _members(tuple(entries), records or {})
    with file_errors(out, "the file cannot be laid out", precise=True):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} exists and is not empty", hint="choose a different folder, or remove this one")
        out.parent.mkdir(parents=True, exist_ok=True)
        with part_folder(out) as part:
            if archives:
                with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
                    pending = [pool.submit(_pack, name, members[name], part, epoch) for name in sorted(members)]
                laid, counts = all_results(pending), {"linked": 0, "copied": 0}
            else:
                counts = {"linked": 0, "copied": 0}
                laid = [_place(name, members[name], part, counts) for name in sorted(members)]
            part.rename(out)
    return LaidOut(folder=str(out), artifacts=tuple(laid), linked=counts["linked"], copied=counts["copied"])


def _members(entries: Sequence[SdkEntry], records: Mapping[str, bytes]) -> dict[ArtifactName, list[_Member]]:
    """What lies in each artifact; paths begin with its base folder."""
    problems: dict[str, Problem] = {}
    found: dict[ArtifactName, list[_Member]] = {}
    known: dict[tuple[str, str, str], ArtifactName | None] = {}
    for entry in entries:
        key = (entry.artifact, entry.component, entry.target)
        if key not in known:
            try:
                known[key] = parse_artifact_name("_".join(key))
            except IntegrityError as error:
                known[key] = None
                problems |= {problem.message: problem for problem in error.problems}
        name = known[key]
        if name is not None:
            found.setdefault(name, []).append(_Member(path=f"{name.name}/stage/{entry.path}", entry=entry))
    paths = {entry.path for entry in entries}
    for path, data in sorted(records.items()):
        if path in paths:
            problems[path] = Problem(
                file=path, message="the SDK already contains this file, which Axletree needs to write"
            )
        found.setdefault(RECORDS, []).append(_Member(path=f"{RECORDS_BASE}/{path}", data=data))
    if problems:
        raise IntegrityError(*problems.values())
    return found


def _bases(name: ArtifactName, members: Sequence[_Member]) -> bytes:
    """The manifest of an artifact."""
    bases = (f"{name.name}/stage", RECORDS_BASE)
    return "".join(
        f"{base}\n" for base in bases if any(member.path.startswith(f"{base}/") for member in members)
    ).encode()


def _place(name: ArtifactName, members: Sequence[_Member], out: Path, counts: dict[str, int]) -> LaidArtifact:
    """An artifact as a folder."""
    folder = out / name.folder
    folder.mkdir()
    (folder / MANIFEST).write_bytes(_bases(name, members))
    made: set[str] = set()
    for member in members:
        place = f"{folder}/{member.path}"
        entry = member.entry
        parent = place if entry is not None and entry.kind == "folder" else place.rpartition("/")[0]
        if parent not in made:
            Path(parent).mkdir(parents=True, exist_ok=True)
            made.add(parent)
        if entry is None:
            Path(place).write_bytes(member.data)
        elif entry.kind == "link":
            Path(place).symlink_to(entry.link)
        elif entry.kind == "file":
            counts[_link_or_copy(entry, place)] += 1
    return _laid(name.folder, members)


def _link_or_copy(entry: SdkEntry, place: str) -> str:
    try:
        os.link(entry.source, place, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(entry.source, place, follow_symlinks=False)
        Path(place).chmod(0o755 if entry.executable else 0o644)
        return "copied"
    return "linked"


def _pack(name: ArtifactName, members: Sequence[_Member], out: Path, epoch: int) -> LaidArtifact:
    """An artifact as an archive, with its checksum beside it."""
    filename = f"{name.folder}.tar.zst"
    ordered = sorted(members, key=lambda member: member.path)
    digest = hashlib.sha256()
    parameters = zstandard.ZstdCompressionParameters.from_level(LEVEL, threads=1, write_checksum=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with (
        (out / filename).open("xb", buffering=0) as sink,
        closing(made_ahead(_tar(_bases(name, members), ordered, epoch), most=_AHEAD)) as chunks,
    ):
        for chunk in chunks:
            if data := packer.compress(chunk):
                digest.update(data)
                write_all(sink.fileno(), data)
        data = packer.flush()
        digest.update(data)
        write_all(sink.fileno(), data)
        packed = sink.tell()
    (out / f"{filename}.sha256sum").write_text(f"{digest.hexdigest()}  {filename}\n", encoding="utf-8")
    return msgspec.structs.replace(_laid(filename, members), packed=packed)


def _tar(manifest: bytes, members: Iterable[_Member], epoch: int) -> Generator[bytes, None, None]:
    """A tar archive in pieces of about a mebibyte; the manifest is its first member."""
    waiting = bytearray(tar_header(MANIFEST, size=len(manifest), executable=False, mtime=epoch))
    waiting += manifest + padding(len(manifest))
    for member in members:
        entry = member.entry
        folder = entry is not None and entry.kind == "folder"
        waiting += tar_header(
            f"{member.path}/" if folder else member.path,
            size=member.size,
            executable=entry is not None and entry.executable,
            mtime=epoch,
            link=entry.link if entry is not None and entry.kind == "link" else None,
            folder=folder,
        )
        for piece in (member.data,) if entry is None else _content(entry):
            waiting += piece
            if len(waiting) >= _PIECE:
                yield bytes(waiting)
                waiting.clear()
        waiting += padding(member.size)
    yield bytes(waiting + END)


def _content(entry: SdkEntry) -> Generator[bytes, None, None]:
    if entry.kind != "file":
        return
    left = entry.size
    with open(entry.source, "rb", buffering=0) as stream:  # noqa: PTH123 (of a text)
        while piece := stream.read(_PIECE):
            left -= len(piece)
            if left < 0:
                break
            yield piece
    if left:
        raise IntegrityError(Problem(file=entry.source, message="the file has changed since it was listed"))


def _laid(name: str, members: Sequence[_Member]) -> LaidArtifact:
    kinds = [member.entry.kind if member.entry else "file" for member in members]
    return LaidArtifact(
        name=name,
        files=sum(kind != "folder" for kind in kinds),
        size=sum(member.size for member in members),
    )
