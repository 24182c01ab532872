"""Conda packages on disk: writing one from files where they lie, whole or not at all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.zip.records import EARLIEST
from axletree.core.errors import IntegrityError, Problem
from axletree.core.values import Digest
from axletree.host.archive import WRITTEN_WRONG, digest_file, map_file
from axletree.host.files import appearing
from axletree.package.conda.check import check_conda
from axletree.package.conda.reader import CondaFacts, scan_conda
from axletree.package.conda.writer import DEFAULT_LEVEL, WrittenConda, write_conda

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.package.conda.model import CondaFile, CondaPackage


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
        files: what it holds; see :func:`~axletree.package.conda.dist.conda_package_from_dist` for the members of a
            wheel.
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
        temporary.open("wb") as sink,
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
    trouble = [f"{issue.path}: {issue.detail}" if issue.path else issue.detail for issue in check_conda(facts)]
    if facts.paths != written.paths or facts.size != written.size or trouble:
        detail = f": {trouble[0]}" if trouble else ""
        raise IntegrityError(
            Problem(file=filename, message=f"the package was not written correctly{detail}"), hint=WRITTEN_WRONG
        )
    return facts
