"""Change index roots, the folders that clients install from: one writer at a time, files first, pages last.

Every command that puts packages into a root comes through :func:`change_roots`. What it adds is made beside, while
others may write; then it is alone in the roots, reads what their pages list at that time, and adds to it. So writers
side by side lose nothing of each other, and whoever is killed leaves pages that name only what is there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from axletree.app.listings import channel_pages, wheel_pages
from axletree.core.errors import HostError, Problem, PublishError
from axletree.core.values import Digest
from axletree.disk import part_folder, remove_leftovers, sync_path
from axletree.host.files import replace_file
from axletree.host.folder_lock import folder_locks
from axletree.package.conda.repodata import CHANNEL, ChannelFile
from axletree.package.index import IndexFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.host.archive import WheelFile
    from axletree.host.folder_lock import Note

_SDIST = ".tar.gz"


class StagedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A finished file that is not in its place yet."""

    path: Path
    """In a staging folder, under its final name."""
    size: int
    sha256: Digest
    metadata: bytes | None = None
    """METADATA of a wheel; what has none is no wheel."""
    requires_python: str | None = None
    line: ChannelFile | None = None
    """Of a conda package, in the pages of its channel."""

    @property
    def place(self) -> str:
        """Path below a root."""
        return self.path.name if self.line is None else f"{CHANNEL}/{self.line.subdir}/{self.path.name}"


def staged_wheel(file: WheelFile, requires_python: str | None) -> StagedFile:
    """A wheel that was just written to be published."""
    return StagedFile(
        path=file.path,
        size=file.size,
        sha256=file.sha256,
        metadata=file.written.metadata,
        requires_python=requires_python,
    )


class Addition(msgspec.Struct, frozen=True, kw_only=True):
    """What an index root gets."""

    out: Path
    """The root; what its pages list already stays listed."""
    staged: Sequence[StagedFile]
    """New files."""
    linked: Sequence[IndexFile] = ()
    """Files that its pages list as well: of another root, or that are there already."""
    links_page: bool = False
    """Whether it has a page with all files, ``index.html``, too."""
    texts: Mapping[str, bytes] = {}
    """Further pages: name -> content."""


class RootChange(NamedTuple):
    """How a root changes."""

    root: Path
    files: Sequence[tuple[Path, str]]
    """Finished files, and where each goes below the root. They appear first."""
    pages: Mapping[str, bytes]
    """Path below the root -> content, in the order in which they appear."""
    stale: Sequence[str] = ()
    """What is to go afterwards: paths below the root."""


@contextmanager
def staging(root: Path) -> Iterator[Path]:
    """A folder for unfinished files inside an index root. It goes afterwards.

    What killed commands left in the root goes first.

    Raises:
        HostError: the root can't be made or written to.
    """
    with ExitStack() as stack:
        try:
            root.mkdir(parents=True, exist_ok=True)
            remove_leftovers(root, below=True)
            folder = stack.enter_context(part_folder(root / "staging"))
        except OSError as error:
            raise _unwritable(root, error) from error
        yield folder


def add_to_roots(
    roots: Sequence[Path], decide: Callable[[], Sequence[Addition]], *, durable: bool, note: Note
) -> tuple[Path, ...]:
    """Move staged files into index roots and list them on their pages.

    Args:
        roots: all that may change.
        decide: says what each root gets. It is called when nobody else can change them any more.
        durable: bring everything to the disk, so that a loss of power takes nothing that looks finished.
        note: told whom this waits for, when it has to.

    Returns:
        Where the files are now, in the order of the additions.

    Raises:
        PublishError: a file of the same name with other content is there, or two roots are one folder. Nothing was
            changed then.
        HostError: a folder can't be written to, or a page or file that is there can't be read.
    """
    places: list[Path] = []

    def changes(scratch: Mapping[Path, Path]) -> list[RootChange]:
        additions = decide()
        places.extend(each.out / file.place for each in additions for file in each.staged)
        return [_change(each, scratch[each.out]) for each in additions]

    change_roots(roots, changes, durable=durable, note=note)
    return tuple(places)


