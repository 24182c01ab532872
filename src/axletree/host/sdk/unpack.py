"""Archives of strangers become folders of a cache: checked, whole or absent, each content once.

A folder is named by the digest of its archive. Files in it can't be written to: others may be hard links to them.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import filelock
import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import is_safe_path
from axletree.core.units import format_bytes
from axletree.disk import each_entry, part_folder, write_all
from axletree.host.archive import digest_file, map_file
from axletree.host.files import file_errors, read_json
from axletree.package.ahead import made_ahead
from axletree.package.conda.untar import read_tar, tar_damaged, tar_refused
from axletree.package.sdk.artifact_name import MANIFEST
from axletree.package.sdk.merge import leaves_tree
from axletree.package.sdk.packed import parse_control, read_deb, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from axletree.package.conda.untar import TarEntry
    from axletree.package.sdk.packed import DebControl

CONTENT = "content"
"""The folder with the members, below the one of the archive."""
_NOTE = "unpacked.json"
_AHEAD = 8
_MIN_LIMIT = 1 << 30
_MOST_TIMES = 200
"""An archive may unpack to so many times its size, or to a gibibyte: real ones stay below 40 times."""
_MAX_MANIFEST = 1 << 20
_MAX_CONTROL = 1 << 20


class _Unpacked(msgspec.Struct, frozen=True, kw_only=True):
    """What was unpacked: a folder that does not have it was spoilt by somebody, or by a loss of power."""

    files: int
    size: int
    control: dict[str, str] = {}


def unpack_artifact(archive: Path, cache: Path, *, digest: str | None = None) -> Path:
    """The folder of an artifact's archive, with its manifest and its base folders.

    Args:
        archive: ``.tar.zst`` or ``.tar.xz``.
        cache: where such folders lie.
        digest: SHA-256 that the archive must have, if that is known.

    Raises:
        IntegrityError: it has another digest, is damaged, hostile, or no archive of an artifact.
        HostError: something can't be read or written, or the disk is full. Nothing is left behind then.
    """

    def fill(folder: Path) -> dict[str, str]:
        data = map_file(archive)
        with closing(made_ahead(unpacked(data, archive.name, archive=archive.name), most=_AHEAD)) as chunks:
            _write_tree(_checked(read_tar(chunks, archive=archive.name), archive.name), folder, archive=archive)
        return {}

    return _cached(archive, cache, digest=digest, fill=fill)[0]


def unpack_deb(archive: Path, cache: Path) -> tuple[Path, DebControl]:
    """The root folder of a Debian package, and what the package says of itself.

    Raises:
        IntegrityError: it is damaged, hostile, or no Debian package.
        HostError: something can't be read or written, or the disk is full. Nothing is left behind then.
    """

    def fill(folder: Path) -> dict[str, str]:
        control, data = read_deb(map_file(archive), archive=archive.name)
        said = _read_control(unpacked(control.data, control.name, archive=archive.name), archive.name)
        with closing(made_ahead(unpacked(data.data, data.name, archive=archive.name), most=_AHEAD)) as chunks:
            _write_tree(read_tar(chunks, archive=archive.name), folder, archive=archive)
        return msgspec.structs.asdict(said)

    folder, control = _cached(archive, cache, digest=None, fill=fill)
    text = "".join(f"{name.capitalize()}: {value}\n" for name, value in control.items())
    return folder, parse_control(text, filename=archive.name)


def base_folders(text: str, *, filename: str) -> tuple[str, ...]:
    """The base folders that an artifact's manifest lists.

    Raises:
        IntegrityError: one is no folder below that of the artifact.
    """
    lines = [line.strip().rstrip("/") for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if not is_safe_path(line)]
    if wrong:
        message = f"the manifest lists an invalid artifact folder: {wrong[0]!r}"
        raise IntegrityError(Problem(file=filename, message=message))
    return tuple(dict.fromkeys(lines))


def below_base(path: str, bases: Sequence[str]) -> str | None:
    """The innermost of some base folders that a path lies in; ``None`` where it lies in none."""
    return max((base for base in bases if path.startswith(f"{base}/")), key=len, default=None)


def _cached(
    archive: Path, cache: Path, *, digest: str | None, fill: Callable[[Path], dict[str, str]]
) -> tuple[Path, dict[str, str]]:
    with file_errors(archive, "the archive cannot be unpacked", precise=True):
        actual = digest_file(archive)
        if digest is not None and actual != digest:
            message = (
                f"the file does not match its checksum\n    expected sha256 {digest}\n    got sha256      {actual}"
            )
            raise IntegrityError(Problem(file=str(archive), message=message, hint="download the file again"))
        cache.mkdir(parents=True, exist_ok=True)
        kept = cache / actual
        with filelock.FileLock(cache / f"{actual}.lock"):
            if (note := _sound(kept)) is None:
                if kept.exists():
                    shutil.rmtree(kept)
                with part_folder(kept) as part:
                    (part / CONTENT).mkdir()
                    note = _measure(part / CONTENT, fill(part / CONTENT))
                    (part / _NOTE).write_bytes(msgspec.json.encode(note))
                    part.rename(kept)
    return kept / CONTENT, note.control


def _sound(kept: Path) -> _Unpacked | None:
    """What a folder of the cache should have, if it still has it."""
    note = read_json(kept / _NOTE, _Unpacked)
    return note if note is not None and _measure(kept / CONTENT, note.control) == note else None


def _measure(folder: Path, control: dict[str, str]) -> _Unpacked:
    sizes = [entry.stat(follow_symlinks=False).st_size for _, entry in each_entry(folder)]
    return _Unpacked(files=len(sizes), size=sum(sizes), control=control)


def _checked(
    members: Iterable[tuple[TarEntry, Iterator[bytes | memoryview]]], archive: str
) -> Iterator[tuple[TarEntry, Iterator[bytes | memoryview]]]:
    """Members of an artifact's archive: the manifest, then only what lies in the base folders that it lists."""
    bases: tuple[str, ...] | None = None
    for entry, content in members:
        path = entry.path.removeprefix("./")
        if bases is None:
            if entry.kind == "folder" and path in {"", "."}:
                continue
            if path != MANIFEST or entry.kind != "file" or entry.size > _MAX_MANIFEST:
                raise tar_refused(archive, f"it does not start with its {MANIFEST}", member=path)
            data = b"".join(content)
            try:
                bases = base_folders(data.decode(), filename=archive)
            except UnicodeDecodeError as error:
                raise tar_damaged(archive, "the file is not UTF-8", member=path) from error
            yield entry, iter((data,))
            continue
        above = entry.kind == "folder" and any(f"{base}/".startswith(f"{path}/") for base in bases)
        if not above and below_base(path, bases) is None:
            raise tar_refused(archive, f"the file is not in any folder that {MANIFEST} lists", member=path)
        yield entry, content
    if bases is None:
        raise tar_refused(archive, f"it has no {MANIFEST}")


