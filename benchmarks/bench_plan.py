"""Planning 10,000 stages: graph and keys of a made-up recipe, with nothing in the store and with everything.

``python benchmarks/bench_plan.py [--stages N] [--runs N] [--profile]``. What is measured is ``build_plan`` (targets ->
graph) and ``resolve_plan`` (graph -> keys), with a store that answers from memory; and the scheduler, for as many
stages that need nothing and must all run. Prints a Markdown table; the target is under 1 s of CPU time for graph and
keys together.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import pstats
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from measure import machine_line

from axletree.core.records import Metrics, StageRecord
from axletree.core.values import Key, StageId, digest_of
from axletree.plan.actions.fetch import FolderSource
from axletree.plan.actions.table import ACTIONS
from axletree.plan.admission import Budget
from axletree.plan.graph import Plan, build_plan
from axletree.plan.inputs import LockedEnvironment, PlanInputs
from axletree.plan.keys import Lookup, Resolved, Surroundings, resolve_plan, resolve_stage
from axletree.plan.schedule import Ended, Miss, Resolve, Scheduler, Work
from axletree.recipe.axes import expand, variant_id
from axletree.recipe.locks import LockedWheel, make_lock
from axletree.recipe.parse import parse_recipe
from axletree.recipe.target import Target, resolve

if TYPE_CHECKING:
    from axletree.recipe.model import Recipe

RECIPE = """\
name = "big"
version = "1.0"
source = { path = "src" }

[axes]
python = ["3.11", "3.12", "3.13", "3.13t", "3.14"]
gpu = ["cpu", "cu126", "cu128", "cu130", "rocm7.1"]
blas = ["mkl", "openblas"]
torch = [TORCH]

[environments.build]
axes = ["python", "gpu", "torch"]
requires = ["torch=={torch}+{gpu}", "setuptools", "numpy", "cmake", "ninja"]

[environments.test]
axes = ["python", "gpu", "torch"]
requires = ["torch=={torch}+{gpu}", "numpy", "pytest"]

[stages.lib]
action = "run"
axes = ["gpu", "blas", "torch"]
tools = ["c++", "cmake"]
env = { GPU = "{gpu}", BLAS = "{blas}" }
commands = ["cmake -S . -B build -DGPU={gpu}", "cmake --build build", "cmake --install build --prefix $AXLETREE_OUT"]

[stages.bind]
action = "build"
axes = ["python", "gpu", "blas", "torch"]
environment = "build"
inputs = ["lib"]
tools = ["c++"]

[packages.big-lib]
from = "lib"
local = "torch.{torch.minor}.{gpu}.{blas}"
index = "torch-{torch.minor}/{gpu}-{blas}"

[packages.big]
from = "bind"
local = "torch.{torch.minor}.{gpu}.{blas}"
requires = ["torch=={torch}"]
index = "torch-{torch.minor}/{gpu}-{blas}"

