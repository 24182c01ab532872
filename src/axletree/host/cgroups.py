"""Control groups above this process, of either version: how much memory and time they leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path("/")


def group_folders(root: Path = ROOT) -> list[tuple[Path, str]]:
    """Folders of our groups and of all above them, with the list of controllers ('' for version 2).

    Args:
        root: the folder in whose place ``/`` is looked at.
    """
    folders: list[tuple[Path, str]] = []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    mounts = root / "sys/fs/cgroup"
    for line in lines:
        if line.count(":") < 2:
            continue
        _, controllers, path = line.split(":", 2)
        top = mounts / controllers if controllers else _unified(mounts)
        folder = top / path.lstrip("/")
        while True:
            folders.append((folder, controllers))
            if folder == top or top not in folder.parents:
                break
            folder = folder.parent
    return folders


def _of(controller: str, folders: Iterable[tuple[Path, str]]) -> Iterator[tuple[Path, bool]]:
    """Groups that have a controller, and whether they are of version 2, where all groups have all controllers."""
    for folder, controllers in folders:
        if controllers == "" or controller in controllers.split(","):
            yield folder, controllers == ""


def _unified(mounts: Path) -> Path:
    """Where version 2 is mounted: at the top, or beside version 1 (systemd's "hybrid")."""
    return mounts / "unified" if (mounts / "unified").is_dir() else mounts


def memory_groups(folders: list[tuple[Path, str]]) -> list[tuple[int, int]]:
    """Bytes left below each memory limit of some groups, and the limit."""
    room: list[tuple[int, int]] = []
    for folder, unified in _of("memory", folders):
        names = ("memory.max", "memory.current") if unified else ("memory.limit_in_bytes", "memory.usage_in_bytes")
        limit, used = (read_number(folder / name) for name in names)
        if limit is not None and limit < 2**60:
            left = limit - (used or 0) + _idle_cache(folder / "memory.stat")
            room.append((min(limit, max(0, left)), limit))
    return room


def swap_limits(folders: list[tuple[Path, str]]) -> list[int]:
    """Bytes of swap beyond memory that each group allows."""
    limits: list[int] = []
    for folder, unified in _of("memory", folders):
        if unified:
            swap = read_number(folder / "memory.swap.max")
        else:
            both = read_number(folder / "memory.memsw.limit_in_bytes")
            alone = read_number(folder / "memory.limit_in_bytes")
            swap = None if both is None or alone is None else max(0, both - alone)
            if both is not None and both >= 2**60:
                swap = None
        if swap is not None:
            limits.append(swap)
    return limits


def core_quota(folders: list[tuple[Path, str]]) -> float | None:
    """The tightest CPU quota of some groups in cores; ``None`` where there is none."""
    quotas: list[float] = []
    for folder, unified in _of("cpu", folders):
        if unified:
            try:
                quota, period = (folder / "cpu.max").read_text().split()
                if quota != "max":
                    quotas.append(int(quota) / int(period))
            except (OSError, ValueError, ZeroDivisionError):
                continue
        else:
            amount, span = read_number(folder / "cpu.cfs_quota_us"), read_number(folder / "cpu.cfs_period_us")
            if amount is not None and amount > 0 and span:
                quotas.append(amount / span)
    return min(quotas, default=None)


def out_of_memory_kills(folders: list[tuple[Path, str]]) -> int | None:
    """Processes of our own group that were killed for memory; ``None`` where no group counts them."""
    for folder, unified in _of("memory", folders):
        name = "memory.events" if unified else "memory.oom_control"
        try:
            fields = dict(line.split() for line in (folder / name).read_text().splitlines())
            return int(fields["oom_kill"])
        except (OSError, ValueError, KeyError):
            continue
    return None


def read_number(path: Path) -> int | None:
    """The first word of a file as a number; ``None`` where it is not there or is none, such as ``max``."""
    try:
        text = path.read_text().split()[0]
    except (OSError, IndexError):
        return None
    return int(text) if text.lstrip("-").isdigit() else None


def _idle_cache(stat: Path) -> int:
    """Bytes of cached files that the kernel drops when memory is wanted; they count as used."""
    try:
        lines = [line.split() for line in stat.read_text().splitlines()]
    except OSError:
        return 0
    found = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
    return found.get("total_inactive_file", found.get("inactive_file", 0))  # the first is version 1's with all below
