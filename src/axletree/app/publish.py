"""Put audited and tested packages into the index roots of the output folder, where clients install them from."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import filelock
import msgspec

from axletree.app.listings import digest, listed, listing
from axletree.core.errors import HostError, IntegrityError
from axletree.core.values import Digest
from axletree.host.files import PART, replace_file, write_beside
from axletree.plan.actions.listing import ListingFacts
from axletree.plan.actions.spec import facts_of
from axletree.store.blobs import CHUNK, copy_hashed, lost_blobs, set_aside
from axletree.store.disk import sync_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from io import FileIO

    from axletree.core.records import StageRecord
    from axletree.core.trees import Entry
    from axletree.store.store import Store

OUT = Path("dist")
"""Where results go unless somebody says otherwise."""
REPORT = "report.html"
"""Name of the report in the output folder."""
_LOCK = ".axletree.lock"


class PublishedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A package in the output folder."""

    path: str
    """Relative to the output folder."""
    size: int
    sha256: Digest
    fresh: bool
    """Whether it was put there now."""


def output_lock(out: Path) -> filelock.BaseFileLock:
    """The lock of an output folder: whoever holds it is alone in changing what lies there."""
    return filelock.FileLock(out / _LOCK)


def check_writable(out: Path) -> None:
    """Make the output folder and see that it can be written to: better now than after an hour of compiling.

    What a killed run was writing into it is removed.

    Raises:
        HostError: it can't.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out), output_lock(out):
            _remove_leftovers(out)
    except OSError as error:
        raise HostError(
            f"cannot write to the output folder {out}: {error.strerror}", hint="choose another one with --out"
        ) from error


def publish(out: Path, records: Sequence[StageRecord], store: Store) -> tuple[PublishedFile, ...]:
    """Merge the trees of index stages into the roots below ``out``.

    All is written beside its place first, so a full disk changes nothing. Then the files appear, each whole: packages,
    then the pages that name them, the front page last. So a client that reads meanwhile sees the index as it was or as
    it will be, also after a loss of power: no page lasts before the files that it names. A file that is there with
    the same content stays.

    Raises:
        CorruptBlob: a package in the store is damaged; nothing was changed then.
        PublishError: a root already has another file of that name; nothing was changed then.
        HostError: the folder cannot be written, or its disk is full.
    """
    if _up_to_date(out, records):
        return tuple(dict.fromkeys(file for record in records for file in _standing(record)))
    published: list[PublishedFile] = []
    files: list[tuple[Path, Path]] = []
    pages: list[tuple[Path, Path]] = []
    try:
        with output_lock(out):
            roots = dict.fromkeys(_listing_facts(record).root for record in records)
            _remove_leftovers(*(out / root for root in roots))
            merges = [_Merge(out, root, kind, same, store) for (root, kind), same in _together(records).items()]
            for merge in merges:
                published += merge.prepare_files(files)
                merge.prepare_pages(pages)
            if files or pages:  # the report there is of something else; a kill must not make it look like ours
                (out / REPORT).unlink(missing_ok=True)
            for placing in (files, pages):
                for temporary, target in placing:
                    temporary.replace(target)
                sync_folders({target.parent for _, target in placing})
            for merge in merges:
                merge.remove_stale()
    except OSError as error:
        what = "its disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
        raise HostError(f"cannot publish to {out}: {what}", hint="make room there, or choose another --out") from error
    finally:
        for temporary, _ in (*files, *pages):
            temporary.unlink(missing_ok=True)
    return tuple(published)


def _together(records: Iterable[StageRecord]) -> dict[tuple[str, str], list[StageRecord]]:
    """Records by root and kind."""
    found: dict[tuple[str, str], list[StageRecord]] = {}
    for record in records:
        facts = _listing_facts(record)
        found.setdefault((facts.root, facts.kind), []).append(record)
    return found


def _remove_leftovers(*folders: Path) -> None:
    """Remove what killed runs did not finish. Whoever holds the lock of the output folder is alone in it."""
    for folder in folders:
        for pattern in ("", "simple/", "simple/*/", "conda/*/"):
            for path in folder.glob(f"{pattern}.*{PART}"):
                path.unlink()


def put_beside_index(path: Path, data: bytes) -> None:
    """Write another file into the output folder.

    Raises:
        HostError: the folder cannot be written, or its disk is full.
    """
    try:
        with output_lock(path.parent):
            replace_file(path, data)
    except OSError as error:
        raise HostError(
            f"cannot write {path}: {error.strerror}", hint="make room there, or choose another --out"
        ) from error


def _up_to_date(out: Path, records: Iterable[StageRecord]) -> bool:
    """Whether the output folder holds what index stages made: by its own pages and by size, without hashing."""
    for record in records:
        facts = _listing_facts(record)
        root = out / facts.root
        try:
            there = listed(facts.kind, root)
        except IntegrityError:
            return False
        for file in facts.files:
            path = root / file.filename
            if there.get(file.filename) != file.sha256 or path.stat().st_size != file.size:
                return False
    return True


def _listing_facts(record: StageRecord) -> ListingFacts:
    return facts_of(record, ListingFacts)


def _standing(record: StageRecord) -> Iterator[PublishedFile]:
    """The files of an index stage, as ones that were there already."""
    facts = _listing_facts(record)
    for file in facts.files:
        path = PurePosixPath(facts.root, file.filename).as_posix()
        yield PublishedFile(path=path, size=file.size, sha256=file.sha256, fresh=False)


class _Merge:
    """What publishing the trees of one kind for one index root would change."""

    def __init__(self, out: Path, root: str, kind: str, records: Sequence[StageRecord], store: Store) -> None:
        """Read what is there and what comes.

        Raises:
            PublishError: a file of the same name with other content is there; names all of them.
        """
        self.out = out
        self.root = out / root
        self.store = store
        trees = [store.get_tree(record.tree).entries for record in records]
        self.listing = listing(kind, self.root, trees, store)
        self.entries = {entry.path: entry for tree in trees for entry in tree}

    def prepare_files(self, placing: list[tuple[Path, Path]]) -> list[PublishedFile]:
        """Write new files beside their places and note where they go; returns all that were built."""
        published: list[PublishedFile] = []
        for path in sorted(self.listing.files):
            entry = self.entries[path]
            fresh = self._prepare(entry, placing)
            if path in self.listing.shown:
                assert entry.blob is not None  # noqa: S101 (what was built is a file)
                place = (self.root / path).relative_to(self.out).as_posix()
                published.append(PublishedFile(path=place, size=entry.size, sha256=entry.blob, fresh=fresh))
        return published

    def prepare_pages(self, placing: list[tuple[Path, Path]]) -> None:
        """Write changed pages beside their places and note where they go, the front page last."""
        for path, data in self.listing.pages.items():
            target = self.root / path
            if not target.exists() or target.read_bytes() != data:
                placing.append((write_beside(target, data), target))

    def remove_stale(self) -> None:
        """Remove indexes of other tools that do not name what was added."""
        for path in self.listing.stale:
            (self.root / path).unlink(missing_ok=True)

    def _prepare(self, entry: Entry, placing: list[tuple[Path, Path]]) -> bool:
        assert entry.blob is not None  # noqa: S101 (only files are placed)
        target = self.root / entry.path
        same_size = target.exists() and target.stat().st_size == entry.size
        if same_size and digest(target) == entry.blob:
            return False
        placing.append((_copy_beside(self.store, entry.blob, target), target))
        return True


def _copy_beside(store: Store, digest: Digest, target: Path) -> Path:
    """Write a content of the store to a temporary file beside a target, checked on the way and never all in memory."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=PART, dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb", buffering=0) as copy:
            _copy_checked(store, digest, copy)
            os.fsync(copy.fileno())
        temporary.chmod(0o644)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _copy_checked(store: Store, digest: Digest, copy: FileIO) -> None:
    try:
        with store.blob_path(digest).open("rb", buffering=0) as source:
            found, _ = copy_hashed(source.fileno(), copy.fileno(), memoryview(bytearray(CHUNK)))
    except FileNotFoundError:
        raise lost_blobs(store, (digest,)) from None
    if found != digest:
        set_aside(store, digest)
        raise lost_blobs(store, (digest,))
