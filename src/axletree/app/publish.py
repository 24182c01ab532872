"""Put audited and tested wheels into the index roots of the output folder, where clients install them from."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import filelock
import msgspec

from axletree.core.errors import HostError, IntegrityError
from axletree.core.values import Digest
from axletree.host.files import PART, replace_file, write_beside
from axletree.package.index import IndexFile, merge_files, read_index, render_index
from axletree.store.blobs import CHUNK, copy_hashed, lost_blobs, set_aside
from axletree.store.disk import sync_folders
from axletree.view.report_data import InstallCommand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from io import FileIO

    from axletree.core.records import StageRecord
    from axletree.core.trees import Entry
    from axletree.store.store import Store

OUT = Path("dist")
"""Where results go unless somebody says otherwise."""
REPORT = "report.html"
"""Name of the report in the output folder."""
_LOCK = ".axletree.lock"
_PROJECT_PAGE = re.compile(r"simple/[^/]+/index\.json")


class PublishedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel in the output folder."""

    path: str
    """Relative to the output folder."""
    size: int
    sha256: Digest
    fresh: bool
    """Whether it was put there now."""


def check_writable(out: Path) -> None:
    """Make the output folder and see that it can be written to: better now than after an hour of compiling.

    What a killed run was writing into it is removed.

    Raises:
        HostError: it can't.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out), filelock.FileLock(out / _LOCK):
            _remove_leftovers(out)
    except OSError as error:
        raise HostError(
            f"cannot write to the output folder {out}: {error.strerror}", hint="choose another one with --out"
        ) from error


def publish(out: Path, records: Sequence[StageRecord], store: Store) -> tuple[PublishedFile, ...]:
    """Merge the trees of index stages into the roots below ``out``.

    All is written beside its place first, so a full disk changes nothing. Then the files appear, each whole: wheels,
    then the pages that name them, the front page last. So a client that reads meanwhile sees the index as it was or as
    it will be, also after a loss of power: no page lasts before the wheels that it names. A wheel that is there with
    the same content stays.

    Raises:
        CorruptBlob: a wheel in the store is damaged; nothing was changed then.
        PublishError: a root already has another file of that name; nothing was changed then.
        HostError: the folder cannot be written, or its disk is full.
    """
    if _up_to_date(out, records):
        return tuple(dict.fromkeys(file for record in records for file in _standing(record)))
    published: list[PublishedFile] = []
    wheels: list[tuple[Path, Path]] = []
    pages: list[tuple[Path, Path]] = []
    try:
        with filelock.FileLock(out / _LOCK):
            roots = dict.fromkeys(record.facts["root"] for record in records)
            _remove_leftovers(*(out / root for root in roots))
            merges = [_Merge(out, root, [r for r in records if r.facts["root"] == root], store) for root in roots]
            for merge in merges:
                published += merge.prepare_wheels(wheels)
                merge.prepare_pages(pages)
            if wheels or pages:  # the report there is of something else; a kill must not make it look like ours
                (out / REPORT).unlink(missing_ok=True)
            for placing in (wheels, pages):
                for temporary, target in placing:
                    temporary.replace(target)
                sync_folders({target.parent for _, target in placing})
    except OSError as error:
        what = "its disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
        raise HostError(f"cannot publish to {out}: {what}", hint="make room there, or choose another --out") from error
    finally:
        for temporary, _ in (*wheels, *pages):
            temporary.unlink(missing_ok=True)
    return tuple(published)


def _remove_leftovers(*folders: Path) -> None:
    """Remove what killed runs did not finish. Whoever holds the lock of the output folder is alone in it."""
    for folder in folders:
        for pattern in ("", "simple/", "simple/*/"):
            for path in folder.glob(f"{pattern}.*{PART}"):
                path.unlink()


def put_beside_index(path: Path, data: bytes) -> None:
    """Write another file into the output folder.

    Raises:
        HostError: the folder cannot be written, or its disk is full.
    """
    try:
        with filelock.FileLock(path.parent / _LOCK):
            replace_file(path, data)
    except OSError as error:
        raise HostError(
            f"cannot write {path}: {error.strerror}", hint="make room there, or choose another --out"
        ) from error


def _up_to_date(out: Path, records: Iterable[StageRecord]) -> bool:
    """Whether the output folder holds what index stages made: by its own pages and by size, without hashing."""
    for record in records:
        root = out / record.facts["root"]
        try:
            listed = _listed(root)
        except IntegrityError:
            return False
        for file in record.facts["files"]:
            present = listed.get(file["filename"])
            path = root / file["filename"]
            if present is None or present.sha256 != file["sha256"] or not path.exists():
                return False
            if path.stat().st_size != file["size"]:
                return False
    return True


def _standing(record: StageRecord) -> Iterator[PublishedFile]:
    """The wheels of an index stage, as files that were there already."""
    for file in record.facts["files"]:
        path = PurePosixPath(record.facts["root"], file["filename"]).as_posix()
        yield PublishedFile(path=path, size=file["size"], sha256=Digest(file["sha256"]), fresh=False)


class _Merge:
    """What publishing the trees of one index root would change."""

    def __init__(self, out: Path, root: str, records: Sequence[StageRecord], store: Store) -> None:
        """Read what is there and what comes.

        Raises:
            PublishError: a file of the same name with other content is there; names all of them.
        """
        self.out = out
        self.root = out / root
        self.store = store
        self.entries: dict[str, Entry] = {}
        fresh: list[IndexFile] = []
        for record in records:
            entries = store.get_tree(record.tree).entries
            fresh += _lines(entries, store)
            self.entries |= {entry.path: entry for entry in entries}
        self.wheels = {line.filename for line in fresh}
        listed = _listed(self.root)
        self.lines = merge_files([*listed.values(), *_unlisted(self.root, fresh, listed)], fresh)

    def prepare_wheels(self, placing: list[tuple[Path, Path]]) -> list[PublishedFile]:
        """Write new wheels and their metadata beside their places and note where they go; returns all wheels."""
        published: list[PublishedFile] = []
        for entry in self.entries.values():
            if entry.path in self.wheels or entry.path.endswith(".whl.metadata"):
                fresh = self._prepare(entry, placing)
                if entry.path in self.wheels:
                    assert entry.blob is not None  # noqa: S101 (a wheel is a file)
                    path = (self.root / entry.path).relative_to(self.out).as_posix()
                    published.append(PublishedFile(path=path, size=entry.size, sha256=entry.blob, fresh=fresh))
        return published

    def prepare_pages(self, placing: list[tuple[Path, Path]]) -> None:
        """Write changed pages beside their places and note where they go, the front page last."""
        pages = render_index(self.lines)
        for path in sorted(pages, key=lambda page: -page.count("/")):
            target = self.root / path
            if not target.exists() or target.read_bytes() != pages[path]:
                placing.append((write_beside(target, pages[path]), target))

    def _prepare(self, entry: Entry, placing: list[tuple[Path, Path]]) -> bool:
        assert entry.blob is not None  # noqa: S101 (only files are placed)
        target = self.root / entry.path
        same_size = target.exists() and target.stat().st_size == entry.size
        if same_size and _digest(target) == entry.blob:
            return False
        placing.append((_copy_beside(self.store, entry.blob, target), target))
        return True


def _digest(path: Path) -> Digest:
    with path.open("rb") as stream:
        return Digest(hashlib.file_digest(stream, "sha256").hexdigest())


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


def _listed(root: Path) -> dict[str, IndexFile]:
    """What the pages of a root list already."""
    found: dict[str, IndexFile] = {}
    for page in sorted(root.glob("simple/*/index.json")):
        for file in read_index(page.read_bytes(), file=str(page)):
            if (root / file.filename).exists():
                found[file.filename] = file
    return found


def _unlisted(root: Path, fresh: Iterable[IndexFile], listed: Mapping[str, IndexFile]) -> Iterator[IndexFile]:
    """Files that lie where a fresh one goes, though no page names them: somebody put them there by hand."""
    for line in fresh:
        path = root / line.filename
        if line.filename not in listed and path.exists():
            yield msgspec.structs.replace(line, sha256=_digest(path))


def _lines(entries: Iterable[Entry], store: Store) -> list[IndexFile]:
    """What the project pages of an index tree list."""
    pages = [entry for entry in entries if _PROJECT_PAGE.fullmatch(entry.path) and entry.blob is not None]
    return [line for page in pages if page.blob for line in read_index(store.read_blob(page.blob), file=page.path)]


def install_commands(
    out: Path, records: Sequence[StageRecord], requirements: Mapping[str, Sequence[str]]
) -> tuple[InstallCommand, ...]:
    """Command lines that install what was built.

    Args:
        out: The output folder.
        records: Records of index stages.
        requirements: Index root -> what to install from it, ``name==version``.
    """
    commands: list[InstallCommand] = []
    for root in dict.fromkeys(record.facts["root"] for record in records):
        wanted = " ".join(f"'{requirement}'" for requirement in requirements.get(root, ()))
        url = Path(os.path.normpath(out.absolute() / root / "simple")).as_uri()
        for tool, call in (("pip", "pip install"), ("uv", "uv pip install")):
            command = f"{call} --extra-index-url {url} {wanted}"
            commands.append(InstallCommand(tool=tool, what=root, command=command))
    return tuple(commands)
