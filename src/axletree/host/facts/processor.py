"""The processor: model, instruction sets, and how many cores a build may use."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.check.host.part import UNLIMITED
from axletree.check.host.system import Cpu
from axletree.host.cgroups import core_quota, group_folders
from axletree.host.facts.access import Seen
from axletree.host.facts.names import host_names

if TYPE_CHECKING:
    from axletree.host.facts.access import Access

_CPUINFO = "/proc/cpuinfo"


def processor_facts(access: Access) -> Cpu:
    """The processor of the access's host."""
    seen = Seen()
    text = access.peek(_CPUINFO)
    if text is None:
        for field in ("model", "vendor", "flags", "level"):
            seen.put(field, f"{_CPUINFO}: cannot be read", None)
    else:
        _describe(text, seen)
    online = access.peek("/sys/devices/system/cpu/online")
    seen.attempt("logical", "/sys/devices/system/cpu/online", lambda: len(expand_list(online)) if online else None)
    fake = access.root != Path("/")
    source = "Cpus_allowed_list in /proc/self/status" if fake else "sched_getaffinity"
    affinity = seen.attempt("affinity", source, lambda: _allowed(access) if fake else len(os.sched_getaffinity(0)))
    quota = core_quota(group_folders(access.root))
    source = "cpu.max or cpu.cfs_quota_us of this process's control groups"
    seen.put("quota", source, float(UNLIMITED) if quota is None else quota)
    if affinity is not None:
        cores = affinity if quota is None else max(1, min(affinity, math.ceil(quota)))
        seen.put("cores", "the smaller of affinity and quota", cores)
    seen.rest(Cpu, "the CPU affinity is unknown")
    siblings = access.peek("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    seen.attempt(
        "threads_per_core",
        "thread_siblings_list of CPU 0 in /sys/devices/system/cpu",
        lambda: len(expand_list(siblings)) if siblings else None,
    )
    nodes = access.glob("/sys/devices/system/node", "node[0-9]*")
    seen.put("numa_nodes", "folders in /sys/devices/system/node", len(nodes) or None)
    return Cpu(**seen.values, sources=seen.sources)


def expand_list(text: str) -> list[int]:
    """The numbers of a kernel's list: ``0-2,5`` -> 0, 1, 2, 5.

    Raises:
        ValueError: it is none.
    """
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _describe(text: str, seen: Seen) -> None:
    fields: dict[str, str] = {}
    names = host_names().processor
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    model = fields.get("model name") or fields.get("cpu") or fields.get("CPU part")
    seen.put("model", f"model name in {_CPUINFO}", model)
    implementer = fields.get("CPU implementer")
    vendor = fields.get("vendor_id") or (names.implementers.get(implementer, implementer) if implementer else None)
    seen.put("vendor", f"vendor_id or CPU implementer in {_CPUINFO}", vendor)
    listed = fields.get("flags") or fields.get("Features")
    if listed is None:
        seen.put("flags", f"{_CPUINFO} does not list any", None)
        seen.put("level", f"{_CPUINFO} does not list flags", None)
        return
    flags = frozenset(listed.split())
    seen.put("flags", f"flags in {_CPUINFO}", tuple(sorted(flags & names.flags)))
    level = None
    if "flags" in fields:
        level = "x86-64"
        for name, needed in names.levels.items():
            if not needed <= flags:
                break
            level = name
    seen.put("level", f"flags in {_CPUINFO}" if level else "only x86-64 processors have levels", level)


def _allowed(access: Access) -> int | None:
    lines = (access.peek("/proc/self/status") or "").splitlines()
    listed = next((line.partition(":")[2] for line in lines if line.startswith("Cpus_allowed_list")), None)
    return len(expand_list(listed)) if listed else None
