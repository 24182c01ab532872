"""What locking and reading projects need of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from axletree.recipe.settings import Settings
from axletree.store.layout import StoreLayout


class LockContext(msgspec.Struct, frozen=True, kw_only=True):
    """What locking needs of this machine."""

    environ: Mapping[str, str]
    settings: Settings
    home: Path
    cwd: Path
    store: Path
    """Root of the store."""

    @property
    def cache(self) -> Path:
        """Folder for git repositories, for downloads, and for what is known of interpreters."""
        return StoreLayout(self.store).cache

    @property
    def downloads(self) -> Path:
        """Where a build looks for what was downloaded already."""
        return self.cache / "downloads"