def _read_control(chunks: Iterable[bytes], archive: str) -> DebControl:
    for entry, content in read_tar(chunks, archive=archive):
        if entry.path.removeprefix("./") == "control" and entry.kind == "file" and entry.size <= _MAX_CONTROL:
            return parse_control(b"".join(content).decode(errors="replace"), filename=archive)
    raise tar_damaged(archive, "it has no control file")


def _write_tree(
    members: Iterable[tuple[TarEntry, Iterator[bytes | memoryview]]], folder: Path, *, archive: Path
) -> None:
    """Write members into an empty folder. Links come last, so that nothing is ever written through one."""
    limit = max(_MIN_LIMIT, archive.stat().st_size * _MOST_TIMES)
    kinds: dict[str, str] = {}
    links: list[tuple[str, str]] = []
    total = 0
    for entry, content in members:
        path = entry.path.removeprefix("./")
        if entry.kind == "folder" and path in {"", "."}:
            continue
        _check_member(entry, path, kinds, archive.name)
        total += entry.size
        if total > limit:
            message = (
                f"it unpacks to more than {format_bytes(limit)}, which is {_MOST_TIMES} times its size: it "
                "may be an archive bomb"
            )
            raise tar_refused(archive.name, message)
        place = folder / path
        _make_folders(path if entry.kind == "folder" else path.rpartition("/")[0], folder, kinds, archive.name)
        kinds[path] = entry.kind
        if entry.kind == "file":
            _write_file(place, content, executable=entry.executable, left=entry.size)
        elif entry.kind == "link":
            links.append((path, entry.target))
        elif entry.kind == "hardlink":
            target = entry.target.removeprefix("./")
            if kinds.get(target) != "file":
                message = f"the hard link points to {target!r}, which is not an earlier file in the archive"
                raise tar_damaged(archive.name, message, member=path)
            kinds[path] = "file"
            os.link(folder / target, place)
    for path, target in links:
        (folder / path).symlink_to(target)


def _check_member(entry: TarEntry, path: str, kinds: dict[str, str], archive: str) -> None:
    if not is_safe_path(path):
        raise tar_refused(archive, "the path leads out of the archive or is not allowed in a package", member=path)
    if path in kinds and not (kinds[path] == entry.kind == "folder"):
        raise tar_refused(archive, "the path occurs twice", member=path)
    # Debian's packages name files of the system by absolute paths: where these lie is the reader's business.
    if entry.kind == "link" and not entry.target.startswith("/") and leaves_tree(path, entry.target):
        raise tar_refused(archive, f"the link leads out of the archive, to {entry.target!r}", member=path)


def _make_folders(path: str, folder: Path, kinds: dict[str, str], archive: str) -> None:
    parts = path.split("/") if path else []
    for number in range(len(parts), 0, -1):
        above = "/".join(parts[:number])
        if kinds.get(above) == "folder":
            parts = parts[number:]
            break
    else:
        number, above = 0, ""
    done = above
    for part in parts:
        done = f"{done}/{part}" if done else part
        if kinds.setdefault(done, "folder") != "folder":
            raise tar_damaged(archive, "the entry is not a folder, but contains other entries", member=done)
        (folder / done).mkdir()


def _write_file(place: Path, content: Iterator[bytes | memoryview], *, executable: bool, left: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(place, flags, 0o555 if executable else 0o444)
    try:
        for piece in content:
            left -= len(piece)
            write_all(descriptor, piece)
    finally:
        os.close(descriptor)
    if left:
        raise tar_damaged(place.name, "it is truncated")
