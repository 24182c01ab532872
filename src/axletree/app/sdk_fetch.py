"""Fetch the artifacts of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import UsageError
from axletree.host.sdk.store import fetch_artifacts
from axletree.package.sdk.artifact_name import may_be_target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from axletree.report.sdk import Fetched

PLATFORMS = ("linux", "windows")
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:+_-]*")


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for."""

    store: str
    """Folder or address. May hold credentials."""
    run_id: str
    """Or ``latest``."""
    group: str
    """Artifact group."""
    targets: tuple[str, ...] = ()
    """Further targets whose artifacts are wanted."""
    platform: str = PLATFORMS[0]


def fetch(request: FetchRequest, out: Path, *, note: Callable[[str], None]) -> Fetched:
    """Bring the archives of an artifact group, and those for all GPUs, into a folder.

    Raises:
        UsageError: the group, a target or the run's id is none.
        IntegrityError: an archive is not what its checksum says, or has none.
        HostError: the store has no such run or group, gives no answer, or something can't be written.
    """
    if not _GROUP.fullmatch(request.group):
        raise UsageError(
            f"{request.group[:100]!r} is not a valid artifact group", hint="use a name such as gfx94X-dcgpu"
        )
    wrong = [name for name in request.targets if not may_be_target(name)]
    if wrong:
        raise UsageError(
            f"{wrong[0]!r} is neither a GPU nor a GPU family",
            hint="use a name such as gfx94X-dcgpu or gfx1100",
        )
    return fetch_artifacts(
        request.store,
        request.run_id,
        request.group,
        out,
        platform=request.platform,
        targets=request.targets,
        note=note,
    )
