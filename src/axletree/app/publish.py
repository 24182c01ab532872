"""Put audited and tested packages into the index roots of the output folder, where clients install them from."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from axletree.app.index_root import RootChange, change_roots
from axletree.app.listings import is_whole, listed, listing
from axletree.core.errors import AxletreeError, HostError, Problem, PublishError
from axletree.core.values import Digest
from axletree.disk import remove_leftovers
from axletree.host.archive import digest_file
from axletree.plan.actions.listing import ListingFacts
from axletree.plan.actions.spec import facts_of
from axletree.store.blobs import CHUNK, hash_descriptor, lost_blobs, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.core.records import StageRecord
    from axletree.core.trees import Entry
    from axletree.host.folder_lock import Note
    from axletree.store.store import Store

OUT = Path("dist")
"""Where results go unless somebody says otherwise."""
REPORT = "report.html"
"""Name of the report in the output folder."""


class PublishedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A package in the output folder."""

    path: str
    """Relative to the output folder."""
    size: int
    sha256: Digest
    fresh: bool
    """Whether it was put there now."""


def check_writable(out: Path) -> None:
    """Make the output folder and see that it can be written to: better now than after an hour of compiling.

    What killed runs were writing into it is removed; what runs beside this one write is not.

    Raises:
        HostError: it can't.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            remove_leftovers(out, below=True)
    except OSError as error:
        raise HostError(
            f"cannot write to the output folder {out}: {error.strerror}", hint="choose a different folder with --out"
        ) from error


def publish(
    out: Path,
    records: Sequence[StageRecord],
    store: Store,
    *,
    replace: bool = False,
    note: Note = lambda _: None,
) -> tuple[PublishedFile, ...]:
    """Merge the trees of index stages into the roots below ``out``.

    All is written beside its place first, so a full disk changes nothing. Then the files appear, each whole: packages,
    then the pages that name them, the front page last. So a client that reads meanwhile sees the index as it was or as
    it will be, also after a loss of power: no page lasts before the files that it names. A file that is there with
    the same content stays. ``note`` is told whom this waits for, when it has to. With ``replace``, a file that is there
    with other content is replaced: clients that read meanwhile may see its new content under its old digest.

    Raises:
        CorruptBlob: a package in the store is damaged; nothing was changed then.
        PublishError: a root already has another file of that name; nothing was changed then.
        HostError: the folder cannot be written, or its disk is full.
    """
    if _up_to_date(out, records):
        return tuple(dict.fromkeys(file for record in records for file in _standing(record)))
    published: list[PublishedFile] = []

    def decide(scratch: Mapping[Path, Path]) -> list[RootChange]:
        together = _together(out, records)
        merges = [_Merge(out, root, kind, same, store, replace=replace) for (root, kind), same in together.items()]
        _refuse(merges)
        changes = [merge.change(scratch[merge.root]) for merge in merges]  # only once nothing is refused
        published.extend(file for merge in merges for file in merge.published)
        return changes

    roots = [root for root, _ in _together(out, records)]
    # The report there is of something else; a kill must not make it look like ours.
    change_roots(roots, decide, durable=True, note=note, report=out / REPORT)
    return tuple(published)


def _together(out: Path, records: Iterable[StageRecord]) -> dict[tuple[Path, str], list[StageRecord]]:
    """Records by root and kind; two paths of which one is a link to the other are one root."""
    roots: dict[str, Path] = {}
    found: dict[tuple[Path, str], list[StageRecord]] = {}
    for record in records:
        facts = facts_of(record, ListingFacts)
        path = out / facts.root
        root = roots.setdefault(os.path.realpath(path), path)
        found.setdefault((root, facts.kind), []).append(record)
    return found


def _up_to_date(out: Path, records: Iterable[StageRecord]) -> bool:
    """Whether the output folder holds what index stages made: by its own pages and by size, without hashing."""
    whole: set[tuple[str, str]] = set()
    for record in records:
        facts = facts_of(record, ListingFacts)
        root, kind = out / facts.root, facts.kind
        try:
            there = listed(kind, root)
            for file in facts.files:
                path = root / file.filename
                if there.get(file.filename) != file.sha256 or path.stat().st_size != file.size:
                    return False
            if (str(root), kind) not in whole and not is_whole(kind, root):
                return False
        except (AxletreeError, OSError):  # changed meanwhile, or something is wrong: who writes says what
            return False
        whole.add((str(root), kind))
    return True


def _standing(record: StageRecord) -> Iterator[PublishedFile]:
    """The files of an index stage, as ones that were there already."""
    facts = facts_of(record, ListingFacts)
    for file in facts.files:
        path = PurePosixPath(facts.root, file.filename).as_posix()
        yield PublishedFile(path=path, size=file.size, sha256=file.sha256, fresh=False)


class _Merge:
    """What publishing the trees of one kind for one index root would change."""

    def __init__(
        self, out: Path, root: Path, kind: str, records: Sequence[StageRecord], store: Store, *, replace: bool
    ) -> None:
        """Read what is there and what comes."""
        self.out = out
        self.root = root
        self.store = store
        trees = [store.get_tree(record.tree).entries for record in records]
        self.problems: tuple[Problem, ...] = ()
        """Files of the same names with other content that are there, and stay."""
        try:
            self.listing = listing(kind, self.root, trees, store, replace=replace)
        except PublishError as error:
            places = [
                PurePosixPath(facts.root, file.filename).as_posix()
                for facts in (facts_of(record, ListingFacts) for record in records)
                for file in facts.files
            ]
            self.problems = tuple(_replaceable(problem, places) for problem in error.problems)
        self.entries = {entry.path: entry for tree in trees for entry in tree}
        self.published: list[PublishedFile] = []

    def change(self, scratch: Path) -> RootChange:
        """Copy what is new into a staging folder, and note all that was built as published."""
        files: list[tuple[Path, str]] = []
        for path in sorted(self.listing.files):
            entry = self.entries[path]
            assert entry.blob is not None  # noqa: S101 (what was built is a file)
            fresh = not self._is_there(entry)
            if fresh:
                files.append((_copy(self.store, entry.blob, scratch / path), path))
            if path in self.listing.shown:
                place = (self.root / path).relative_to(self.out).as_posix()
                self.published.append(PublishedFile(path=place, size=entry.size, sha256=entry.blob, fresh=fresh))
        return RootChange(self.root, files, self.listing.pages, self.listing.stale)

    def _is_there(self, entry: Entry) -> bool:
        target = self.root / entry.path
        return target.exists() and target.stat().st_size == entry.size and digest_file(target) == entry.blob


def _refuse(merges: Iterable[_Merge]) -> None:
    """See that no root has another file under the name of ours; otherwise name all of them, in all roots."""
    problems = [problem for merge in merges for problem in merge.problems]
    if problems:
        raise PublishError(*problems)


def _replaceable(problem: Problem, places: Sequence[str]) -> Problem:
    """A problem of a file that is there, with its path in the output folder and the other way out.

    The folder is the user's own.
    """
    file = next((place for place in places if f"/{place}".endswith(f"/{problem.file}")), problem.file)
    hint = f"{problem.hint}; to replace it in this folder, build with --replace"
    return msgspec.structs.replace(problem, file=file, hint=hint)


def _copy(store: Store, digest: Digest, copy: Path) -> Path:
    """Copy a content of the store, checked on the way and never all in memory."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        with store.blob_path(digest).open("rb", buffering=0) as source, copy.open("wb", buffering=0) as target:
            found, _ = hash_descriptor(source.fileno(), memoryview(bytearray(CHUNK)), copy=target.fileno())
    except FileNotFoundError:
        raise lost_blobs(store, (digest,)) from None
    if found != digest:
        set_aside(store, digest)
        raise lost_blobs(store, (digest,))
    return copy
