"""Fetch the source: an archive unpacked, a commit checked out, a folder's files, or a wheel as it is."""

from __future__ import annotations

import importlib
import os
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from axletree.core.errors import IntegrityError, StageError
from axletree.core.trees import Entry, is_safe_path, make_tree
from axletree.core.units import format_bytes, some_of
from axletree.execute.context import Outcome
from axletree.host.fetch import download
from axletree.host.gitfetch import fetch_git
from axletree.host.indexes import read_indexes
from axletree.host.project_tree import unpacked_limit
from axletree.host.simple_api import find_file
from axletree.plan.actions.fetch import CommitSource, FetchFacts, FileSource, FolderSource

if TYPE_CHECKING:
    from axletree.core.values import Digest
    from axletree.execute.context import ActionContext, Context
    from axletree.plan.actions.fetch import FetchParameters

_TAR = tarfile if hasattr(tarfile, "data_filter") else importlib.import_module("backports.tarfile")
"""What refuses members outside of their folder came with Python 3.11.4; Debian 12 has 3.11.2."""

_MEMBER = 512
"""Bytes that a member counts beside its content."""


def run(context: ActionContext[FetchParameters]) -> Outcome:
    """Bring the source into the store.

    Raises:
        HostError: it cannot be had.
        IntegrityError: what came is not what the recipe's lock says.
    """
    match context.parameters.source:
        case FolderSource(tree=tree):
            return Outcome(tree=tree)
        case CommitSource(url=url, commit=commit, submodules=submodules):
            folder = context.work / "source"
            fetch_git(
                url,
                commit,
                folder,
                cache=context.store.cache / "git",
                environ=context.environ,
                submodules=submodules,
                offline=context.settings.offline,
            )
            return Outcome(tree=context.store.ingest(folder, adopt=True, exclude=("**/.git",)))
        case FileSource(filename=filename) as wanted:
            digest = fetch_blob(context, wanted)
            if wanted.plain or filename.endswith(".whl"):
                size = context.store.blob_path(digest).stat().st_size
                tree = context.store.put_tree(make_tree([Entry(path=filename, blob=digest, size=size)]))
            else:
                context.progress(f"unpacking {filename}")
                folder = context.work / "source"
                unpack(context.store.blob_path(digest), folder, name=filename, top=wanted.top)
                tree = context.store.ingest(folder, adopt=True)
            return Outcome(tree=tree, facts=FetchFacts(file=filename))


def fetch_blob(context: Context, wanted: FileSource, *, before: int = 0, total: int | None = None) -> Digest:
    """Bring one locked file into the store, unless it is there.

    Stages that want the same file take turns, so that it is downloaded once.

    Args:
        context: The stage's surroundings.
        wanted: The file.
        before: Bytes that count as done already, where the file is one of several.
        total: Bytes of all of them; default is the file's own size.
    """
    filename, digest, size = wanted.filename, wanted.sha256, wanted.size
    message = f"fetching {filename}"
    whole = total or size

    def tell(done: int, _total: int | None) -> None:
        context.progress(message, done=before + done, total=whole, unit="bytes")

    with context.store.lock(f"fetch-{digest}"):
        if context.store.has_blob(digest):
            return digest
        url = wanted.url
        if url is None:
            extra, offline = context.request.local.extra_indexes, context.settings.offline
            home = Path(context.environ.get("HOME", "/"))
            indexes = read_indexes(context.settings, context.environ, home=home, cwd=Path.cwd())
            url = find_file(filename, digest, indexes, extra=extra, offline=offline).url
        context.progress(message, done=before, total=whole, unit="bytes")
        target = context.work / filename
        download(
            url,
            target,
            sha256=digest,
            size=size,
            partial_folder=context.store.cache / "downloads",
            progress=tell,
            offline=context.settings.offline,
        )
        return context.store.put_file(target, adopt=True)[0]


def unpack(archive: Path, folder: Path, *, name: str, top: Literal["keep", "strip"] | None = None) -> None:
    """Unpack an archive, called ``name`` in errors, without its single top folder, which sdists and releases have.

    ``top`` is that of :class:`FileSource`.

    Raises:
        IntegrityError: it is no archive, or a member would land outside of the folder.
        StageError: it would take far more room than an archive of its size does, or has no single top folder.
    """
    allowance = _Allowance(archive, name)
    raw = folder.with_name(f"{folder.name}.unpacked")
    raw.mkdir()
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, raw, name, allowance)
        else:
            with _TAR.open(archive) as tar:
                tar.extractall(raw, members=map(allowance.spend_tar, tar), filter="data")
    except (_TAR.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise IntegrityError(f"cannot unpack {name}: {error}") from error
    inside = sorted(raw.iterdir())
    single = inside[0] if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink() else None
    if top == "strip" and single is None:
        names = some_of([f"{each.name}/" if each.is_dir() else each.name for each in inside], 3) or "nothing"
        raise StageError(
            f"{name} does not have a single folder at its top, but {names}",
            hint="to keep everything where it is, set strip = 0 for this source",
        )
    (single if single is not None and top != "keep" else raw).rename(folder)


class _Allowance:
    """How much an archive may unpack to: a small file must not fill the disk."""

    def __init__(self, archive: Path, name: str) -> None:
        self._name = name
        self._size = archive.stat().st_size
        self._limit = unpacked_limit(self._size)
        self._left = self._limit

    def spend(self, size: int) -> None:
        """Count a member of so many bytes before it is written; an empty one takes room too."""
        self._left -= size + _MEMBER
        if self._left < 0:
            raise StageError(
                f"{self._name} ({format_bytes(self._size)}) would unpack to more than {format_bytes(self._limit)}",
                hint='if the archive is correct, unpack it yourself and use the folder: source = { path = "..." }',
            )

    def spend_tar(self, member: tarfile.TarInfo) -> tarfile.TarInfo:
        """:meth:`spend` for a member of a tar archive, which is passed on."""
        self.spend(member.size)
        return member


def _unpack_zip(archive: Path, folder: Path, name: str, allowance: _Allowance) -> None:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if not is_safe_path(member.filename.rstrip("/")):
                raise IntegrityError(f"{name} contains a member that leads out of its folder: {member.filename!r}")
            allowance.spend(member.file_size)
            path = Path(opened.extract(member, folder))
            mode = member.external_attr >> 16
            if path.is_file() and mode & 0o100:
                os.chmod(path, 0o755)  # noqa: PTH101, S103 (the execute bit is all that is carried over)
