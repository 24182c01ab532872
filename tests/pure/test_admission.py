"""How much may run at once: what was measured beats what was declared, which beats a guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.records import Metrics
from axletree.plan.admission import (
    DEFAULT_JOB,
    DEFAULT_STAGE,
    MIB,
    Budget,
    Cost,
    cost_of,
    fits,
    give_back,
    job_memory,
    most,
    take,
)
from axletree.recipe.target import TargetResources

GIB = 1024 * MIB
MACHINE = Budget(cores=16, slots=16, memory=32 * GIB, disk=100 * GIB)
NOTHING_KNOWN = TargetResources()
DECLARED = TargetResources(memory=3 * GIB, memory_per_job=2 * GIB, disk=GIB)
MEASURED = Metrics(wall=60.0, peak_memory=GIB, peak_process=500 * MIB)


def cost(
    resources: TargetResources = NOTHING_KNOWN,
    *,
    compiles: bool = True,
    last: Metrics | None = None,
    free: Budget = MACHINE,
) -> Cost:
    return cost_of(resources, compiles=compiles, last=last, machine=MACHINE, free=free)


def test_memory_of_a_job_measured_declared_guessed() -> None:
    assert job_memory(NOTHING_KNOWN, MEASURED) == int(500 * MIB * 1.15)
    assert job_memory(DECLARED, Metrics(peak_process=4 * GIB)) == int(4 * GIB * 1.15)
    assert job_memory(DECLARED, None) == job_memory(DECLARED, Metrics(wall=1.0)) == 2 * GIB
    assert job_memory(NOTHING_KNOWN, None) == DEFAULT_JOB


def test_a_run_out_of_the_compiler_cache_does_not_make_a_job_look_small() -> None:
    assert job_memory(DECLARED, MEASURED) == 2 * GIB
    after = most(Metrics(wall=2.0, peak_process=40 * MIB, peak_memory=2 * GIB, jobs=2), MEASURED)
    assert after == Metrics(wall=2.0, peak_process=500 * MIB, peak_memory=2 * GIB, jobs=2)
    assert most(MEASURED, None) == MEASURED


def test_memory_of_a_stage_without_compilers_measured_declared_guessed() -> None:
    assert cost(DECLARED, compiles=False, last=MEASURED).memory == int(GIB * 1.15)
    assert cost(DECLARED, compiles=False).memory == 3 * GIB
    assert cost(compiles=False).memory == DEFAULT_STAGE
    assert cost(compiles=False, last=MEASURED).jobs == 1


def test_memory_decides_how_many_jobs() -> None:
    assert cost(TargetResources(memory_per_job=8 * GIB)).jobs == 4
    assert cost(TargetResources(memory_per_job=GIB)).jobs == 16
    tight = Budget(cores=16, slots=16, memory=5 * GIB, disk=GIB)
    assert cost(DECLARED, free=tight) == Cost(cores=2, memory=4 * GIB, disk=GIB, jobs=2)


def test_cores_that_others_use_are_not_free() -> None:
    assert cost(TargetResources(memory_per_job=GIB), free=Budget(cores=3, slots=0, memory=32 * GIB, disk=0)).jobs == 3


@pytest.mark.parametrize(
    "free", [Budget(cores=0, slots=0, memory=0, disk=0), Budget(cores=-4, slots=-1, memory=-GIB, disk=-GIB)]
)
def test_one_job_at_least(free: Budget) -> None:
    assert cost(DECLARED, free=free).jobs == 1


def test_more_cores_than_the_machine_has_are_all_of_them() -> None:
    wish = TargetResources(cores=64)
    assert cost(wish).cores == cost(wish, compiles=False).slots == 16


def test_cores_are_for_compilers_and_slots_for_the_rest() -> None:
    assert cost(compiles=False).cores == cost().slots == 0
    assert cost(compiles=False).slots == 1


def test_a_declared_number_of_cores_is_a_minimum() -> None:
    assert cost(TargetResources(cores=8, memory_per_job=16 * GIB)) == Cost(cores=8, memory=32 * GIB, disk=0, jobs=2)


def test_the_memory_of_the_whole_stage_counts_where_it_is_more_than_that_of_its_jobs() -> None:
    assert cost(TargetResources(memory=20 * GIB, memory_per_job=GIB)).memory == 20 * GIB


@pytest.mark.parametrize(
    ("wanted", "does"),
    [
        (Cost(cores=16, memory=32 * GIB, disk=100 * GIB), True),
        (Cost(cores=17, memory=0, disk=0), False),
        (Cost(slots=17, memory=0, disk=0), False),
        (Cost(cores=1, memory=32 * GIB + 1, disk=0), False),
        (Cost(cores=1, memory=0, disk=100 * GIB + 1), False),
    ],
)
def test_what_fits(wanted: Cost, does: bool) -> None:  # noqa: FBT001
    assert fits(wanted, MACHINE) is does


def test_a_full_disk_stops_only_what_writes() -> None:
    """One stage may take more than there was, since it ran alone; those that ask for no room go on beside others."""
    full = Budget(cores=4, slots=4, memory=GIB, disk=-GIB)
    assert fits(Cost(cores=1, memory=MIB, disk=0), full)
    assert not fits(Cost(cores=1, memory=MIB, disk=1), full)


def test_disk_stays_taken_and_the_rest_comes_back() -> None:
    one = Cost(cores=2, slots=1, memory=GIB, disk=GIB)
    after = give_back(take(MACHINE, one), one)
    assert after == Budget(cores=16, slots=16, memory=32 * GIB, disk=99 * GIB)


SIZES = st.integers(0, 64 * GIB)


@given(
    cores=st.integers(1, 64),
    memory=SIZES,
    free_cores=st.integers(-8, 64),
    free_memory=st.integers(-GIB, 64 * GIB),
    wish=st.builds(
        TargetResources, cores=st.integers(1, 99), memory=st.none() | SIZES, memory_per_job=st.none() | SIZES
    ),
    last=st.none() | st.builds(Metrics, peak_memory=SIZES, peak_process=SIZES),
    compiles=st.booleans(),
)
def test_a_cost_is_never_more_jobs_than_cores_and_more_than_one_job_only_if_all_fit(
    cores: int,
    memory: int,
    free_cores: int,
    free_memory: int,
    wish: TargetResources,
    last: Metrics | None,
    compiles: bool,  # noqa: FBT001
) -> None:
    machine = Budget(cores=cores, slots=4, memory=memory, disk=0)
    free = Budget(cores=min(free_cores, cores), slots=4, memory=min(free_memory, memory), disk=0)
    found = cost_of(wish, compiles=compiles, last=last, machine=machine, free=free)
    assert 1 <= found.jobs <= max(found.cores, found.slots)
    assert found.cores <= cores
    assert found.slots <= 4
    if found.jobs > 1:
        assert found.jobs <= free.cores
        assert found.jobs * job_memory(wish, last) <= free.memory
