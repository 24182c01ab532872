"""Pack a folder into a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from axletree.binary.zip.deflate import BLOCK, LEVEL
from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import HostError, IntegrityError, Problem, UsageError
from axletree.host.archive import write_wheel_file
from axletree.host.folders import hash_file, list_folder, read_chunks
from axletree.host.wheels import open_wheel
from axletree.package.gpu.variant import VARIANT_FILE, parse_variants
from axletree.package.wheel.info import carry_dist_info, parse_wheel_info
from axletree.package.wheel.metadata import parse_metadata
from axletree.package.wheel.names import dist_info_folder
from axletree.package.wheel.repack import packed_members, renamed_members
from axletree.package.wheel.retag import Wishes, change_info, change_name, name_of
from axletree.package.wheel.writer import Member, Packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from axletree.host.folders import FolderFile
    from axletree.package.wheel.info import WheelInfo
    from axletree.package.wheel.metadata import Metadata

T = TypeVar("T")


class PackedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A packed wheel: report of ``pack``."""

    wheel: Path
    size: int
    """Size in bytes."""
    files: int
    """Files of the wheel."""
    reused: int
    """Number of files that were copied from an older wheel without compressing them again."""
    left_out: tuple[str, ...]
    """Files of the metadata folder about an installation or a signature, which were left out."""


def pack(
    folder: Path,
    *,
    out: Path,
    build: str | None = None,
    level: int = LEVEL,
    threads: int = 1,
    older: Path | None = None,
    epoch: int = EARLIEST,
    verify: bool = True,
) -> PackedFolder:
    """Pack a folder that holds the content of a wheel; its METADATA and WHEEL files say how it is called.

    Args:
        folder: has one ``*.dist-info`` in it. RECORD is made anew.
        out: where the wheel goes; made if it is missing. A wheel of that name there is replaced.
        build: build tag; empty for none, ``None`` for what WHEEL says.
        level: deflate level.
        threads: how many compress at once.
        older: a wheel; files that it has with the same size and SHA-256 are copied from it, compressed as they are.
        epoch: date of the members.
        verify: read the wheel back before it gets its name.

    Raises:
        HostError: a file can't be read, or the wheel not be written.
        IntegrityError: the folder can't make a wheel; names all that is wrong.
        UsageError: the build tag is none, or ``out`` lies in the folder.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"--out {out} is inside the folder to pack", hint="choose a folder outside the one to pack")
    files = list_folder(folder)
    source, metadata, info = _read_dist_info(folder, files)
    named = name_of(metadata, info, file=f"{folder}/{source}/WHEEL")
    named = msgspec.structs.replace(named, variant=_variant_label(folder / source / VARIANT_FILE))
    name = change_name(named, Wishes(build=build))
    reusable = _reusable(older) if older is not None else {}
    sizes = frozenset(size for _, size in reusable)
    given = [_member(file, reusable, sizes) for file in files]
    target = dist_info_folder(metadata.name, metadata.version)
    members = renamed_members(given, source=source, target=target)
    written = write_wheel_file(
        out,
        name,
        members,
        metadata=metadata,
        wheel_info=change_info(info, named, name),
        epoch=epoch,
        level=level,
        threads=threads,
        verify=verify,
    )
    return PackedFolder(
        wheel=written.path,
        size=written.size,
        files=len(written.written.record),
        reused=sum(isinstance(member.data, Packed) for member in members),
        left_out=_left_out(files, source, target),
    )


def _read_dist_info(folder: Path, files: Sequence[FolderFile]) -> tuple[str, Metadata, WheelInfo]:
    """The one metadata folder's name, and what METADATA and WHEEL in it say."""
    found = sorted({top for file in files if (top := file.path.partition("/")[0]).endswith(".dist-info")})
    if len(found) != 1:
        what = (
            f"the folder has {len(found)} *.dist-info folders, expected one: {', '.join(found[:5])}"
            if found
            else "the folder has no *.dist-info folder"
        )
        hint = "specify a folder that `axletree unpack` created"
        raise IntegrityError(Problem(file=str(folder), message=what, hint=hint))
    source = found[0]
    problems: list[Problem] = []

    def read(name: str, parse: Callable[..., T]) -> T | None:
        path = folder / source / name
        try:
            return parse(path.read_bytes(), file=str(path))
        except FileNotFoundError:
            problems.append(Problem(file=str(path), message="the file is missing"))
        except OSError as error:
            raise HostError(Problem(file=str(path), message=f"the file cannot be read: {error.strerror}")) from error
        except IntegrityError as error:
            problems.extend(error.problems)
        return None

    metadata, info = read("METADATA", parse_metadata), read("WHEEL", parse_wheel_info)
    if metadata is None or info is None:
        raise IntegrityError(*problems)
    return source, metadata, info


def _variant_label(file: Path) -> str:
    """The label that a wheel variant's file gives it; empty for a wheel that is none."""
    if not file.is_file():
        return ""
    described = parse_variants(file.read_bytes(), file=str(file))
    if len(described.variants) != 1:
        count = len(described.variants)
        raise IntegrityError(
            Problem(file=str(file), message=f"the file describes {count} variants, but must describe exactly one")
        )
    return described.variants[0].label


def _reusable(older: Path) -> dict[tuple[str, int], Packed]:
    """What an older wheel has compressed, by hash and size of the content."""
    wheel = open_wheel(older)
    members = packed_members(wheel.view, wheel.entries, wheel.record, folder=wheel.folder, archive=older.name)
    return {(data.hash, data.size): data for member in members if isinstance(data := member.data, Packed)}


def _member(file: FolderFile, reusable: Mapping[tuple[str, int], Packed], sizes: frozenset[int]) -> Member:
    data: Packed | Callable[[], Iterator[bytes]] = read_chunks(file, BLOCK)
    if file.size in sizes:
        data = reusable.get((hash_file(file), file.size), data)
    return Member(path=file.path, data=data, size=file.size, executable=file.executable)


def _left_out(files: Sequence[FolderFile], source: str, target: str) -> tuple[str, ...]:
    paths = [file.path for file in files if file.path.startswith(f"{source}/")]
    anew = {f"{source}/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    return tuple(sorted(set(paths) - anew - carry_dist_info(paths, source=source, target=target).keys()))
