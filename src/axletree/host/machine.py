"""What this machine has: cores, memory, disk, and the facts that results of tests depend on."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import psutil

from axletree.plan.admission import Budget

_RESERVE = 0.1
_RESERVE_LEAST = 512 * 1024**2


def budget(folder: Path) -> Budget:
    """What stages may take: usable cores, memory less a reserve, free disk of the file system of ``folder``.

    Memory is the least of what is available now and of the limits of all cgroups above us (version 1 and 2).
    """
    available = min([psutil.virtual_memory().available, *(room for room, _ in _cgroup_memory())])
    reserve = max(int(available * _RESERVE), _RESERVE_LEAST)
    cores = usable_cores()
    return Budget(
        cores=cores,
        slots=cores,
        memory=max(available - reserve, available // 2),
        disk=shutil.disk_usage(folder).free,
    )


def memory() -> tuple[int, int]:
    """Bytes of memory that are in use and that there are, in the tightest of this machine and the cgroups above us."""
    found = psutil.virtual_memory()
    room, total = min([(found.available, found.total), *_cgroup_memory()])
    return total - room, total


def usable_cores() -> int:
    """Cores that this process may use: affinity mask and cgroup quota."""
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup_cores()
    return max(1, min(cores, quota)) if quota is not None else cores


def test_facts() -> dict[str, str]:
    """Facts of the host that a test's result depends on: processor, C library, kernel's major version, GPUs."""
    gpus = sorted(path.name for pattern in ("nvidia[0-9]*", "kfd") for path in Path("/dev").glob(pattern))
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "libc": "-".join(platform.libc_ver()),
        "kernel": platform.release().split(".", maxsplit=1)[0],
        "gpus": " ".join(gpus),
    }


def summary() -> dict[str, str]:
    """The machine in a few words, for reports."""
    memory = psutil.virtual_memory().total / 1024**3
    return {
        "system": _system_name(),
        "processor": f"{_processor()}, {usable_cores()} cores",
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
    }


def _system_name() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.system()
    return release.get("PRETTY_NAME", platform.system())


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "CPU part")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _cgroup_folders() -> list[tuple[Path, str]]:
    """Folders of our cgroups and all above them, with the controller list ('' for version 2)."""
    folders: list[tuple[Path, str]] = []
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        root = Path("/sys/fs/cgroup") / controllers if controllers else Path("/sys/fs/cgroup")
        folder = root / path.lstrip("/")
        while True:
            folders.append((folder, controllers))
            if folder == root or root not in folder.parents:
                break
            folder = folder.parent
    return folders


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().split()[0]
    except (OSError, IndexError):
        return None
    return int(text) if text.lstrip("-").isdigit() else None


def _cgroup_memory() -> list[tuple[int, int]]:
    """Bytes left below each memory limit above us, and the limit."""
    room: list[tuple[int, int]] = []
    for folder, controllers in _cgroup_folders():
        if controllers == "":
            limit, used = _number(folder / "memory.max"), _number(folder / "memory.current")
        elif controllers == "memory":
            limit, used = _number(folder / "memory.limit_in_bytes"), _number(folder / "memory.usage_in_bytes")
        else:
            continue
        if limit is not None and limit < 2**60:
            left = limit - (used or 0) + _idle_cache(folder / "memory.stat")
            room.append((min(limit, max(0, left)), limit))
    return room


def _idle_cache(stat: Path) -> int:
    """Bytes of cached files that the kernel drops when memory is wanted; they count as used."""
    try:
        lines = [line.split() for line in stat.read_text().splitlines()]
    except OSError:
        return 0
    found = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
    return found.get("total_inactive_file", found.get("inactive_file", 0))  # the first is version 1's with all below


def _cgroup_cores() -> int | None:
    """The tightest CPU quota above us in whole cores, rounded up."""
    quotas: list[int] = []
    for folder, controllers in _cgroup_folders():
        if controllers == "":
            try:
                quota, period = (folder / "cpu.max").read_text().split()
            except (OSError, ValueError):
                continue
            if quota != "max":
                quotas.append(-(-int(quota) // int(period)))
        elif "cpu" in controllers.split(","):
            amount, span = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
            if amount is not None and amount > 0 and span:
                quotas.append(-(-amount // span))
    return min(quotas, default=None)