def change_roots(
    roots: Sequence[Path],
    decide: Callable[[Mapping[Path, Path]], Sequence[RootChange]],
    *,
    durable: bool,
    note: Note,
    report: Path | None = None,
) -> None:
    """Change index roots, all or none: files appear first and pages last, each whole.

    Args:
        roots: all that may change.
        decide: says how, given a staging folder in each root. Called when nobody else can change the roots any more.
        durable: bring everything to the disk, what pages name before the pages.
        note: told whom this waits for, when it has to.
        report: a file that no longer tells the truth once something changes; it goes first.

    Raises:
        PublishError: two roots are one folder. Nothing was changed then.
        HostError: a folder can't be written to.
    """
    folders = list(dict.fromkeys(roots))
    try:
        locked = [*folders, *([report.parent] if report else [])]
        with folder_locks(locked, note), ExitStack() as stack:
            scratch = {root: stack.enter_context(staging(root)) for root in folders}
            changes = decide(scratch)
            _refuse_one_folder(changes)
            files = [(path, each.root / place) for each in changes for path, place in each.files]
            pages = [page for each in changes for page in _write_pages(each, scratch[each.root])]
            _prepare([*files, *pages], durable=durable)
            if report is not None and (files or pages):
                report.unlink(missing_ok=True)
            for moves in (files, pages):
                _move(moves, durable=durable)
            for each in changes:
                for path in each.stale:
                    (each.root / path).unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(report.parent if report else folders[0], error) from error


def write_beside_roots(path: Path, data: bytes, *, note: Note) -> None:
    """Write another file into an output folder.

    Raises:
        HostError: the folder can't be written to.
    """
    try:
        with folder_locks([path.parent], note):
            replace_file(path, data)
    except OSError as error:
        raise _unwritable(path, error) from error


def index_line(file: StagedFile) -> IndexFile:
    """What pages say of a wheel or sdist."""
    return IndexFile(
        filename=file.path.name,
        size=file.size,
        sha256=file.sha256,
        requires_python=file.requires_python,
        metadata_sha256=hashlib.sha256(file.metadata).hexdigest() if file.metadata is not None else None,
    )


def _change(addition: Addition, scratch: Path) -> RootChange:
    """What an addition means, with the root as it is now."""
    wheels = [each for each in addition.staged if each.metadata is not None or each.path.name.endswith(_SDIST)]
    packages = [each.line for each in addition.staged if each.line is not None]
    files = [(each.path, each.place) for each in addition.staged]
    pages: dict[str, bytes] = {}
    stale: tuple[str, ...] = ()
    if wheels or addition.linked:
        lines = [index_line(each) for each in wheels]
        pages = wheel_pages(addition.out, lines, linked=addition.linked, links_page=addition.links_page)
    if packages:
        channel = channel_pages(addition.out, packages)
        pages, stale = pages | channel.pages, channel.stale
    for each in wheels:
        if each.metadata is not None:
            name = f"{each.path.name}.metadata"
            (scratch / name).write_bytes(each.metadata)
            files.append((scratch / name, name))
    return RootChange(addition.out, files, pages | dict(addition.texts), stale)


def _refuse_one_folder(changes: Sequence[RootChange]) -> None:
    """Two roots of which one is a link to the other would overwrite each other's pages."""
    known: dict[str, Path] = {}
    for each in changes:
        other = known.setdefault(os.path.realpath(each.root), each.root)
        if other != each.root:
            hint = "replace whichever of the two is a symbolic link with a separate folder"
            raise PublishError(
                Problem(
                    file=str(each.root),
                    message=f"the folder is the same as {other}, but each index root needs its own folder",
                    hint=hint,
                )
            )


def _write_pages(change: RootChange, scratch: Path) -> Iterator[tuple[Path, Path]]:
    """Write what differs from what is there; yields where it is, and where it goes."""
    for path, data in change.pages.items():
        target = change.root / path
        if target.exists() and target.read_bytes() == data:
            continue
        temporary = scratch / path
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        yield temporary, target


def _prepare(moves: Sequence[tuple[Path, Path]], *, durable: bool) -> None:
    for temporary, target in moves:
        temporary.chmod(0o644)
        if durable:
            sync_path(temporary)
        target.parent.mkdir(parents=True, exist_ok=True)


def _move(moves: Sequence[tuple[Path, Path]], *, durable: bool) -> None:
    for temporary, target in moves:
        try:
            temporary.replace(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _move_across(temporary, target)
    if durable:
        for folder in {target.parent for _, target in moves}:
            sync_path(folder)


def _move_across(temporary: Path, target: Path) -> None:
    """Move a file to another disk, as a root that is a link may lie on one."""
    with part_folder(target) as beside:
        copy = beside / target.name
        shutil.copy(temporary, copy)
        sync_path(copy)
        copy.replace(target)


def _unwritable(out: Path, error: OSError) -> HostError:
    what = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
    return HostError(f"cannot write to {out}: {what}", hint="free some space there, or choose a different folder")
