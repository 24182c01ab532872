"""What an index root lists, and what it will list once more is published: wheels, a conda channel, archives.

Each kind has pages that name its files. Files appear before the pages that name them.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from axletree.core.values import Digest
from axletree.package.checksums import CHECKSUMS, merge_checksums, read_checksums, render_checksums
from axletree.package.conda.repodata import (
    CHANNEL,
    REPODATA,
    STALE,
    ChannelFile,
    by_subdir,
    index_files,
    merge_channel,
    read_repodata,
)
from axletree.package.index import IndexFile, merge_files, read_index, render_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.core.trees import Entry
    from axletree.store.store import Store

_PROJECT_PAGE = re.compile(r"simple/[^/]+/index\.json")
_REPODATA_PAGE = re.compile(rf"{CHANNEL}/([^/]+)/{re.escape(REPODATA)}")


class Listing(NamedTuple):
    """What publishing some trees means for a root."""

    shown: frozenset[str]
    """Paths of what was built."""
    files: frozenset[str]
    """Those, and what goes beside them."""
    pages: dict[str, bytes]
    """Pages afterwards, in the order in which they must appear."""
    stale: tuple[str, ...] = ()
    """Pages of other tools, which would hide what is new."""


def listing(kind: str, root: Path, trees: Sequence[Sequence[Entry]], store: Store) -> Listing:
    """What a root will list.

    Args:
        kind: ``index`` (wheels), ``channel`` or ``archives``.
        root: the index root.
        trees: what each tree holds; trees of several variants have pages of the same path.
        store: where the content of their pages lies.

    Raises:
        PublishError: a file of the same name with other content is there; names all of them.
        IntegrityError: a page that is there can't be read.
    """
    entries = [entry for tree in trees for entry in tree]
    return {"index": _wheels, "channel": _channel, "archives": _archives}[kind](root, entries, store)


def listed(kind: str, root: Path) -> dict[str, str]:
    """What the pages of a root list and is there: path below the root -> SHA-256.

    Raises:
        IntegrityError: a page can't be read.
    """
    if kind == "index":
        return {name: line.sha256 for name, line in _listed_wheels(root).items()}
    if kind == "channel":
        return {_place(line): line.sha256 for line in _listed_packages(root)}
    return _listed_archives(root)


def digest(path: Path) -> Digest:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return Digest(hashlib.file_digest(file, "sha256").hexdigest())


def _wheels(root: Path, entries: Sequence[Entry], store: Store) -> Listing:
    pages = [entry for entry in entries if _PROJECT_PAGE.fullmatch(entry.path)]
    fresh = [line for page in pages if page.blob for line in read_index(store.read_blob(page.blob), file=page.path)]
    there = _listed_wheels(root)
    lines = merge_files([*there.values(), *_unlisted_wheels(root, fresh, there)], fresh)
    rendered = render_index(lines)
    shown = frozenset(line.filename for line in fresh)
    return Listing(
        shown=shown,
        files=shown | {entry.path for entry in entries if entry.path.endswith(".whl.metadata")},
        pages={path: rendered[path] for path in sorted(rendered, key=lambda page: -page.count("/"))},
    )


def _listed_wheels(root: Path) -> dict[str, IndexFile]:
    found: dict[str, IndexFile] = {}
    for page in sorted(root.glob("simple/*/index.json")):
        for file in read_index(page.read_bytes(), file=str(page)):
            if (root / file.path).exists():
                found[file.filename] = file
    return found


def _unlisted_wheels(root: Path, fresh: Iterable[IndexFile], there: Mapping[str, IndexFile]) -> Iterator[IndexFile]:
    """Files that lie where a fresh one goes, though no page names them: somebody put them there by hand."""
    for line in fresh:
        path = root / line.filename
        if line.filename not in there and path.exists():
            yield msgspec.structs.replace(line, sha256=digest(path))


def _channel(root: Path, entries: Sequence[Entry], store: Store) -> Listing:
    fresh: list[ChannelFile] = []
    for entry in entries:
        found = _REPODATA_PAGE.fullmatch(entry.path)
        if found is not None and entry.blob is not None:
            fresh += read_repodata(store.read_blob(entry.blob), subdir=found[1], file=entry.path)
    there = list(_listed_packages(root))
    known = {_place(line) for line in there}
    unlisted = [
        msgspec.structs.replace(line, record=line.record | {"sha256": digest(root / _place(line))})
        for line in fresh
        if _place(line) not in known and (root / _place(line)).exists()
    ]
    touched = {line.subdir for line in fresh} | {"noarch"}
    pages: dict[str, bytes] = {}
    for subdir, files in by_subdir(merge_channel([*there, *unlisted], fresh)).items():
        new = not (root / CHANNEL / subdir / REPODATA).exists()
        if subdir in touched and (new or any(line.subdir == subdir for line in fresh)):
            pages |= index_files(files, subdir=subdir)
    shown = frozenset(map(_place, fresh))
    stale = tuple(f"{CHANNEL}/{subdir}/{name}" for subdir in sorted({line.subdir for line in fresh}) for name in STALE)
    return Listing(shown=shown, files=shown, pages=pages, stale=stale)


def _place(line: ChannelFile) -> str:
    return f"{CHANNEL}/{line.subdir}/{line.filename}"


def _listed_packages(root: Path) -> Iterator[ChannelFile]:
    for page in sorted(root.glob(f"{CHANNEL}/*/{REPODATA}")):
        for line in read_repodata(page.read_bytes(), subdir=page.parent.name, file=str(page)):
            if (root / _place(line)).exists():
                yield line


def _archives(root: Path, entries: Sequence[Entry], store: Store) -> Listing:
    fresh: dict[str, str] = {}
    for entry in entries:
        if entry.path == CHECKSUMS and entry.blob is not None:
            fresh = merge_checksums(fresh, read_checksums(store.read_blob(entry.blob)))
    there = _listed_archives(root)
    unlisted = {name: digest(root / name) for name in fresh if name not in there and (root / name).exists()}
    shown = frozenset(fresh)
    pages = {CHECKSUMS: render_checksums(merge_checksums(there | unlisted, fresh))}
    return Listing(shown=shown, files=shown, pages=pages)


def _listed_archives(root: Path) -> dict[str, str]:
    page = root / CHECKSUMS
    if not page.exists():
        return {}
    lines = read_checksums(page.read_bytes(), file=str(page))
    return {name: sha256 for name, sha256 in lines.items() if (root / name).exists()}
