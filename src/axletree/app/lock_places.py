"""The folders of a recipe's locks."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.app.shipped import is_installed
from axletree.host.settings import user_locks
from axletree.recipe.sets import decides_locks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WITH_SET = "locks-with-set"
"""Folder beside a recipe's locks, with one folder for each ``--set`` that decides what is locked."""
_PATTERNS = ("pylock.*.toml", "conda-lock.*.toml", "*.lock.toml")


class LockPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Where a recipe's locks are read and written."""

    companion: Path
    """Folder that belongs to the recipe: beside the file, with its stem. May not exist."""
    locks: Path
    """Folder that locks are written to: the companion; for a recipe that ships with Axletree, one of the user's; for a
    call with ``--set``, one in there. May not exist."""
    further: tuple[Path, ...] = ()
    """Folders where a lock is read that is not there: the nearest first, the companion last."""

    def find(self, name: str) -> Path:
        """A lock where it is read: the first that there is, else where it would be written."""
        found = (folder / name for folder in (self.locks, *self.further))
        return next((path for path in found if path.exists()), self.locks / name)

    def files(self) -> Iterator[Path]:
        """All locks that there are, in their order."""
        for folder in (self.locks, *self.further):
            yield from (path for pattern in _PATTERNS for path in sorted(folder.glob(pattern)))


def lock_places(path: Path, sets: Sequence[str] = (), *, named: bool) -> LockPlaces:
    """Where the locks of a recipe are.

    Args:
        path: its file.
        sets: what ``--set`` changes, in its normal form. The recipe's own locks are read where they fit, never changed.
        named: whether it was called by the name of one that ships.
    """
    companion = path.parent / path.stem
    own = user_locks(path.stem) if named or is_installed(path) else companion
    further = () if own == companion else (companion,)
    deciding = "\0".join(filter(decides_locks, sets))
    if not deciding:
        return LockPlaces(companion=companion, locks=own, further=further)
    digest = hashlib.sha256(deciding.encode()).hexdigest()[:8]
    return LockPlaces(companion=companion, locks=own / WITH_SET / digest, further=(own, *further))
