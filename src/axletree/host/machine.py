"""What this machine has: cores, memory, disk, and the facts that results of tests depend on."""

from __future__ import annotations

import math
import os
import platform
import shutil
from pathlib import Path

import psutil

from axletree.host import cgroups
from axletree.plan.admission import Budget

_RESERVE = 0.1
_RESERVE_LEAST = 512 * 1024**2


def budget(folder: Path, *, jobs: int | None = None) -> Budget:
    """What stages may take: usable cores, memory less a reserve, free disk of the file system of ``folder``.

    ``jobs`` are the most cores that are wanted.

    Memory is the least of what is available now and of the limits of all cgroups above us (version 1 and 2).
    """
    available = min(
        [psutil.virtual_memory().available, *(room for room, _ in cgroups.memory_groups(cgroups.group_folders()))]
    )
    reserve = max(int(available * _RESERVE), _RESERVE_LEAST)
    cores = usable_cores() if jobs is None else min(usable_cores(), jobs)
    return Budget(
        cores=cores,
        slots=cores,
        memory=max(available - reserve, available // 2),
        disk=shutil.disk_usage(folder).free,
    )


def memory() -> tuple[int, int]:
    """Bytes of memory that are in use and that there are, in the tightest of this machine and the cgroups above us."""
    found = psutil.virtual_memory()
    room, total = min([(found.available, found.total), *cgroups.memory_groups(cgroups.group_folders())])
    return total - room, total


def usable_cores() -> int:
    """Cores that this process may use: affinity mask and cgroup quota."""
    cores = len(os.sched_getaffinity(0))
    quota = cgroups.core_quota(cgroups.group_folders())
    return max(1, min(cores, math.ceil(quota))) if quota is not None else cores


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
