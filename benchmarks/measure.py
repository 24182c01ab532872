"""What something costs: CPU seconds, wall seconds, peak memory. Each measurement runs in a process of its own."""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_BLOCK = 512
"""Bytes of what Linux counts as a block, whatever the file system's are."""


class Usage(NamedTuple):
    """What a process and its children used."""

    cpu: float
    """User and system seconds. What the kernel does later for it (write-back) is not in it."""
    wall: float
    """Seconds."""
    peak_rss: int
    """Bytes of resident memory of its largest process; never less than what the measuring Python holds."""
    written: int = 0
    """Bytes that were given to the kernel to be written to disks, also of files that are gone by now."""

    @property
    def memory(self) -> str:
        """Peak memory for a table."""
        return f"{self.peak_rss / 1e6:.0f} MB"


def measure(work: Callable[[], object] | Sequence[str]) -> Usage:
    """Run a function in a forked child, or a command, and wait for it.

    Raises:
        RuntimeError: it failed.
    """
    started = time.perf_counter()
    if callable(work):
        process = os.fork()
        if process == 0:
            _run_and_exit(work)
    else:
        process = os.posix_spawnp(work[0], list(work), os.environ)
    _, status, usage = os.wait4(process, 0)
    wall = time.perf_counter() - started
    if status != 0:
        raise RuntimeError(f"measured work failed ({os.waitstatus_to_exitcode(status)}): {work}")
    return Usage(
        cpu=usage.ru_utime + usage.ru_stime,
        wall=wall,
        peak_rss=usage.ru_maxrss * 1024,
        written=usage.ru_oublock * _BLOCK,
    )


def _run_and_exit(work: Callable[[], object]) -> None:
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 (a forked child must not go on in its parent's code)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def best(usages: Sequence[Usage]) -> Usage:
    """The one of several runs that used the least CPU: the others were disturbed more."""
    return min(usages, key=lambda usage: usage.cpu)


def machine_line() -> str:
    """One line on the machine that the numbers are from; nothing that names it."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    load = os.getloadavg()[0]
    return (
        f"{model}, {os.cpu_count()} CPUs, {memory:.0f} GB, Linux {platform.release()}, "
        f"Python {platform.python_version()}, load {load:.1f} when it started"
    )
