"""Put finished wheels into a folder that clients install from: all of them and the index pages, or nothing."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, Problem
from axletree.core.values import Digest
from axletree.host.archive import digest_file
from axletree.package.index import IndexFile, merge_files, read_index, render_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LOCK = ".axletree.lock"
_STAGING = ".axletree-staging-"


class StagedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A finished file that is not in its place yet."""

    path: Path
    """In the staging folder, under its final name."""
    size: int
    sha256: Digest
    metadata: bytes | None = None
    """METADATA of a wheel; what has none is no wheel, and no page lists it."""
    requires_python: str | None = None
    folder: str = ""
    """Where below the root it goes, if not into the root itself."""


@contextmanager
def staging(out: Path) -> Iterator[Path]:
    """A folder for unfinished files inside an output folder, which nobody else changes meanwhile. It goes afterwards.

    Raises:
        HostError: the output folder can't be made, locked or written to.
    """
    with ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((out / _LOCK).open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)  # as filelock does, without its 30 ms to import
            for left in out.glob(f"{_STAGING}*"):  # of killed runs: who holds the lock is alone here
                shutil.rmtree(left, ignore_errors=True)
            temporary = tempfile.TemporaryDirectory(prefix=_STAGING, dir=out, ignore_cleanup_errors=True)
            folder = stack.enter_context(temporary)
        except OSError as error:
            raise _unwritable(out, error) from error
        yield Path(folder)


def add_to_root(out: Path, staged: Sequence[StagedFile], *, durable: bool) -> tuple[Path, ...]:
    """Move staged files into an index root and list the wheels among them on its pages.

    The files come first and the front page last, each whole. One that is there with the same content stays.

    Args:
        out: the root; what its pages list already stays listed.
        staged: new files, in a staging folder of this root.
        durable: bring everything to the disk first, so that a loss of power takes nothing that looks finished.

    Returns:
        Where the files are now, in the order of ``staged``.

    Raises:
        PublishError: a file of the same name with other content is there. Nothing was changed then.
        HostError: the folder can't be written to, or a page or file that is there can't be read.
    """
    wheels = [file for file in staged if file.metadata is not None]
    try:
        listed = {line.filename: line for line in _listed(out)}
        present = [*listed.values(), *_unlisted(out, staged, listed)]
    except OSError as error:
        message = f"can't be read: {error.strerror}"
        raise HostError(Problem(file=str(error.filename or out), message=message)) from error
    lines = [line for line in merge_files(present, map(_line, staged)) if line.filename.endswith(".whl")]
    pages = render_index(lines) if wheels else {}
    texts = {f"{file.path.name}.metadata": file.metadata for file in wheels if file.metadata is not None}
    texts |= {page: pages[page] for page in sorted(pages, key=lambda page: -page.count("/"))}
    targets = tuple(out / file.folder / file.path.name for file in staged)
    moves = [(file.path, target) for file, target in zip(staged, targets, strict=True)]
    try:
        for number, (name, data) in enumerate(texts.items()):
            temporary = wheels[0].path.with_name(f".{number}.text")
            temporary.write_bytes(data)
            moves.append((temporary, out / name))
        if durable:
            for temporary, _ in moves:
                _sync(temporary)
        for temporary, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(target)
        if durable:
            for folder in {target.parent for _, target in moves}:
                _sync(folder)
    except OSError as error:
        raise _unwritable(out, error) from error
    return targets


def _line(file: StagedFile) -> IndexFile:
    return IndexFile(
        filename=file.path.name,
        size=file.size,
        sha256=file.sha256,
        requires_python=file.requires_python,
        metadata_sha256=hashlib.sha256(file.metadata).hexdigest() if file.metadata is not None else None,
    )


def _listed(out: Path) -> Iterator[IndexFile]:
    """What the pages of a root list, and what still is there."""
    for page in sorted(out.glob("simple/*/index.json")):
        for line in read_index(page.read_bytes(), file=str(page)):
            if (out / line.filename).exists():
                yield line


def _unlisted(out: Path, staged: Iterable[StagedFile], listed: Iterable[str]) -> Iterator[IndexFile]:
    """Files that lie where a staged one goes, though no page names them."""
    for file in staged:
        path = out / file.folder / file.path.name
        if file.path.name not in listed and path.exists():
            yield msgspec.structs.replace(_line(file), sha256=digest_file(path))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(out: Path, error: OSError) -> HostError:
    what = "its disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
    return HostError(f"cannot write to {out}: {what}", hint="make room there, or choose another folder with --out")
