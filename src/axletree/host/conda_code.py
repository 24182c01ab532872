"""Facts of the libraries in a conda package, read while the package goes by."""

from __future__ import annotations

import mmap
import tempfile
from typing import IO, TYPE_CHECKING

from axletree.binary.elf.facts import read_elf
from axletree.binary.source import BufferSource
from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.host.archive import map_file
from axletree.package.conda.reader import scan_conda
from axletree.package.wheel.scan import ElfMember
from axletree.package.wheel.tree import TreeScan

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.package.conda.reader import CondaFacts


LARGEST = 8 << 30
"""Bytes of one ELF file from which on it is no library, but an attempt to fill the disk."""


def read_conda_code(path: Path, *, filename: str | None = None) -> tuple[CondaFacts, TreeScan]:
    """Read a package on disk, and the headers and tables of its ELF files.

    A compressed archive can't be read at any place, so each ELF file lies in a temporary file meanwhile, one at a time.

    Args:
        path: where it lies.
        filename: its name, where it lies under another.

    Raises:
        IntegrityError: it is no conda package, or its archive is damaged, ambiguous or unsafe.
        HostError: it can't be read, or there is no room for its largest library where temporary files go.
    """
    try:
        with tempfile.TemporaryFile() as file:
            reader = _Reader(file)
            facts = scan_conda(map_file(path), filename=filename or path.name, code=reader)
    except OSError as error:
        where = tempfile.gettempdir()
        message = f"cannot write a library from {filename or path.name} to this folder: {error.strerror}"
        raise HostError(Problem(file=where, message=message), hint="set TMPDIR to a folder with more space") from error
    return facts, TreeScan(elfs=tuple(reader.elfs), damaged_elfs=tuple(reader.damaged))


class _Reader:
    """Takes the content of ELF files, one after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = 0
        self.elfs: list[ElfMember] = []
        self.damaged: list[tuple[str, str]] = []

    def write(self, chunk: bytes | memoryview) -> None:
        self._size += len(chunk)
        if self._size <= LARGEST:
            self._file.write(chunk)

    def end(self, path: str) -> None:
        self._file.flush()
        if self._size > LARGEST:
            self.damaged.append((path, f"the file has {self._size} bytes, more than the limit of {LARGEST}"))
        else:
            self._read(path)
        self._size = 0
        self._file.seek(0)
        self._file.truncate()

    def _read(self, path: str) -> None:
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            view = memoryview(content)
            try:
                self.elfs.append(ElfMember(path=path, facts=read_elf(BufferSource(view), name=path)))
            except IntegrityError as error:
                self.damaged.append((path, error.problems[0].message))
            finally:
                view.release()
