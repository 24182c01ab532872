"""What may go out of a store: what was not used lately, and what nobody refers to."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import msgspec

from axletree.core.records import StageRecord
from axletree.disk import remove_leftovers, remove_tree
from axletree.store.errors import disk_errors
from axletree.store.images import RECORD, drop_image, each_image, is_ours
from axletree.store.locks import is_locked, remove_free, sweeping, using
from axletree.store.results import contents_of, read_json
from axletree.store.scratch import abandoned, clean_scratch, oldest_lease
from axletree.store.walk import each_blob, each_file, each_record, files_in, record_title, touched

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from axletree.core.values import Digest
    from axletree.store.layout import StoreLayout

_BY_AGE = ("last", "requests", "logs", "quarantine")
_DOWNLOADS = "cache/downloads"
_FOLDERS_BY_AGE = ("work", "workspaces", "environments", "cache/git")


class GcReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``gc`` removed, or would remove."""

    dry_run: bool
    records: tuple[str, ...]
    """Removed results, as ``stage (key)``."""
    blobs: int
    """Removed contents."""
    folders: tuple[str, ...]
    """Removed images, work folders, workspaces, environments, git repositories and scratch folders, relative to the
    root."""
    files: int
    """Removed requests, logs, last records, locks, interrupted downloads and files in quarantine."""
    freed: int
    """Bytes that this frees. Files with other hard links only lose a name."""
    kept_records: int
    kept_blobs: int


def gc(
    layout: StoreLayout,
    *,
    keep: float,
    grace: float,
    roots: Collection[str] = (),
    dry_run: bool = False,
    now: float | None = None,
) -> GcReport:
    """Remove what was not used lately.

    Kept are: records that were used, or remembered as a stage's last, within ``keep``, with all their contents; those
    that the stages of a root were the last time, whenever that was; what was written or used within ``grace``; what
    was written or used since the oldest living scratch folder was made.
    Images, folders of failed stages, workspaces, environments, logs, requests, quarantine, locks that nobody holds, cut
    downloads and git repositories go by ``keep`` too (who uses an image touches its record, who uses a workspace, an
    environment or a repository its folder); the rest of ``cache`` is left to the tools that own it. Waits for those who
    write into the store.

    Args:
        layout: the store.
        keep: seconds.
        grace: seconds.
        roots: names of recipes.
        dry_run: only say what would be removed.
        now: seconds since the epoch, where it is not now.

    Raises:
        StoreError: the store cannot be read or written.
    """
    now = time.time() if now is None else now
    lease = oldest_lease(layout)
    young = min(now - grace, now if lease is None else lease)
    recent = min(now - keep, young)
    with disk_errors(layout), using(layout) if dry_run else sweeping(layout):
        sweep = _Sweep(layout, dry_run=dry_run)
        rooted = _last_of(layout, roots)
        live = sweep.records(recent, rooted)
        sweep.blobs(live, young)
        sweep.others(recent, rooted)
        if not dry_run:
            sweep.folders.extend(str(path.relative_to(layout.root)) for path in clean_scratch(layout))
    return sweep.report()


def _last_of(layout: StoreLayout, roots: Collection[str]) -> frozenset[Path]:
    """Files that tell what the stages of some recipes were the last time."""
    found = {path: read_json(path, StageRecord) for path in files_in(layout.last)} if roots else {}
    return frozenset(
        path
        for path, record in found.items()
        if record is not None and any(path == layout.last_path(record.stage, recipe) for recipe in roots)
    )


class _Sweep:
    """Removes, or only counts."""

    def __init__(self, layout: StoreLayout, *, dry_run: bool) -> None:
        self._layout = layout
        self._dry_run = dry_run
        self._gone_records: list[str] = []
        self._gone_blobs = self._gone_files = self._freed = 0
        self._kept_records = self._kept_blobs = 0
        self.folders: list[str] = []

    def records(self, recent: float, rooted: Collection[Path]) -> set[Digest]:
        """Remove the records that were not used since; all contents that the others need."""
        layout = self._layout
        remember = (path for path in files_in(layout.last) if path in rooted or touched(path) >= recent)
        last = (read_json(path, StageRecord) for path in remember)
        remembered = {record.key for record in last if record is not None}
        live: set[Digest] = set()
        for path, record in each_record(layout):
            contents = None if record is None else contents_of(layout, record.tree)
            if record is not None and contents is not None and (touched(path) >= recent or record.key in remembered):
                self._kept_records += 1
                live.update(contents, (record.tree,))
            else:
                self._gone_records.append(record_title(path, record))
                self._remove(path)
        return live

    def blobs(self, live: set[Digest], young: float) -> None:
        """Remove the contents that nobody needs and that were not touched since."""
        for digest, status in each_blob(self._layout):
            if digest in live or status.st_ctime >= young:
                self._kept_blobs += 1
            else:
                self._gone_blobs += 1
                self._remove(self._layout.blob_path(digest))

    def others(self, recent: float, rooted: Collection[Path]) -> None:
        """Remove files and folders that were not touched since."""
        for name in _BY_AGE:
            for path in files_in(self._layout.root / name):
                if touched(path) < recent and path not in rooted:
                    self._gone_files += 1
                    self._remove(path)
        for path in files_in(self._layout.locks):
            if touched(path) < recent and remove_free(self._layout, path, dry_run=self._dry_run):
                self._gone_files += 1
        self._downloads(recent)
        for name in _FOLDERS_BY_AGE:
            for path in sorted((self._layout.root / name).glob("*")):
                if touched(path) < recent:
                    self._remove_folder(path)
        self._images(recent)

    def _downloads(self, recent: float) -> None:
        """Remove cut downloads that nobody is going on with, and the locks that nobody holds."""
        for path in files_in(self._layout.root / _DOWNLOADS):
            if touched(path) >= recent:
                continue
            lock = path.with_suffix(".lock")
            with abandoned(lock) as is_free:
                if is_free or not lock.exists():
                    self._gone_files += 1
                    self._remove(path)

    def _images(self, recent: float) -> None:
        """Remove the images that were not used since, and what killed processes left of some."""
        if not self._dry_run:
            remove_leftovers(self._layout.images)
        for image in each_image(self._layout):
            folder = self._layout.image_path(image)
            record = folder / RECORD
            busy = is_locked(self._layout, f"image-{image}")
            if is_ours(folder) and not busy and touched(record if record.exists() else folder) < recent:
                self.folders.append(str(folder.relative_to(self._layout.root)))
                self._freed += drop_image(self._layout, image, dry_run=self._dry_run)

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._freed += path.lstat().st_size
            if not self._dry_run:
                path.unlink()

    def _remove_folder(self, path: Path) -> None:
        self.folders.append(str(path.relative_to(self._layout.root)))
        if path.is_symlink() or not path.is_dir():
            self._remove(path)
            return
        self._freed += sum(status.st_size for _, status in each_file(path))
        if not self._dry_run:
            remove_tree(path)

    def report(self) -> GcReport:
        """What was done."""
        return GcReport(
            dry_run=self._dry_run,
            records=tuple(self._gone_records),
            blobs=self._gone_blobs,
            folders=tuple(self.folders),
            files=self._gone_files,
            freed=self._freed,
            kept_records=self._kept_records,
            kept_blobs=self._kept_blobs,
        )
