"""Conda packages on disk: writing one from files where they lie, whole or not at all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.core.values import Digest
from axletree.host.archive import digest_file, map_file
from axletree.host.files import appearing
from axletree.package.conda.check import check_conda
from axletree.package.conda.model import CondaFile, CondaPackage
from axletree.package.conda.reader import CondaFacts, scan_conda
from axletree.package.conda.writer import DEFAULT_LEVEL, WrittenConda, write_conda

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PIECE = 1 << 20


class CondaPackageFile(msgspec.Struct, frozen=True, kw_only=True):
    """A conda package on disk."""

    path: Path
    size: int
    sha256: Digest
    written: WrittenConda
    facts: CondaFacts
    """What reading it back gave."""


def write_conda_file(
    folder: Path,
    package: CondaPackage,
    files: Sequence[CondaFile],
    *,
    epoch: int = EARLIEST,
    level: int = DEFAULT_LEVEL,
    threads: int = 1,
) -> CondaPackageFile:
    """Write ``NAME-VERSION-BUILD.conda`` into a folder; what was there under that name is replaced.

    Args:
        folder: where it goes; made if it is not there.
        package: what it says of itself.
        files: what it holds; see :func:`tree_files` for a folder, and
            :func:`~axletree.package.conda.dist.conda_package_from_dist` for the members of a wheel.
        epoch: date of its files and of the package, seconds since 1970 (``SOURCE_DATE_EPOCH``).
        level: Zstandard's, 1 to 19.
        threads: how many compress at once. No part of the result.

    Raises:
        IntegrityError: the files can't make a package, or what was written does not read back as such.
        UsageError: no such level.
        HostError: a file can't be read, the folder can't be written, or the disk is full. Nothing is left behind then.
    """
    path = folder / f"{package.stem}.conda"
    with (
        appearing(path) as temporary,
        temporary.open("xb") as sink,
        ThreadPoolExecutor(max_workers=2) as pool,
    ):
        written = write_conda(sink, package, files, epoch=epoch, level=level, threads=threads)
        sink.flush()
        synced = pool.submit(os.fsync, sink.fileno())  # reading back needs the processor, this the disk
        sha256 = pool.submit(digest_file, temporary)
        facts = _verify(temporary, path.name, written)
        synced.result()
    return CondaPackageFile(path=path, size=written.size, sha256=sha256.result(), written=written, facts=facts)


def read_conda(path: Path, *, filename: str | None = None) -> CondaFacts:
    """Read a package on disk; see :func:`~axletree.package.conda.reader.scan_conda`.

    Args:
        path: where it lies.
        filename: its name, where it lies under another.

    Raises:
        IntegrityError: it is no conda package, or its archive is damaged, ambiguous or unsafe.
        HostError: it can't be read.
    """
    return scan_conda(map_file(path), filename=filename or path.name)


def _verify(path: Path, filename: str, written: WrittenConda) -> CondaFacts:
    """Read the whole package back as a stranger would."""
    facts = scan_conda(map_file(path), filename=filename)
    trouble = [f"{issue.path} {issue.detail}".strip() for issue in check_conda(facts)]
    if facts.paths != written.paths or facts.size != written.size or trouble:
        detail = f": {trouble[0]}" if trouble else ""
        raise IntegrityError(Problem(file=filename, message=f"what was written does not read back{detail}"))
    return facts


def tree_files(folder: Path, *, below: str = "") -> tuple[CondaFile, ...]:
    """The files and links of a folder, to be packed; their content is read when its turn comes.

    Args:
        folder: any tree. Empty folders are left out, since conda packages can't hold them.
        below: where in the prefix it goes.

    Raises:
        HostError: a folder can't be read, or holds something that is neither file, link nor folder. Lists all.
    """
    found: list[CondaFile] = []
    problems: list[Problem] = []
    waiting = [(str(folder), f"{below}/" if below else "")]
    while waiting:
        place, prefix = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    if entry.is_symlink():
                        found.append(CondaFile(path=path, link=os.readlink(entry.path)))  # noqa: PTH115 (text as it is)
                    elif entry.is_dir():
                        waiting.append((entry.path, f"{path}/"))
                    elif entry.is_file():
                        found.append(_disk_file(entry, path))
                    else:
                        problems.append(Problem(file=entry.path, message="is neither file, link nor folder"))
        except OSError as error:
            problems.append(Problem(file=place, message=f"can't be read: {error.strerror}"))
    if problems:
        raise HostError(*problems)
    return tuple(sorted(found, key=lambda file: file.path))


def _disk_file(entry: os.DirEntry[str], path: str) -> CondaFile:
    status = entry.stat()
    executable = bool(status.st_mode & 0o100)
    return CondaFile(path=path, data=_reader(entry.path, status.st_size), size=status.st_size, executable=executable)


def _reader(path: str, size: int) -> Callable[[], Iterator[bytes]]:
    piece = min(size + 1, _PIECE)  # asking for one byte more shows the end: small files take one call

    def read() -> Iterator[bytes]:
        left = size
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (thousands of small files: as lean as it gets)
                while data := file.read(piece):
                    yield data
                    left -= len(data)
                    if left <= 0 and len(data) < piece:
                        return
        except OSError as error:
            raise HostError(Problem(file=path, message=f"can't be read: {error.strerror}")) from error

    return read
