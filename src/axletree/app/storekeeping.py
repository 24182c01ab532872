"""Looking after the user's store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree import store as stores
from axletree.app.recipes import load_whole
from axletree.core.values import Digest
from axletree.execute.stage import trim_logs
from axletree.execute.stage_venvs import UV_CACHE
from axletree.host.venvs import forget_wheels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.store import GcReport, Store

_DAY = 86400.0
_HOUR = 3600.0
KEEP_DAYS = 30.0
GRACE_HOURS = 24.0


def sweep_store(
    store: Store,
    *,
    keep_days: float = KEEP_DAYS,
    grace_hours: float = GRACE_HOURS,
    roots: Sequence[str] = (),
    dry_run: bool = False,
) -> GcReport:
    """Remove from the store what was not used for some days; what the last run of a root needed stays.

    Args:
        store: what is swept.
        keep_days: for how long unused results stay.
        grace_hours: for how long everything stays.
        roots: recipes, by name or path.
        dry_run: only say what would be removed.

    Raises:
        UsageError: a root is no recipe.
        RecipeError: a root has faults.
        StoreError: the store cannot be used.
    """
    report = stores.gc(
        store,
        keep=keep_days * _DAY,
        grace=grace_hours * _HOUR,
        roots=tuple(load_whole(root).recipe.name for root in roots),
        dry_run=dry_run,
    )
    if not dry_run:
        trim_logs(store)
        # Other names of the same files: the room is free only without them.
        forget_wheels(store.cache / UV_CACHE, in_use=lambda digest: store.has_blob(Digest(digest)))
    return report
