"""Rules about memory and limits: will it run out in the middle?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.host.part import UNLIMITED
from axletree.check.host.system import Limit
from axletree.check.rules.host.sample import FOR_CUDA, GIB, having, on
from axletree.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined

_JOB = 2 * GIB
"""What one C++ file of PyTorch or of an extension takes, where nothing better is known."""
_FEW_FILES = 1024
_SMALL_STACK = 4 << 20


def _jobs_asked(facts: Examined) -> tuple[int | None, str]:
    """How many compilers a build starts at once, and what says so."""
    for name in ("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL"):
        value = facts.host.variable(name)
        if value and value.isdigit() and int(value):
            return int(value), f"{name}={value}"
    cores = facts.host.cpu.cores
    return cores, f"{cores} cores"


def _too_little(facts: Examined) -> Iterator[Found]:
    available, swap = facts.host.memory.available, facts.host.memory.swap_free or 0
    needs = {"one compile process": facts.wish.memory_per_job, "a stage": facts.wish.memory}
    for what, need in needs.items():
        if available is not None and need is not None and available + swap < need:
            message = f"{what} needs {format_bytes(need)}, but only {format_bytes(available)} is available"
            yield Found("memory", message)


def _jobs(facts: Examined) -> Iterator[Found]:
    available, (jobs, asked) = facts.host.memory.available, _jobs_asked(facts)
    need = facts.wish.memory_per_job or _JOB
    if available is None or jobs is None or available < need or jobs * need <= available:
        return
    fits = max(1, available // need)
    message = (
        f"{asked} would start {jobs} compilers at {format_bytes(need)} each, but only {format_bytes(available)} is "
        "available"
    )
    fix = f"$ export MAX_JOBS={fits}\n`axletree build` does not need this limit: it starts only what fits in memory"
    yield Found("memory", message, fix=fix)


def _limit(facts: Examined) -> Iterator[Found]:
    memory = facts.host.memory
    if memory.limit is not None and memory.total is not None and memory.limit < memory.total // 2:
        message = (
            f"a control group limits memory to {format_bytes(memory.limit)} of the machine's "
            f"{format_bytes(memory.total)}, "
            "but ninja, make and CMake count all of the machine's cores"
        )
        yield Found("cgroup", message)


def _killed(facts: Examined) -> Iterator[Found]:
    kills = facts.host.memory.oom_kills
    if kills:
        where = (
            "in this control group"
            if "since boot" not in facts.host.memory.sources.get("oom_kills", "")
            else "since boot"
        )
        yield Found(
            "memory", f"the kernel killed {kills} process{'es' if kills > 1 else ''} {where} because memory ran out"
        )


def _overcommit(facts: Examined) -> Iterator[Found]:
    if facts.host.memory.overcommit == 2:
        message = (
            "vm.overcommit_memory is 2, so the kernel refuses the large reservations that nvcc, linkers and "
            "sanitizers make"
        )
        yield Found("/proc/sys/vm/overcommit_memory", message)


def _shm(facts: Examined) -> Iterator[Found]:
    size = facts.host.memory.shm
    if size is not None and size < 1 * GIB and facts.host.system.container not in (None, "none"):
        yield Found(
            "shared memory",
            (
                f"shared memory is limited to {format_bytes(size)}: tests that share tensors between processes "
                "fail with a bus error"
            ),
        )


def _limits(facts: Examined) -> Iterator[Found]:
    system = facts.host.system
    if system.open_files is not None and system.open_files.soft < _FEW_FILES:
        yield Found(
            "ulimit -n",
            f"only {system.open_files.soft} files can be open at once, but linkers open more for large projects",
            fix=f"$ ulimit -n {min(system.open_files.hard, 65536)}",
        )
    if system.address_space is not None and system.address_space.soft < 32 * GIB:
        yield Found(
            "ulimit -v",
            (
                f"a process can map only {format_bytes(system.address_space.soft)}, but GPU compilers and "
                "linkers map more memory than they use"
            ),
            fix="$ ulimit -v unlimited",
        )
    if system.stack is not None and system.stack.soft < _SMALL_STACK:
        yield Found(
            "ulimit -s",
            (
                f"the stack is limited to {format_bytes(system.stack.soft)}, but compilers need more for deeply "
                "nested templates"
            ),
            fix="$ ulimit -s 8192",
        )
    if system.file_size is not None and system.file_size.soft < 4 * GIB:
        yield Found(
            "ulimit -f",
            f"files are limited to {format_bytes(system.file_size.soft)}, but GPU libraries are larger",
            fix="$ ulimit -f unlimited",
        )


_LARGE = msgspec.structs.replace(FOR_CUDA, memory_per_job=5 * GIB)

RESOURCE_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="host/memory-too-little",
        severity="error",
        title="A stage needs more memory than is available",
        references=("pytorch/pytorch#49078",),
        why="The kernel kills the compiler or linker, even with a single job.",
        fix=(
            "end other processes, raise the control group's memory limit, or add swap:\n$ sudo fallocate -l 8G "
            "/swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile"
        ),
        check=_too_little,
        cases=lambda: (
            fires(
                "5 GB needed for each process, 4 GB available",
                on(wish=_LARGE, memory={"available": 4 * GIB, "swap_free": 0}),
            ),
            fires(
                "a stage that needs 100 GB to link, 60 GB available",
                on(wish=msgspec.structs.replace(FOR_CUDA, memory=100 * GIB)),
            ),
            silent("60 GB available", on(wish=_LARGE)),
        ),
    ),
    Rule(
        id="host/memory-for-jobs",
        severity="warning",
        title="The build would start more compilers than fit in memory",
        references=("pytorch/pytorch#49078",),
        why="When memory runs out, the kernel kills a compiler. The log then contains `Killed signal terminated "
        "program cc1plus`, or no message at all.",
        fix="limit the number of parallel jobs: axletree build -j N",
        check=_jobs,
        cases=lambda: (
            fires("a laptop with 16 GB and 16 cores", on(memory={"total": 16 * GIB, "available": 12 * GIB})),
            fires("a MAX_JOBS value that is too high", having(("MAX_JOBS", "64"))),
            silent("a machine with 64 GB and 16 cores", on()),
        ),
    ),
    Rule(
        id="host/memory-limit",
        severity="info",
        title="A control group limits memory to far less than the machine has",
        references=("Linux, admin-guide/cgroup-v2, memory.max",),
        why="Tools that do not know about the limit start too many processes. Axletree takes it into account.",
        fix=(
            "limit the number of jobs to what fits in that memory (export MAX_JOBS=N), or raise the control "
            "group's limit"
        ),
        check=_limit,
        cases=lambda: (
            fires("a limit of 8 GB on a 64 GB machine", on(memory={"limit": 8 * GIB})),
            silent("no limit", on()),
        ),
    ),
    Rule(
        id="host/memory-kills",
        severity="info",
        title="Processes were killed because memory ran out",
        references=("Linux, admin-guide/cgroup-v2, memory.events",),
        why="If a build failed without a message, this may be the reason.",
        fix=(
            "run fewer jobs (export MAX_JOBS=N), or add memory; to list the killed processes:\n$ dmesg | grep "
            "-i 'killed process'"
        ),
        check=_killed,
        cases=lambda: (
            fires("two", on(memory={"oom_kills": 2})),
            silent("none", on()),
        ),
    ),
    Rule(
        id="host/overcommit",
        severity="warning",
        title="The kernel does not overcommit memory",
        references=("Linux, vm/overcommit-accounting",),
        why="Large reservations fail with `cannot allocate memory` even if memory is free.",
        fix="$ sudo sysctl vm.overcommit_memory=0",
        check=_overcommit,
        cases=lambda: (
            fires("mode 2", on(memory={"overcommit": 2})),
            silent("mode 1", on(memory={"overcommit": 1})),
        ),
    ),
    Rule(
        id="host/shm-small",
        severity="info",
        title="The container has little shared memory",
        references=('PyTorch, "Multiprocessing best practices"', "docker run, --shm-size"),
        why="DataLoader workers and multi-process tests use shared memory to pass tensors.",
        fix="$ docker run --ipc=host ...\nor use --shm-size=8g",
        check=_shm,
        cases=lambda: (
            fires("Docker's default of 64 MB", on(system={"container": "docker"}, memory={"shm": 64 << 20})),
            silent("8 GB", on(system={"container": "docker"}, memory={"shm": 8 * GIB})),
        ),
    ),
    Rule(
        id="host/limits",
        severity="warning",
        title="A resource limit is too low",
        references=("getrlimit(2)",),
        why="Programs that exceed the limit fail with messages that do not mention it.",
        fix="raise the limit with ulimit",
        check=_limits,
        cases=lambda: (
            fires("a limit of 256 open files", on(system={"open_files": Limit(soft=256, hard=4096)})),
            fires(
                "a limit of 4 GB of address space", on(system={"address_space": Limit(soft=4 * GIB, hard=UNLIMITED)})
            ),
            silent("usual limits", on()),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: memory, limits."""
