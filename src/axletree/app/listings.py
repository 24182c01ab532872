"""What an index root lists, and what it will list once more is published: wheels, a conda channel, archives.

Each kind has pages that name its files. Files appear before the pages that name them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from axletree.core.errors import Problem, PublishError
from axletree.host.archive import digest_file
from axletree.host.files import file_errors
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
from axletree.package.index import IndexFile, is_links_page, merge_files, read_index, render_index, render_links

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from axletree.core.trees import Entry
    from axletree.store.store import Store

_Line = TypeVar("_Line", IndexFile, ChannelFile)

LINKS_PAGE = "index.html"
"""Name of the page with all files of a root, for ``--find-links``."""
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


class ChannelPages(NamedTuple):
    """What adding packages means for a channel."""

    pages: dict[str, bytes]
    """Path below the root -> content afterwards."""
    stale: tuple[str, ...]
    """Pages of other tools, which would hide what is new."""


def listing(kind: str, root: Path, trees: Sequence[Sequence[Entry]], store: Store, *, replace: bool = False) -> Listing:
    """What a root will list.

    Args:
        kind: ``index`` (wheels), ``channel`` or ``archives``.
        root: the index root.
        trees: what each tree holds; trees of several variants have pages of the same path.
        store: where the content of their pages lies.
        replace: forget files that are there with the same names and other content.

    Raises:
        PublishError: a file of the same name with other content is there, and stays; names all of them.
        IntegrityError: a page that is there makes no sense.
        HostError: it can't be read.
    """
    entries = [entry for tree in trees for entry in tree]
    return {"index": _wheels, "channel": _channel, "archives": _archives}[kind](root, entries, store, replace=replace)


def listed(kind: str, root: Path) -> dict[str, str]:
    """What the pages of a root list and is there: path below the root -> SHA-256.

    Raises:
        IntegrityError: a page makes no sense.
        HostError: it can't be read.
    """
    if kind == "index":
        return {name: line.sha256 for name, line in listed_wheels(root).items()}
    with file_errors(root, precise=True):
        if kind == "channel":
            return {_place(line): line.sha256 for line in _listed_packages(root)}
        return _listed_archives(root)


def is_whole(kind: str, root: Path) -> bool:
    """Whether the pages of a root agree with each other: not where a writer was killed between two of them.

    Raises:
        IntegrityError: a page makes no sense.
        HostError: it can't be read.
    """
    if kind == "index":
        pages = wheel_pages(root, ())
    elif kind == "channel":
        with file_errors(root, precise=True):
            subdirs = by_subdir(_listed_packages(root))
        pages = {
            path: data for subdir, files in subdirs.items() for path, data in index_files(files, subdir=subdir).items()
        }
    else:
        return True  # there is one only
    with file_errors(root, precise=True):
        return all((root / path).exists() and (root / path).read_bytes() == data for path, data in pages.items())


def listed_wheels(root: Path) -> dict[str, IndexFile]:
    """The wheels and sdists that the pages of a root list and that are there: file name -> line.

    Raises:
        IntegrityError: a page makes no sense.
        HostError: it can't be read.
    """
    found: dict[str, IndexFile] = {}
    with file_errors(root, precise=True):
        for page in sorted(root.glob("simple/*/index.json")):
            for line in read_index(page.read_bytes(), file=str(page)):
                if (root / line.path).exists():
                    found[line.filename] = line
    return found


def wheel_pages(
    root: Path,
    fresh: Sequence[IndexFile],
    *,
    linked: Sequence[IndexFile] = (),
    links_page: bool = False,
    replace: bool = False,
) -> dict[str, bytes]:
    """All pages of a root after wheels and sdists were added, in the order in which they must appear.

    Args:
        root: what its pages list already stays listed.
        fresh: what is added.
        linked: what lies elsewhere and is listed as well.
        links_page: whether it gets a page with all files; one that it has is kept up to date in any case.
        replace: whether files that are there give way to fresh ones of the same names.

    Raises:
        PublishError: a file of the same name with other content is there, or another page under the name of ours.
        IntegrityError: a page that is there makes no sense.
        HostError: it can't be read.
    """
    there = listed_wheels(root)
    with file_errors(root, precise=True):
        present = [*there.values(), *_unlisted_wheels(root, fresh, there)]
        if replace:
            present = _kept(present, fresh)
        lines = merge_files(present, [*fresh, *linked])
        rendered = render_index(lines)
        # JSON goes first: from there the next writer takes what is listed, wherever this one is killed.
        order = sorted(rendered, key=lambda page: (-page.count("/"), page.endswith(".html")))
        pages = {path: rendered[path] for path in order}
        if _has_links_page(root / LINKS_PAGE, wanted=links_page):
            pages[LINKS_PAGE] = render_links(lines)
    return pages


def channel_pages(root: Path, fresh: Sequence[ChannelFile], *, replace: bool = False) -> ChannelPages:
    """The pages that change in the channel of a root when conda packages are added; ``replace`` as for wheels.

    Raises:
        PublishError: a package of the same name with other content is there; names all of them.
        IntegrityError: a page that is there makes no sense.
        HostError: it can't be read.
    """
    with file_errors(root, precise=True):
        there = list(_listed_packages(root))
        known = {_place(line) for line in there}
        unlisted = [
            msgspec.structs.replace(line, record=line.record | {"sha256": digest_file(root / _place(line))})
            for line in fresh
            if _place(line) not in known and (root / _place(line)).exists()
        ]
        present = _kept([*there, *unlisted], fresh) if replace else [*there, *unlisted]
        touched = {line.subdir for line in fresh} | {"noarch"}
        pages: dict[str, bytes] = {}
        for subdir, files in by_subdir(merge_channel(present, fresh)).items():
            new = not (root / CHANNEL / subdir / REPODATA).exists()
            if subdir in touched and (new or any(line.subdir == subdir for line in fresh)):
                pages |= index_files(files, subdir=subdir)
    subdirs = sorted({line.subdir for line in fresh})
    return ChannelPages(pages, tuple(f"{CHANNEL}/{subdir}/{name}" for subdir in subdirs for name in STALE))


def _kept(present: Iterable[_Line], fresh: Iterable[_Line]) -> list[_Line]:
    """Lines without those that fresh ones of the same names replace."""
    new = {_where(line): line.sha256 for line in fresh}
    return [line for line in present if new.get(_where(line), line.sha256) == line.sha256]


def _where(line: IndexFile | ChannelFile) -> str:
    return line.filename if isinstance(line, IndexFile) else _place(line)


def _has_links_page(path: Path, *, wanted: bool) -> bool:
    """Whether a root has, or is to have, a page with all files; another tool's or the user's page stays."""
    if not path.exists():
        return wanted
    ours = is_links_page(path.read_bytes())
    if wanted and not ours:
        hint = "move the file elsewhere, or choose a different folder"
        raise PublishError(
            Problem(file=str(path), message="the file already exists, but is not a page created by Axletree", hint=hint)
        )
    return ours


def _wheels(root: Path, entries: Sequence[Entry], store: Store, *, replace: bool) -> Listing:
    pages = [entry for entry in entries if _PROJECT_PAGE.fullmatch(entry.path)]
    fresh = [line for page in pages if page.blob for line in read_index(store.read_blob(page.blob), file=page.path)]
    shown = frozenset(line.filename for line in fresh)
    return Listing(
        shown=shown,
        files=shown | {entry.path for entry in entries if entry.path.endswith(".whl.metadata")},
        pages=wheel_pages(root, fresh, replace=replace),
    )


def _unlisted_wheels(root: Path, fresh: Iterable[IndexFile], there: Mapping[str, IndexFile]) -> Iterator[IndexFile]:
    """Files that lie where a fresh one goes, though no page names them: by hand, or of a writer that was killed."""
    for line in fresh:
        path = root / line.path
        if line.filename not in there and path.exists():
            yield msgspec.structs.replace(line, sha256=digest_file(path))


def _channel(root: Path, entries: Sequence[Entry], store: Store, *, replace: bool) -> Listing:
    fresh: list[ChannelFile] = []
    for entry in entries:
        found = _REPODATA_PAGE.fullmatch(entry.path)
        if found is not None and entry.blob is not None:
            fresh += read_repodata(store.read_blob(entry.blob), subdir=found[1], file=entry.path)
    changed = channel_pages(root, fresh, replace=replace)
    shown = frozenset(map(_place, fresh))
    return Listing(shown=shown, files=shown, pages=changed.pages, stale=changed.stale)


def _place(line: ChannelFile) -> str:
    return f"{CHANNEL}/{line.subdir}/{line.filename}"


def _listed_packages(root: Path) -> Iterator[ChannelFile]:
    for page in sorted(root.glob(f"{CHANNEL}/*/{REPODATA}")):
        for line in read_repodata(page.read_bytes(), subdir=page.parent.name, file=str(page)):
            if (root / _place(line)).exists():
                yield line


def _archives(root: Path, entries: Sequence[Entry], store: Store, *, replace: bool) -> Listing:
    fresh: dict[str, str] = {}
    for entry in entries:
        if entry.path == CHECKSUMS and entry.blob is not None:
            fresh = merge_checksums(fresh, read_checksums(store.read_blob(entry.blob)))
    with file_errors(root, precise=True):
        there = _listed_archives(root)
        unlisted = {name: digest_file(root / name) for name in fresh if name not in there and (root / name).exists()}
    shown = frozenset(fresh)
    present = there | unlisted
    if replace:
        present = {name: sha256 for name, sha256 in present.items() if fresh.get(name, sha256) == sha256}
    pages = {CHECKSUMS: render_checksums(merge_checksums(present, fresh))}
    return Listing(shown=shown, files=shown, pages=pages)


def _listed_archives(root: Path) -> dict[str, str]:
    page = root / CHECKSUMS
    if not page.exists():
        return {}
    lines = read_checksums(page.read_bytes(), file=str(page))
    return {name: sha256 for name, sha256 in lines.items() if (root / name).exists()}
