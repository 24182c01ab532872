"""Put finished wheels and sdists into folders that clients install from: all and the index pages, or nothing."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, Problem, PublishError
from axletree.core.values import Digest
from axletree.host.archive import digest_file
from axletree.package.index import IndexFile, is_links_page, merge_files, read_index, render_index, render_links

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LOCK = ".axletree.lock"
_STAGING = ".axletree-staging-"
_SDIST = ".tar.gz"
LINKS_PAGE = "index.html"
"""Name of the page with all files of a root, for ``--find-links``."""


class StagedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A finished file that is not in its place yet."""

    path: Path
    """In the staging folder, under its final name."""
    size: int
    sha256: Digest
    metadata: bytes | None = None
    """METADATA of a wheel; what has none is no wheel, and no page lists it but an sdist."""
    requires_python: str | None = None
    folder: str = ""
    """Where below the root it goes, if not into the root itself."""

    @property
    def is_listed(self) -> bool:
        """Whether index pages list it."""
        return self.metadata is not None or self.path.name.endswith(_SDIST)


class Addition(msgspec.Struct, frozen=True, kw_only=True):
    """What an index root gets."""

    out: Path
    """The root; what its pages list already stays listed."""
    staged: Sequence[StagedFile]
    """New files, in a staging folder on the root's disk."""
    linked: Sequence[IndexFile] = ()
    """Files that its pages list as well: of another root, or that are there already."""
    links_page: bool = False
    """Whether it has a page with all files, ``index.html``, too."""


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
    """Move staged files into an index root and list the wheels and sdists among them on its pages.

    Returns:
        Where the files are now, in the order of ``staged``.

    Raises:
        PublishError, HostError: as :func:`add_to_roots`.
    """
    if staged:
        add_to_roots([Addition(out=out, staged=staged)], scratch=staged[0].path.parent, durable=durable)
    return tuple(out / file.folder / file.path.name for file in staged)


def add_to_roots(additions: Sequence[Addition], *, scratch: Path, durable: bool) -> None:
    """Move staged files into index roots and list them on their pages.

    The files come first and front pages last, each whole. One that is there with the same content stays.

    Args:
        additions: what each root gets.
        scratch: staging folder on their disk.
        durable: bring everything to the disk first, so that a loss of power takes nothing that looks finished.

    Raises:
        PublishError: a file of the same name with other content is there. Nothing was changed then.
        HostError: a folder can't be written to, or a page or file that is there can't be read.
    """
    texts = [_texts(each) for each in additions]
    moves = [(file.path, each.out / file.folder / file.path.name) for each in additions for file in each.staged]
    out = additions[0].out
    try:
        for order, (each, pages) in enumerate(zip(additions, texts, strict=True)):
            for number, (name, data) in enumerate(pages.items()):
                temporary = scratch / f".{order}.{number}.text"
                temporary.write_bytes(data)
                moves.append((temporary, each.out / name))
        if durable:
            for temporary, _ in moves:
                _sync(temporary)
        for folder in {target.parent for _, target in moves}:
            folder.mkdir(parents=True, exist_ok=True)
        for temporary, target in moves:
            temporary.replace(target)
        if durable:
            for folder in {target.parent for _, target in moves}:
                _sync(folder)
    except OSError as error:
        raise _unwritable(out, error) from error


def _texts(addition: Addition) -> dict[str, bytes]:
    """What a root gets beside the files: metadata of wheels, and all pages, the front page last."""
    out, listed = addition.out, [file for file in addition.staged if file.is_listed]
    try:
        there = listed_files(out)
        present = [*there.values(), *_unlisted(out, addition.staged, there)]
    except OSError as error:
        message = f"can't be read: {error.strerror}"
        raise HostError(Problem(file=str(error.filename or out), message=message)) from error
    merged = merge_files(present, [*map(index_line, addition.staged), *addition.linked])
    lines = [line for line in merged if line.filename.endswith((".whl", _SDIST))]
    if not listed and not addition.linked:
        return {}
    pages = render_index(lines)
    texts = {f"{file.path.name}.metadata": file.metadata for file in listed if file.metadata is not None}
    texts |= {page: pages[page] for page in sorted(pages, key=lambda page: -page.count("/"))}
    if addition.links_page:
        _check_links_page(out / LINKS_PAGE)
        texts[LINKS_PAGE] = render_links(lines)
    return texts


def _check_links_page(path: Path) -> None:
    """Another tool's or the user's page stays."""
    if path.exists() and not is_links_page(path.read_bytes()):
        hint = "move it away, or choose another folder"
        raise PublishError(Problem(file=str(path), message="is another page than the one with all files", hint=hint))


def index_line(file: StagedFile) -> IndexFile:
    """What pages say of a file."""
    return IndexFile(
        filename=file.path.name,
        size=file.size,
        sha256=file.sha256,
        requires_python=file.requires_python,
        metadata_sha256=hashlib.sha256(file.metadata).hexdigest() if file.metadata is not None else None,
    )


def listed_files(out: Path) -> dict[str, IndexFile]:
    """What the pages of a root list and is there: file name -> line.

    Raises:
        IntegrityError: a page can't be understood.
        OSError: it can't be read.
    """
    found: dict[str, IndexFile] = {}
    for page in sorted(out.glob("simple/*/index.json")):
        lines = read_index(page.read_bytes(), file=str(page))
        found |= {line.filename: line for line in lines if (out / line.path).exists()}
    return found


def _unlisted(out: Path, staged: Iterable[StagedFile], listed: Iterable[str]) -> Iterator[IndexFile]:
    """Files that lie where a staged one goes, though no page names them."""
    for file in staged:
        path = out / file.folder / file.path.name
        if file.path.name not in listed and path.exists():
            yield msgspec.structs.replace(index_line(file), sha256=digest_file(path))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(out: Path, error: OSError) -> HostError:
    what = "its disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
    return HostError(f"cannot write to {out}: {what}", hint="make room there, or choose another folder")
