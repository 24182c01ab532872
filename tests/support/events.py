"""Event streams that look like real ones: a run of torch-scatter, failing runs, a run of nothing, a run of many."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from axletree.core.events import (
    Download,
    Event,
    MemorySampled,
    ProgressUnit,
    Published,
    RunFinished,
    RunStarted,
    StageFinished,
    StagePlanned,
    StageProgress,
    StageStarted,
    Status,
)
from axletree.core.findings import Finding
from axletree.core.records import Metrics, StageRecord
from axletree.core.values import Digest, Key, StageId, digest_of, key_of
from axletree.plan.actions.pack import PackedWheel, WheelParameters
from axletree.plan.actions.packages import Described, TreePart
from axletree.plan.actions.spec import Facts, Parameters
from axletree.plan.actions.test import ClientTestFacts, ClientTestParameters
from axletree.view.state import Folding
from support.requests import ingredients_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.view.state import RunView

START = 1_790_000_000.0
VARIANT = "py311-cpu-torch2.13.0"
WHEEL = "torch_scatter-2.1.2+torch.2.13.cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
INDEX = "torch-2.13/cpu/simple/torch-scatter"
LOGS = "/cache/axletree/logs"
CAUSE = (
    "csrc/cpu/scatter_cpu.cpp:51:17: error: 'AT_DISPATCH_ALL_TYPES_AND2' was not declared in this scope",
    "   51 |                 AT_DISPATCH_ALL_TYPES_AND2(at::ScalarType::Half, src.scalar_type(), [&] {",
    "      |                 ^~~~~~~~~~~~~~~~~~~~~~~~~~",
)


@dataclass(frozen=True)
class Script:
    """What a stage does in a made-up run."""

    id: str
    action: str
    needs: tuple[str, ...] = ()
    begin: float = 0.0
    wall: float = 1.0
    peak: int = 60_000_000
    jobs: int = 1
    steps: tuple[tuple[str, int | None, int | None], ...] = ()
    status: Status = "done"
    message: str | None = None
    cause: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    variants: tuple[str, ...] = (VARIANT,)
    why: tuple[str, ...] = ("it has not run yet",)
    estimate: float | None = None
    facts: Facts = field(default_factory=Facts)


def v(name: str, variant: str = VARIANT) -> str:
    return f"{name}[{variant}]"


OBJECTS = [
    f"csrc/{name}.cpp"
    for name in ("scatter", "segment_csr", "segment_coo", "version", "cpu/scatter_cpu", "cpu/segment")
]
COMPILE_STEPS = (
    *((f"[{i + 1}/6] c++ -c {name}", i + 1, 6) for i, name in enumerate(OBJECTS)),
    ("linking _scatter_cpu.so", None, None),
)
DOWNLOAD = tuple(
    ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", i * 19_000_000, 190_000_000) for i in range(1, 11)
)
TO_FETCH = (
    Download(filename="torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", size=190_318_226),
    Download(filename="numpy-2.3.5-cp311-cp311-manylinux_2_28_x86_64.whl", size=16_812_004),
    Download(filename="sympy-1.14.0-py3-none-any.whl", size=6_299_353),
    Download(filename="networkx-3.6-py3-none-any.whl", size=2_030_112),
    Download(filename="setuptools-80.9.0-py3-none-any.whl", size=1_201_486),
    Download(filename="torch_scatter-2.1.2.tar.gz", size=108_000),
    Download(filename="filelock-3.20.0-py3-none-any.whl"),
)
AUDIT = (
    Finding(
        rule="dist/needed-provided",
        severity="info",
        where=f"{WHEEL}: torch_scatter/_scatter_cpu.so",
        message="libtorch_cpu.so, libc10.so and libtorch.so come from torch, as the recipe declares",
        evidence=("NEEDED libtorch_cpu.so", "NEEDED libc10.so", "NEEDED libtorch.so"),
    ),
    Finding(
        rule="dist/rpath-outside",
        severity="warning",
        where=f"{WHEEL}: torch_scatter/_version_cpu.so",
        message="RUNPATH names a folder of the build machine",
        fix="set `rpath = []` for the package, or let the build not write one",
        evidence=("DT_RUNPATH /usr/local/lib",),
    ),
    Finding(
        rule="dist/glibc-floor",
        severity="info",
        where=WHEEL,
        message="the highest glibc symbol is GLIBC_2.17, the tag says 2.28",
        evidence=("memcpy@GLIBC_2.14", "clock_gettime@GLIBC_2.17"),
    ),
)
PACKED = PackedWheel(filename=WHEEL, size=331_284, sha256=digest_of(WHEEL.encode()))

GREEN = (
    Script("fetch", "fetch", (), 0.1, 0.8, 31_000_000, steps=(("torch_scatter-2.1.2.tar.gz", 108_000, 108_000),)),
    Script("patch", "patch", ("fetch",), 1.0, 0.1, 30_000_000),
    Script(v("environment:build"), "environment", (), 0.1, 24.0, 410_000_000, steps=DOWNLOAD),
    Script(v("environment:test"), "environment", (), 0.2, 29.0, 430_000_000, steps=DOWNLOAD),
    Script(
        v("build"),
        "build",
        ("patch", v("environment:build")),
        24.3,
        96.0,
        2_950_000_000,
        2,
        COMPILE_STEPS,
        estimate=92.0,
        findings=(
            Finding(
                rule="logs/deprecated-api",
                severity="warning",
                where="csrc/cpu/reducer.h:17",
                message="Tensor.type() is deprecated and goes in a later torch",
                fix="use Tensor.scalar_type()",
            ),
        ),
    ),
    Script(v("install:build"), "install", (v("build"),), 120.5, 0.6, 48_000_000),
    Script(
        v("pack:torch-scatter"),
        "pack",
        (v("install:build"),),
        121.2,
        0.4,
        52_000_000,
        facts=PACKED,
    ),
    Script(v("audit:torch-scatter"), "audit", (v("pack:torch-scatter"),), 121.7, 0.5, 55_000_000, findings=AUDIT),
    Script(v("index:torch-2.13/cpu"), "index", (v("audit:torch-scatter"),), 122.3, 0.1, 40_000_000),
    *(
        Script(
            v(f"test:operators:{installer}"),
            "test",
            (v("index:torch-2.13/cpu"), v("environment:test")),
            122.5,
            wall,
            peak,
            facts=ClientTestFacts(installer=installer, installed={}, passed=36, failed=0, skipped=2),
            steps=(("installing", None, None), ("python -m pytest -q test_operators.py", None, None)),
        )
        for installer, wall, peak in (("pip", 38.0, 910_000_000), ("uv", 29.0, 880_000_000))
    ),
)


def play(
    scripts: tuple[Script, ...],
    *,
    downloads: tuple[Download, ...] = (),
    recipe: str = "torch-scatter",
    variants: tuple[str, ...] = (VARIANT,),
) -> tuple[Event, ...]:
    """All events of a run in time order, without the published files."""
    planned = tuple(
        StagePlanned(
            stage=StageId(s.id),
            action=s.action,
            needs=tuple(StageId(need) for need in s.needs),
            variants=s.variants,
            cached=s.status == "cached" and not s.why,
            why=s.why,
            estimate=s.estimate,
        )
        for s in scripts
    )
    events: list[Event] = []
    for script in scripts:
        events += _stage(script)
    events.sort(key=lambda event: event.time)
    wall = max((event.time for event in events), default=START) - START + 0.1
    counts = {status: sum(s.status == status for s in scripts) for status in ("done", "cached", "failed", "blocked")}
    cancelled = any(s.status == "cancelled" for s in scripts)
    finish = RunFinished(
        time=START + wall,
        status="cancelled" if cancelled else "failed" if counts["failed"] else "done",
        ran=counts["done"],
        cached=counts["cached"],
        failed=counts["failed"],
        blocked=counts["blocked"],
        wall=wall,
    )
    return (
        RunStarted(time=START, recipe=recipe, variants=variants, stages=planned, downloads=downloads),
        *events,
        finish,
    )


def _stage(s: Script) -> list[Event]:
    begin, end = START + s.begin, START + s.begin + s.wall
    stage, key = StageId(s.id), key_of(s.id)
    if s.status in ("cached", "blocked"):
        tree = _tree(s) if s.status == "cached" else None
        return [StageFinished(time=begin, stage=stage, status=s.status, key=key, tree=tree, message=s.message)]
    log = f"{LOGS}/{key[:16]}.log"
    events: list[Event] = [StageStarted(time=begin, stage=stage, key=key, jobs=s.jobs, log=log)]
    for number, (text, done, total) in enumerate(s.steps):
        at = begin + s.wall * (number + 1) / (len(s.steps) + 1)
        unit: ProgressUnit = "bytes" if s.action in ("fetch", "environment") else "steps"
        events.append(StageProgress(time=at, stage=stage, message=text, done=done, total=total, unit=unit))
    count = min(120, max(1, int(s.wall / 0.5)))
    for number in range(count):
        share = (number + 0.5) / count
        level = 0.35 + 0.65 * abs(math.sin(3.1 * share + 2.3 * math.sin(9 * share)))
        events.append(
            MemorySampled(time=begin + s.wall * share, stage=stage, memory=int(s.peak * level), processes=1 + s.jobs)
        )
    events.append(
        StageFinished(
            time=end,
            stage=stage,
            status=s.status,
            key=key,
            tree=_tree(s) if s.status == "done" else None,
            metrics=metrics(s),
            log=log,
            message=s.message,
            cause=s.cause,
            findings=s.findings,
        )
    )
    return events


def _tree(s: Script) -> Digest:
    return Digest(hashlib.sha256(f"tree {s.id}".encode()).hexdigest())


def metrics(s: Script) -> Metrics:
    return Metrics(
        wall=s.wall, cpu=s.wall * s.jobs * 0.94, peak_memory=s.peak, peak_process=s.peak // (s.jobs + 1), jobs=s.jobs
    )


def records(scripts: tuple[Script, ...]) -> dict[StageId, StageRecord]:
    """What the store holds of the stages that have a result."""
    return {
        StageId(s.id): StageRecord(
            stage=StageId(s.id),
            key=Key(key_of(s.id)),
            tree=_tree(s),
            ingredients=ingredients_of(_parameters(s), action=s.action),
            findings=s.findings,
            facts=msgspec.to_builtins(s.facts),
            metrics=metrics(s),
            finished_at=START + s.begin + s.wall,
        )
        for s in scripts
        if s.status in ("done", "cached")
    }


def parameters(scripts: tuple[Script, ...]) -> dict[StageId, Parameters]:
    """What the plan asks of the stages."""
    return {StageId(s.id): _parameters(s) for s in scripts}


def _parameters(s: Script) -> Parameters:
    parts = s.id.partition("[")[0].split(":")
    if s.action == "pack":
        version = "2.1.2+torch.2.13.cpu" if parts[1] == "torch-scatter" else "1.0"
        return WheelParameters(
            package=Described(name=parts[1], version=version, summary=""),
            part=TreePart(package=parts[1], siblings={}),
            compressor="",
            generator="",
            level=6,
            policy=None,
        )
    if s.action == "test":
        installer: Literal["pip", "uv"] = "pip" if parts[2] == "pip" else "uv"
        return ClientTestParameters(installer=installer, client={"pip": "26.1", "uv": "0.11.2"}[installer], packages=())
    return Parameters()


def published(*, fresh: bool, time: float) -> tuple[Event, ...]:
    """The files of the output folder."""
    return tuple(
        Published(time=time, path=f"{INDEX}/{name}", size=size, sha256=digest_of(name.encode()), fresh=fresh)
        for name, size in (
            (WHEEL, 331_284),
            (f"{WHEEL}.metadata", 2_114),
            ("index.html", 812),
            ("index.json", 1_240),
        )
    )


def green_run() -> tuple[Event, ...]:
    """Everything is built for the first time, and works."""
    events = play(GREEN, downloads=TO_FETCH)
    head, last = events[:-1], events[-1]
    return (*head, *published(fresh=True, time=last.time), last)


def noop_run() -> tuple[Event, ...]:
    """The same again: all is in the store."""
    scripts = noop_scripts()
    head, last = play(scripts)[:-1], play(scripts)[-1]
    return (*head, *published(fresh=False, time=last.time), last)


def noop_scripts() -> tuple[Script, ...]:
    return tuple(changed(s, status="cached", begin=0.05, wall=0.0, why=()) for s in GREEN)


def changed(script: Script, **fields: Any) -> Script:
    return Script(**{**script.__dict__, **fields})


def failing_scripts() -> tuple[Script, ...]:
    """The sources come from the store, a compile error stops the build, what needs it is not reached."""
    scripts = []
    for s in GREEN:
        if s.id in ("fetch", v("environment:build")):
            scripts.append(changed(s, status="cached", begin=0.05, wall=0.0, why=()))
        elif s.id == "patch":
            scripts.append(
                changed(s, status="cached", begin=0.3, wall=0.0, why=("the text of 0001-fix.patch changed",))
            )
        elif s.id == v("build"):
            scripts.append(
                changed(
                    s,
                    begin=0.5,
                    wall=41.0,
                    status="failed",
                    steps=COMPILE_STEPS[:4],
                    message="the compiler reports 1 error",
                    cause=CAUSE,
                    findings=(),
                    why=("source: the tree of patch changed", "env: CFLAGS changed from '' to '-O1'"),
                )
            )
        elif s.id == v("environment:test"):
            scripts.append(s)
        else:
            scripts.append(changed(s, status="blocked", begin=41.6, wall=0.0, message=f"{v('build')} failed"))
    return tuple(scripts)


def failing_run() -> tuple[Event, ...]:
    return play(failing_scripts())


def cancelled_run() -> tuple[Event, ...]:
    """Ctrl-C while the extension compiles."""
    scripts = []
    for s in GREEN:
        if s.begin + s.wall < 40:
            scripts.append(s)
        elif s.id == v("build"):
            scripts.append(changed(s, status="cancelled", wall=20.0, steps=COMPILE_STEPS[:2], findings=()))
        else:
            scripts.append(changed(s, status="cancelled", begin=44.4, wall=0.0))
    events = [
        event
        for event in play(tuple(scripts))
        # What never started only ends.
        if not (
            isinstance(event, StageStarted | StageProgress | MemorySampled)
            and event.stage in {s.id for s in scripts if s.begin == 44.4}
        )
    ]
    return tuple(
        msgspec.structs.replace(event, keeps="folder")
        if isinstance(event, StageStarted) and event.stage == v("build")
        else event
        for event in events
    )


def fold(events: Iterable[Event]) -> RunView:
    """The state after all of some events."""
    folding = Folding()
    for event in events:
        folding.take(event)
    return folding.view
