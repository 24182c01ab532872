"""How much may run at once: admission by cores, memory and disk, and the number of jobs from memory.

Memory decides the parallelism, not the core count: a compile process that includes PyTorch's headers needs 1.6 GB, so a
machine of 64 cores and 64 GB runs 36 of them, not 64. What the recipe says of a job is a floor, since a run that found
most of its objects in the compiler cache measures next to nothing; above it, the most that was ever measured counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from axletree.core.records import Metrics
    from axletree.recipe.target import TargetResources

MIB = 1024**2
DEFAULT_JOB = 700 * MIB
"""Memory of one compile process about which nothing is known."""
DEFAULT_STAGE = 256 * MIB
"""Memory of a stage that starts no compilers and about which nothing is known."""
_HEADROOM = 1.15
"""Measured peaks are exceeded a little now and then: sampling misses the very top."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine has for us.

    Cores are for stages that compile; all others run in ``slots`` beside them. A download or a test that starts first
    must not leave a compile of an hour with one core less, nor wait for an hour behind it.
    """

    cores: int
    slots: int
    memory: int
    """Bytes."""
    disk: int
    """Bytes."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage takes while it runs; either cores or slots."""

    cores: int = 0
    slots: int = 0
    memory: int
    disk: int
    jobs: int = 1


def job_memory(resources: TargetResources, last: Metrics | None) -> int:
    """Bytes that one more job of a stage costs: the larger one of measured and declared, else a guess."""
    measured = int(last.peak_process * _HEADROOM) if last is not None else 0
    return max(measured, resources.memory_per_job or 0) or DEFAULT_JOB


def most(now: Metrics, before: Metrics | None) -> Metrics:
    """What to expect of a stage: as measured now, but with no less memory than ever before."""
    if before is None:
        return now
    return msgspec.structs.replace(
        now,
        peak_memory=max(now.peak_memory, before.peak_memory),
        peak_process=max(now.peak_process, before.peak_process),
    )


def cost_of(resources: TargetResources, *, compiles: bool, last: Metrics | None, machine: Budget, free: Budget) -> Cost:
    """What a stage takes if it starts now with ``free`` left of ``machine``.

    A compile stage takes as many jobs as free cores and free memory allow, at least one. The declared minimum of cores
    is capped by what the machine has: a wish that can never be met must not wait for ever.
    """
    disk = resources.disk or 0
    if not compiles:
        measured = int(last.peak_memory * _HEADROOM) if last is not None else 0
        return Cost(
            slots=min(resources.cores, machine.slots), memory=measured or resources.memory or DEFAULT_STAGE, disk=disk
        )
    per_job = job_memory(resources, last)
    by_memory = max(1, free.memory // per_job)
    jobs = max(1, min(free.cores, by_memory))
    return Cost(
        cores=max(jobs, min(resources.cores, machine.cores)),
        memory=max(jobs * per_job, resources.memory or 0),
        disk=disk,
        jobs=jobs,
    )


def fits(cost: Cost, free: Budget) -> bool:
    """Whether a stage may start beside what runs already; one that asks for no disk space does on a full disk too."""
    return (
        cost.cores <= free.cores
        and cost.slots <= free.slots
        and cost.memory <= free.memory
        and cost.disk <= max(free.disk, 0)
    )


def take(free: Budget, cost: Cost) -> Budget:
    """What is left after a stage started."""
    return Budget(
        cores=free.cores - cost.cores,
        slots=free.slots - cost.slots,
        memory=free.memory - cost.memory,
        disk=free.disk - cost.disk,
    )


def give_back(free: Budget, cost: Cost) -> Budget:
    """What is free after a stage ended. Its disk space stays taken until somebody looks how much is really free."""
    return Budget(
        cores=free.cores + cost.cores,
        slots=free.slots + cost.slots,
        memory=free.memory + cost.memory,
        disk=free.disk,
    )
