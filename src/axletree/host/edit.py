"""Apply edits to a file on disk: in place, or to a copy that takes its name.

Writing a few pages of a file of a gigabyte costs nothing; copying it does. But a file that has other names (hard links
of an environment or a cache), that runs, or that may not be written to, is copied: by sharing its blocks where the file
system can.
"""

from __future__ import annotations

import os
import shutil
import stat
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from axletree.binary.edits import CHUNK, Blank, Edit, EditedSource, Move, Put, ordered_edits
from axletree.binary.elf.edit import plan_edit
from axletree.binary.elf.verify import verify_edit
from axletree.binary.source import BufferSource
from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.disk import clone, part_file
from axletree.host.archive import map_file
from axletree.host.files import file_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from axletree.binary.elf.edit import ElfChange

_ZEROS = bytes(1 << 16)


def edit_elf(path: Path, change: ElfChange) -> bool:
    """Change the names in an ELF file on disk; nothing is written unless the result proves to be what was asked.

    Returns:
        Whether anything had to change.

    Raises:
        IntegrityError: the file can't be changed so.
        HostError: it can't be read or written.
    """
    source = BufferSource(map_file(path))
    edits = plan_edit(source, change, name=str(path))
    if edits:
        verify_edit(source, EditedSource(source, edits), change, name=str(path))
        apply_edits(path, edits)
    return bool(edits)


def apply_edits(path: Path, edits: Iterable[Edit]) -> None:
    """Change a file; what was written is read back.

    In place it is as fast as writing the edits, and not synced: a kill in between can leave some of them undone. What
    lies behind the old end is written first; where that fails, the file is as it was. Other names of the file are never
    changed along with it: the name is given to a copy.

    Args:
        path: the file; where it is a symbolic link, what it points to is changed.
        edits: what to change.

    Raises:
        IntegrityError: the edits overlap, or move what is not there.
        HostError: the file can't be written, or does not read back as written.
    """
    ordered = ordered_edits(edits)
    if not ordered:
        return
    with file_errors(path, "the file cannot be changed"):
        target = path.resolve(strict=True)
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            raise HostError(Problem(file=str(path), message="the path is not a regular file"))
        _check_moves(path, ordered, status.st_size)
        unordered = _moves_what_is_gone(ordered, status.st_size)
        if unordered or status.st_nlink > 1 or not _overwrite(target, ordered, status.st_size):
            _replace(target, ordered)


def _check_moves(path: Path, edits: Sequence[Edit], size: int) -> None:
    for edit in edits:
        if isinstance(edit, Move) and edit.source + edit.size > size:
            raise IntegrityError(Problem(file=str(path), message="the file is too short for the requested edits"))


def _moves_what_is_gone(edits: Sequence[Edit], size: int) -> bool:
    """Whether in place a move would read what an edit before it has written: those behind the end come first."""
    behind = [edit for edit in edits if edit.end > size]
    return any(
        isinstance(edit, Move)
        and (edit.source < edit.offset or any(other.offset < edit.source + edit.size for other in behind))
        for edit in edits
    )


def _overwrite(target: Path, edits: Sequence[Edit], size: int) -> bool:
    """Whether it could be written to: not if it runs (ETXTBSY) or is read-only."""
    try:
        handle = os.open(target, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _write(handle, handle, [edit for edit in edits if edit.end > size], target)
    except BaseException:
        if all(edit.offset >= size for edit in edits if edit.end > size):
            os.ftruncate(handle, size)
        os.close(handle)
        raise
    try:
        _write(handle, handle, [edit for edit in edits if edit.end <= size], target)
    finally:
        os.close(handle)
    return True


def _replace(target: Path, edits: Sequence[Edit]) -> None:
    with part_file(target) as temporary:
        with target.open("rb") as original, temporary.open("r+b", buffering=0) as copy:
            if not clone(original.fileno(), copy.fileno()):
                shutil.copyfileobj(original, copy, CHUNK)
            _write(copy.fileno(), original.fileno(), edits, target)
            _copy_status(target, temporary)
            os.fsync(copy)
        temporary.replace(target)


def _copy_status(target: Path, temporary: Path) -> None:
    """Mode, extended attributes and owner, as far as the system lets us; the time is that of the change."""
    status = target.stat()
    with suppress(OSError):
        os.chown(temporary, status.st_uid, status.st_gid)
    shutil.copystat(target, temporary)
    os.utime(temporary)


def _write(handle: int, original: int, edits: Sequence[Edit], target: Path) -> None:
    """Write all edits in the order of their offsets, then read them back."""
    checks = [_write_one(handle, original, edit) for edit in edits]
    for edit, check in zip(edits, checks, strict=True):
        found = 0
        for start in range(edit.offset, edit.end, CHUNK):
            found = zlib.crc32(os.pread(handle, min(CHUNK, edit.end - start), start), found)
        if found != check:
            raise HostError(
                Problem(
                    file=str(target),
                    message=f"the file does not contain the bytes just written at offset {edit.offset}",
                )
            )


def _write_one(handle: int, original: int, edit: Edit) -> int:
    place, check = edit.offset, 0
    for piece in _pieces(original, edit):
        check = zlib.crc32(piece, check)
        while piece:
            written = os.pwrite(handle, piece, place)
            piece, place = piece[written:], place + written  # noqa: PLW2901 (what is left of it)
    return check


def _pieces(original: int, edit: Edit) -> Iterator[bytes]:
    match edit:
        case Put(_, data):
            yield data
        case Blank(_, size):
            for start in range(0, size, len(_ZEROS)):
                yield _ZEROS[: size - start]
        case Move(_, size, source):
            for start in range(0, size, CHUNK):
                yield os.pread(original, min(CHUNK, size - start), source + start)