[tests.smoke]
packages = ["big", "big-lib"]
imports = ["big"]
"""
PER_TORCH = 434
"""Stages that one more torch release brings, about."""
WHEELS = 30
"""Wheels of each lock: a torch environment with its CUDA libraries."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--stages", type=int, default=10_000)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--profile", action="store_true")
    options = arguments.parse_args()
    recipe = parse_recipe(
        RECIPE.replace("TORCH", ", ".join(f'"2.{minor}.0"' for minor in range(-(-options.stages // PER_TORCH)))),
        filename="big.toml",
    )
    targets = tuple(resolve(recipe, variant) for variant in expand(recipe))
    inputs = _inputs(targets)
    store = _full_store(_plan(recipe, targets, inputs))
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(lambda: _resolve(_plan(recipe, targets, inputs), store))
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)
    print(machine_line())
    rows: dict[str, list[float]] = {}
    for _ in range(options.runs):
        for label, seconds in _measure_once(recipe, targets, inputs, store).items():
            rows.setdefault(label, []).append(seconds)
    _print_table(_plan(recipe, targets, inputs), rows)


def _measure_once(
    recipe: Recipe, targets: tuple[Target, ...], inputs: PlanInputs, store: dict[Key, StageRecord]
) -> dict[str, float]:
    times = [time.process_time()]
    plan = _plan(recipe, targets, inputs)
    times.append(time.process_time())
    _resolve(plan, {})
    times.append(time.process_time())
    found = _resolve(plan, store)
    times.append(time.process_time())
    _schedule(len(plan.stages))
    times.append(time.process_time())
    if found != len(plan.stages):
        raise RuntimeError(f"{found} of {len(plan.stages)} stages were found in the full store")
    graph, empty, full, schedule = (after - before for before, after in itertools.pairwise(times))
    return {
        "graph": graph,
        "keys, empty store": empty,
        "keys, full store": full,
        "**graph and keys, empty store**": graph + empty,
        "**graph and keys, full store**": graph + full,
        "scheduling, nothing in the store, no stage needs another": schedule,
    }


def _plan(recipe: Recipe, targets: tuple[Target, ...], inputs: PlanInputs) -> Plan:
    return build_plan(targets, inputs, label=lambda values: variant_id(values, recipe.axes))


def _resolve(plan: Plan, store: dict[Key, StageRecord]) -> int:
    resolved = resolve_plan(plan, ACTIONS.__getitem__, _SURROUNDINGS, _lookup_in(store))
    return sum(each.record is not None for each in resolved.values())


def _schedule(count: int) -> None:
    """Start and end that many independent stages: every second one compiles, all differ in how long they took."""
    works = {
        name: Work(id=name, needs=(), compiles=number % 2 == 0, last=Metrics(wall=1.0 + number * 7919 % count))
        for number, name in enumerate(StageId(f"stage-{number}") for number in range(count))
    }
    scheduler = Scheduler(works, Budget(cores=16, slots=16, memory=64 << 30, disk=1 << 40))
    queue = deque(scheduler.begin())
    while queue:
        instruction = queue.popleft()
        signal = Miss(instruction.stage) if isinstance(instruction, Resolve) else Ended(instruction.stage, ok=True)
        queue.extend(scheduler.handle(signal))
    if not scheduler.finished:
        raise RuntimeError("the scheduler stopped before all was done")


_SURROUNDINGS = Surroundings(
    tools={"c++": {"version": "c++ 14.2.0", "target": "x86_64-linux-gnu"}, "cmake": {"version": "cmake 4.2"}},
    host={"machine": "x86_64", "processor": "made up"},
    epoch=315532800,
)


def _inputs(targets: tuple[Target, ...]) -> PlanInputs:
    """Locks of a realistic size for each environment, all different."""
    environments: dict[str, LockedEnvironment] = {}
    for target in targets:
        for each in target.environments:
            if each.lock in environments:
                continue
            wheels = [
                LockedWheel(
                    name=f"package-{number}",
                    version=f"1.{number}",
                    filename=f"package_{number}-1.{number}-cp311-cp311-manylinux_2_28_x86_64.whl",
                    size=1_000_000 + number,
                    sha256=digest_of(f"{each.lock} {number}".encode()),
                )
                for number in range(WHEELS)
            ]
            lock = make_lock(each.requires, python=each.python, platform="linux-x86_64", wheels=wheels)
            environments[each.lock] = LockedEnvironment(python={"version": each.python, "abi": "cp"}, lock=lock)
    return PlanInputs(
        source=FolderSource(tree=digest_of(b"source")),
        environments=environments,
        compressor="zlib 1.3",
        policy=digest_of(b"policy"),
        driver_libraries=("libcuda.so.*",),
        clients={"pip": "26.0", "uv": "0.9"},
    )


def _lookup_in(store: dict[Key, StageRecord]) -> Lookup:
    return lambda key, _facts: store.get(key)


def _full_store(plan: Plan) -> dict[Key, StageRecord]:
    store: dict[Key, StageRecord] = {}
    resolved: dict[StageId, Resolved] = {}
    lookup = _lookup_in(store)
    for stage in plan.stages.values():
        spec, inputs = ACTIONS[stage.action], {name: resolved[needed] for name, needed in stage.needs.items()}
        new = resolve_stage(stage, spec, _SURROUNDINGS, inputs=inputs, lookup=lookup)
        store[new.key] = StageRecord(
            stage=stage.id,
            key=new.key,
            tree=digest_of(new.key.encode()),
            ingredients=new.ingredients,
            metrics=Metrics(wall=1.0),
        )
        resolved[stage.id] = resolve_stage(stage, spec, _SURROUNDINGS, inputs=inputs, lookup=lookup)
    return store


def _print_table(plan: Plan, rows: dict[str, list[float]]) -> None:
    kinds = Counter(stage.action for stage in plan.stages.values())
    print(f"\n{len(plan.stages):,} stages for {len(plan.variants):,} variants", end=" ")
    print(f"({', '.join(f'{count:,} {kind}' for kind, count in kinds.items())}); least of all runs\n")
    print("| | CPU s |\n| --- | ---: |")
    for label, seconds in rows.items():
        print(f"| {label} | {min(seconds):.2f} |")


if __name__ == "__main__":
    main()
