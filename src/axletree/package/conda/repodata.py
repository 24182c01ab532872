"""The index of a channel's subfolder: ``repodata.json``, as conda, mamba, pixi and rattler read it.

Written here and not by a tool of the channel: that would read all packages again each time, and write the time of day.
So the same packages give the same bytes, and an index can be changed together with what it names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import zstandard

from axletree.core.errors import IntegrityError, Problem, PublishError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.package.conda.reader import CondaFacts

CHANNEL = "conda"
"""The channel, below an index root."""
REPODATA = "repodata.json"
STALE = ("current_repodata.json", "repodata_shards.msgpack.zst")
"""Indexes of a subfolder that other tools may have made; they would hide what is added."""
_KINDS = (("packages", ".tar.bz2"), ("packages.conda", ".conda"))
_LEVEL = 19  # a small text that is read often


class ChannelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A package of a channel."""

    filename: str
    subdir: str
    record: dict[str, Any]
    """Its line in ``repodata.json``: the fields of ``index.json``, ``md5``, ``sha256`` and ``size`` in bytes."""

    @property
    def sha256(self) -> str:
        """Digest of the file, hexadecimal; empty where the line has none."""
        return str(self.record.get("sha256", ""))


class _Info(msgspec.Struct, frozen=True, kw_only=True):
    subdir: str


class _Repodata(msgspec.Struct, frozen=True, kw_only=True):
    """CEP 36; what else other tools write into it is left out when we write it anew."""

    info: _Info
    packages: dict[str, dict[str, Any]] = {}
    conda: dict[str, dict[str, Any]] = msgspec.field(name="packages.conda", default={})
    removed: tuple[str, ...] = ()
    repodata_version: Literal[1, 2, 3] = 1


def channel_file(facts: CondaFacts, *, md5: str, sha256: str) -> ChannelFile:
    """A package's line in the index of its channel.

    Args:
        facts: what reading the package gave.
        md5: digest of the file, for clients that know no other.
        sha256: digest of the file.

    Raises:
        IntegrityError: the package has no readable ``index.json``.
    """
    if facts.index is None:
        raise IntegrityError(Problem(file=facts.filename, message="the package has no readable info/index.json"))
    record = msgspec.to_builtins(facts.index) | {"depends": list(facts.index.depends)}
    record |= {"md5": md5, "sha256": sha256, "size": facts.size}
    if facts.run_exports is not None:
        record["run_exports"] = msgspec.to_builtins(facts.run_exports)
    subdir = facts.index.subdir or "noarch"
    return ChannelFile(filename=facts.filename, subdir=subdir, record=record)


def index_files(files: Iterable[ChannelFile], *, subdir: str) -> dict[str, bytes]:
    """The index of a subfolder, plain and compressed: path below the index root -> content.

    Clients ask for the compressed one first. The same packages give the same bytes.
    """
    lines = {file.filename: file.record for file in files}
    form = {kind: {name: lines[name] for name in sorted(lines) if name.endswith(end)} for kind, end in _KINDS}
    table = {"info": {"subdir": subdir}, **form, "removed": [], "repodata_version": 1}
    data = msgspec.json.format(msgspec.json.encode(table, order="sorted"), indent=1) + b"\n"
    packed = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(data)
    place = f"{CHANNEL}/{subdir}/{REPODATA}"
    return {place: data, f"{place}.zst": packed}


def read_repodata(data: bytes, *, subdir: str, file: str = REPODATA) -> tuple[ChannelFile, ...]:
    """The packages of an index, by any tool.

    Raises:
        IntegrityError: it is no such index, or is for another subfolder.
    """
    try:
        table = msgspec.json.decode(data, type=_Repodata)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityError(
            Problem(file=file, message=f"the file is not a valid conda channel index: {error}")
        ) from error
    if table.info.subdir != subdir:
        found = table.info.subdir
        raise IntegrityError(Problem(file=file, message=f"the file is the index for {found}, not for {subdir}"))
    lines = table.packages | table.conda
    return tuple(ChannelFile(filename=name, subdir=subdir, record=record) for name, record in lines.items())


def merge_channel(present: Iterable[ChannelFile], new: Iterable[ChannelFile]) -> tuple[ChannelFile, ...]:
    """The packages of a channel after others were added, by subfolder and name.

    Raises:
        PublishError: a package of the same name with other content is there; names all of them.
    """
    files: dict[tuple[str, str], ChannelFile] = {}
    problems: list[Problem] = []
    for file in (*present, *new):
        other = files.setdefault((file.subdir, file.filename), file)
        if other.sha256 != file.sha256:
            was, now = other.sha256[:16] or "unknown", file.sha256[:16]
            message = f"the package is already in the channel with different content (sha256 {was}..., now {now}...)"
            hint = "change the version or build number of the new package, or remove the old one"
            problems.append(Problem(file=f"{file.subdir}/{file.filename}", message=message, hint=hint))
    if problems:
        raise PublishError(*problems)
    return tuple(files[place] for place in sorted(files))


def by_subdir(files: Iterable[ChannelFile]) -> Mapping[str, tuple[ChannelFile, ...]]:
    """The packages of each subfolder; every channel has ``noarch``, even without any in it."""
    found: dict[str, list[ChannelFile]] = {"noarch": []}
    for file in files:
        found.setdefault(file.subdir, []).append(file)
    return {subdir: tuple(found[subdir]) for subdir in sorted(found)}
