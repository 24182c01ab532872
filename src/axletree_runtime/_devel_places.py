"""Where a devel tree lies: beside its package, or in the user's cache where nobody may write there.

The tree in the cache has folders beside it that are links to the platform folders, so that all paths between them are
the same: those of links, and those that libraries find each other by.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ._record import find_record, recorded_hash
from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._sdk import Sdk


_GONE = "."
"""How the name begins of what is being removed: nobody uses it any more."""


@dataclass(frozen=True)
class Place:
    """Where a tree lies, or would."""

    site: Path
    """Folder that it shares with the platform folders, or with links to them."""
    root: Path
    cache: bool = False

    @property
    def work(self) -> Path:
        """Folder for what is being made, on the same file system; there only while somebody works, or was killed."""
        return self.root.with_name(f"{self.root.name}.tmp")


def site_place(sdk: Sdk, folder: str) -> Place:
    """The place beside the devel package's Python package; beside the selector where that is not installed."""
    module = sdk.devel_module()
    site = sdk.site if module is None else module.parent
    return Place(site, site / folder)


def is_writable(sdk: Sdk, place: Place) -> bool:
    """Whether this process may make a tree in a site directory, and tell RECORD of it."""
    package = sdk.devel_package()
    if package is None or not os.access(place.site, os.W_OK | os.X_OK):
        return False
    record = find_record(place.site, package.dist, sdk.shipped(package).version)
    return record is None or os.access(record.parent, os.W_OK | os.X_OK)


def cache_place(sdk: Sdk, site: Path, folder: str, version: str, payload: str) -> Place:
    """The place in the user's cache: another one for each site directory, version and payload."""
    key = "\0".join((os.path.realpath(site), sdk.file.sdk, version, payload))
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    base = cache_home(sdk) / f"devel-{digest}"
    return Place(base, base / folder, cache=True)


def cache_home(sdk: Sdk) -> Path:
    """The folder of the SDK in the user's cache.

    Raises:
        SdkError: the user has no home.
    """
    try:
        if os.environ.get("XDG_CACHE_HOME", "").startswith("/"):
            base = Path(os.environ["XDG_CACHE_HOME"])
        elif sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path.home() / ".cache"
    except RuntimeError:
        raise SdkError("this user has no home folder for the cache: set XDG_CACHE_HOME") from None
    return base / sdk.file.command


def cache_places(sdk: Sdk, folder: str) -> Iterator[Place]:
    """Trees that lie in the user's cache, of any site directory."""
    try:
        bases = sorted(cache_home(sdk).glob("devel-*"))
    except (OSError, SdkError):
        return
    for base in bases:
        yield Place(base, base / folder, cache=True)


def payload_digest(site: Path, dist: str, version: str, payload: Path) -> str:
    """Hash of the payload as RECORD has it; empty where there is none."""
    return recorded_hash(find_record(site, dist, version), f"{payload.parent.name}/{payload.name}")


def link_folders(place: Place, folders: dict[str, Path]) -> None:
    """Put links to the platform folders beside a tree in the cache."""
    for each in place.site.iterdir():
        if each.is_symlink() and each.name not in folders:
            each.unlink()
    for name, folder in folders.items():
        link = place.site / name
        if link.is_symlink() and os.readlink(link) == str(folder):
            continue
        if link.is_symlink():
            link.unlink()
        link.symlink_to(folder, target_is_directory=True)


def remove_cache(place: Place) -> None:
    """Remove a tree in the cache with all that belongs to it."""
    gone = place.site.with_name(f"{_GONE}{place.site.name}-{os.urandom(4).hex()}")
    place.site.rename(gone)
    shutil.rmtree(gone)


def finish_removals(sdk: Sdk) -> None:
    """Remove what :func:`remove_cache` could not finish since it was killed; two at once do no harm."""
    try:
        for each in cache_home(sdk).glob(f"{_GONE}devel-*"):
            shutil.rmtree(each, ignore_errors=True)
    except (OSError, SdkError):
        return
