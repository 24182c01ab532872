"""Rules about memory and limits: will it run out in the middle?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Case, Found, Rule
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
            yield Found(where="memory", message=message)


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
    fix = f"$ export MAX_JOBS={fits}\n`axletree build` needs no such limit: it starts what memory allows"
    yield Found(where="memory", message=message, fix=fix)


def _limit(facts: Examined) -> Iterator[Found]:
    memory = facts.host.memory
    if memory.limit is not None and memory.total is not None and memory.limit < memory.total // 2:
        message = (
            f"a control group allows {format_bytes(memory.limit)} of the machine's {format_bytes(memory.total)}, "
            "but ninja, make and CMake count all of the machine's cores"
        )
        yield Found(where="cgroup", message=message)


def _killed(facts: Examined) -> Iterator[Found]:
    kills = facts.host.memory.oom_kills
    if kills:
        where = (
            "in this control group"
            if "since boot" not in facts.host.memory.sources.get("oom_kills", "")
            else "since boot"
        )
        yield Found(
            where="memory",
            message=f"the kernel killed {kills} process{'es' if kills > 1 else ''} {where} because memory ran out",
        )


def _overcommit(facts: Examined) -> Iterator[Found]:
    if facts.host.memory.overcommit == 2:
        message = (
            "vm.overcommit_memory is 2, so the kernel refuses the large reservations that nvcc, linkers and "
            "sanitizers make"
        )
        yield Found(where="/proc/sys/vm/overcommit_memory", message=message)


def _shm(facts: Examined) -> Iterator[Found]:
    size = facts.host.memory.shm
    if size is not None and size < 1 * GIB and facts.host.system.container not in (None, "none"):
        yield Found(
            where="shared memory",
            message=f"shared memory is limited to {format_bytes(size)}: tests that share tensors between processes "
            "fail with a bus error",
        )


def _limits(facts: Examined) -> Iterator[Found]:
    system = facts.host.system
    if system.open_files is not None and system.open_files.soft < _FEW_FILES:
        yield Found(
            where="ulimit -n",
            message=(
                f"only {system.open_files.soft} files can be open at once, but linkers open more for large projects"
            ),
            fix=f"$ ulimit -n {min(system.open_files.hard, 65536)}",
        )
    if system.address_space is not None and system.address_space.soft < 32 * GIB:
        yield Found(
            where="ulimit -v",
            message=f"a process can map only {format_bytes(system.address_space.soft)}, but GPU compilers and "
            "linkers map more memory than they use",
            fix="$ ulimit -v unlimited",
        )
    if system.stack is not None and system.stack.soft < _SMALL_STACK:
        yield Found(
            where="ulimit -s",
            message=(
                f"the stack is limited to {format_bytes(system.stack.soft)}, but compilers need more for deeply "
                "nested templates"
            ),
            fix="$ ulimit -s 8192",
        )
    if system.file_size is not None and system.file_size.soft < 4 * GIB:
        yield Found(
            where="ulimit -f",
            message=f"files are limited to {format_bytes(system.file_size.soft)}, but GPU libraries are larger",
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
        fix="free memory, raise the control group's limit, or add swap:\n$ sudo fallocate -l 8G /swapfile && sudo "
        "chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile",
        check=_too_little,
        cases=lambda: (
            Case(
                title="5 GB needed for each process, 4 GB available",
                facts=on(wish=_LARGE, memory={"available": 4 * GIB, "swap_free": 0}),
                fires=True,
            ),
            Case(
                title="a stage that needs 100 GB to link, 60 GB available",
                facts=on(wish=msgspec.structs.replace(FOR_CUDA, memory=100 * GIB)),
                fires=True,
            ),
            Case(title="60 GB available", facts=on(wish=_LARGE), fires=False),
        ),
    ),
    Rule(
        id="host/memory-for-jobs",
        severity="warning",
        title="The build would start more compilers than fit in memory",
        references=("pytorch/pytorch#49078",),
        why=(
            "The kernel kills one of them, and the log contains `Killed signal terminated program cc1plus` or no "
            "message at all."
        ),
        fix="limit the number of jobs",
        check=_jobs,
        cases=lambda: (
            Case(
                title="a laptop with 16 GB and 16 cores",
                facts=on(memory={"total": 16 * GIB, "available": 12 * GIB}),
                fires=True,
            ),
            Case(title="a MAX_JOBS value that is too high", facts=having(("MAX_JOBS", "64")), fires=True),
            Case(title="a machine with 64 GB and 16 cores", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/memory-limit",
        severity="info",
        title="A control group limits memory to far less than the machine has",
        references=("Linux, admin-guide/cgroup-v2, memory.max",),
        why="Tools that look only at the machine start too many processes. Axletree takes the limit into account.",
        fix="set the number of jobs with export MAX_JOBS=..., or raise the limit",
        check=_limit,
        cases=lambda: (
            Case(title="a limit of 8 GB on a 64 GB machine", facts=on(memory={"limit": 8 * GIB}), fires=True),
            Case(title="no limit", facts=on(), fires=False),
        ),
    ),
    Rule(
        id="host/memory-kills",
        severity="info",
        title="Processes were killed because memory ran out",
        references=("Linux, admin-guide/cgroup-v2, memory.events",),
        why="If a build failed without a message, this may be the reason.",
        fix="$ dmesg | grep -i 'killed process'\ntells which",
        check=_killed,
        cases=lambda: (
            Case(title="two", facts=on(memory={"oom_kills": 2}), fires=True),
            Case(title="none", facts=on(), fires=False),
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
            Case(title="mode 2", facts=on(memory={"overcommit": 2}), fires=True),
            Case(title="mode 1", facts=on(memory={"overcommit": 1}), fires=False),
        ),
    ),
    Rule(
        id="host/shm-small",
        severity="info",
        title="The container has little shared memory",
        references=('PyTorch, "Multiprocessing best practices"', "docker run, --shm-size"),
        why="DataLoader workers and multi-process tests use shared memory to pass tensors.",
        fix="$ docker run --ipc=host ...\nor --shm-size=8g",
        check=_shm,
        cases=lambda: (
            Case(
                title="Docker's default of 64 MB",
                facts=on(system={"container": "docker"}, memory={"shm": 64 << 20}),
                fires=True,
            ),
            Case(title="8 GB", facts=on(system={"container": "docker"}, memory={"shm": 8 * GIB}), fires=False),
        ),
    ),
    Rule(
        id="host/limits",
        severity="warning",
        title="A resource limit is too low",
        references=("getrlimit(2)",),
        why="Programs that exceed the limit fail with messages that do not mention it.",
        fix="raise the limit",
        check=_limits,
        cases=lambda: (
            Case(
                title="a limit of 256 open files",
                facts=on(system={"open_files": Limit(soft=256, hard=4096)}),
                fires=True,
            ),
            Case(
                title="a limit of 4 GB of address space",
                facts=on(system={"address_space": Limit(soft=4 * GIB, hard=UNLIMITED)}),
                fires=True,
            ),
            Case(title="usual limits", facts=on(), fires=False),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: memory, limits."""
