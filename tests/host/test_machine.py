"""What the machine has: limits of containers count, and cached files do not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from axletree.host import cgroups as groups
from axletree.host import machine
from axletree.host.cgroups import core_quota, memory_groups

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1024**3


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cgroup and the one above it, of which we are a part; tests write their files."""
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.setattr(groups, "group_folders", lambda: [(inner, ""), (inner.parent, "")])
    return inner


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_budget_is_within_the_machine(tmp_path: Path) -> None:
    found = machine.budget(tmp_path)
    assert 1 <= found.cores <= len(os.sched_getaffinity(0))
    assert found.slots == found.cores
    assert 0 < found.memory < psutil.virtual_memory().total
    assert found.disk > 0


def test_memory_is_what_is_left_below_the_tightest_limit(cgroups: Path, tmp_path: Path) -> None:
    write(cgroups, memory__max="max\n", memory__current=f"{3 * GIB}\n")
    write(cgroups.parent, memory__max=f"{4 * GIB}\n", memory__current=f"{3 * GIB}\n")
    assert memory_groups(groups.group_folders()) == [(GIB, 4 * GIB)]
    assert machine.budget(tmp_path).memory <= GIB


def test_memory_in_use_is_that_below_the_tightest_limit(cgroups: Path) -> None:
    write(cgroups, memory__max=f"{GIB}\n", memory__current=f"{GIB // 4}\n")
    assert machine.memory() == (GIB // 4, GIB)


def test_cached_files_are_not_in_the_way(cgroups: Path) -> None:
    write(cgroups, memory__max=f"{4 * GIB}", memory__current=f"{4 * GIB}")
    write(cgroups, memory__stat=f"anon {GIB}\nfile {3 * GIB}\ninactive_file {2 * GIB}\nactive_file {GIB}\n")
    assert memory_groups(groups.group_folders()) == [(2 * GIB, 4 * GIB)]


def test_more_is_used_than_the_limit_allows(cgroups: Path) -> None:
    write(cgroups, memory__max=f"{GIB}", memory__current=f"{2 * GIB}")
    assert memory_groups(groups.group_folders()) == [(0, GIB)]


def test_version_1(cgroups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = cgroups.parent / "cpu"
    cpu.mkdir()
    write(cgroups, memory__limit_in_bytes=f"{4 * GIB}", memory__usage_in_bytes=f"{3 * GIB}")
    write(cgroups, memory__stat=f"inactive_file 1\ntotal_inactive_file {GIB}\n")
    write(cgroups.parent, memory__limit_in_bytes="9223372036854771712", memory__usage_in_bytes="1")
    write(cpu, cpu__cfs_quota_us="150000", cpu__cfs_period_us="100000")
    folders = [(cgroups, "memory"), (cgroups.parent, "memory"), (cpu, "cpu,cpuacct"), (cpu, "cpuset")]
    monkeypatch.setattr(groups, "group_folders", lambda: folders)
    assert memory_groups(groups.group_folders()) == [(2 * GIB, 4 * GIB)]
    assert core_quota(groups.group_folders()) == 1.5
    assert machine.usable_cores() == min(2, len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", None), ("50000 100000", 1), ("100000 100000", 1), ("150000 100000", 2)]
)
def test_a_quota_is_rounded_up(cgroups: Path, quota: str, cores: int | None) -> None:
    write(cgroups, cpu__max=quota)
    have = len(os.sched_getaffinity(0))
    assert machine.usable_cores() == min(have, cores or have)


@pytest.mark.usefixtures("cgroups")
def test_without_limits_there_are_none() -> None:
    assert memory_groups(groups.group_folders()) == []
    assert core_quota(groups.group_folders()) is None
    assert machine.usable_cores() == len(os.sched_getaffinity(0))


def test_our_own_cgroups_are_found() -> None:
    if not os.path.exists("/proc/self/cgroup"):  # noqa: PTH110 (nothing else here needs pathlib)
        pytest.skip("no cgroups")
    folders = groups.group_folders()
    assert all(str(folder).startswith("/sys/fs/cgroup") for folder, _ in folders)


def test_cores_that_others_were_given_are_not_ours() -> None:
    """As after ``taskset -c N``."""
    core = min(os.sched_getaffinity(0))
    script = (
        f"import os; os.sched_setaffinity(0, {{{core}}}); from axletree.host.machine import *; print(usable_cores())"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "1\n"


def test_facts_are_stable_and_texts() -> None:
    """They enter the keys of tests: one that changes by itself would run them each time."""
    facts = machine.test_facts()
    assert facts == machine.test_facts()
    assert set(facts) == {"machine", "processor", "libc", "kernel", "gpus"}
    assert facts["machine"] == os.uname().machine
    assert "." not in facts["kernel"]


def test_the_summary_has_no_name_of_this_machine() -> None:
    words = machine.summary()
    assert set(words) == {"system", "processor", "memory", "kernel"}
    assert not any(os.uname().nodename in word for word in words.values())
