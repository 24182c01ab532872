"""A plan: each stage, who shares it, whether it runs, why, and how long it took last time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.events import Download
from axletree.core.findings import Finding
from axletree.core.values import StageId

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from axletree.core.events import StagePlanned

PlanStatus = Literal["cached", "run", "perhaps"]
"""``perhaps``: something that it needs runs again; if that gives the same result, the store has this one already."""


class PlanTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over a plan. Times in seconds, from earlier runs."""

    stages: int
    cached: int
    run: int
    perhaps: int
    work: float
    """Total time of the stages to run, if known; a ``perhaps`` counts in full."""
    longest: float
    """Time of the longest chain of dependent stages, the minimum with any number of cores."""
    unknown: int
    """Stages to run whose time is not known."""


class PlanRow(msgspec.Struct, frozen=True, kw_only=True):
    """A stage with its status."""

    stage: StageId
    action: str
    status: PlanStatus
    needs: tuple[StageId, ...]
    variants: tuple[str, ...]
    why: tuple[str, ...]
    estimate: float | None


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of not sharing across some axes. Times in seconds, from earlier runs."""

    axes: tuple[str, ...]
    stages: int
    """Stages of this plan."""
    shared_stages: int
    """Stages of the plan with sharing."""
    work: float | None
    """Time of all stages together; stages that never ran count with the time of their shared stage. ``None`` if
    nothing ever ran."""
    shared_work: float | None


class TritonUse(msgspec.Struct, frozen=True, kw_only=True):
    """The triton that the source needs."""

    gpu: str
    requirement: str
    channel: str
    """The part of PyTorch's wheel index that contains it."""
    other: dict[str, str] = {}
    """Packages of the recipe that require a different one -> their requirement."""


class PlanReport(msgspec.Struct, frozen=True, kw_only=True):
    """The stages of a build: report of ``plan``."""

    recipe: str
    variants: tuple[str, ...]
    totals: PlanTotals
    stages: tuple[PlanRow, ...]
    sharing: Sharing | None = None
    """If sharing is turned off: its cost."""
    findings: tuple[Finding, ...] = ()
    """Findings before anything runs."""
    triton: tuple[TritonUse, ...] = ()
    """The triton that the source pins, if any."""
    downloads: tuple[Download, ...] = ()
    """Files to download, largest first."""


def plan_report(
    recipe: str,
    *,
    variants: Sequence[str],
    stages: Sequence[StagePlanned],
    perhaps: Collection[StageId] = (),
    sharing: Sharing | None = None,
    findings: Sequence[Finding] = (),
    triton: Sequence[TritonUse] = (),
    downloads: Sequence[Download] = (),
) -> PlanReport:
    """Put a plan's stages and their totals together.

    Args:
        recipe: Its name.
        variants: Ids of the variants that the plan is for.
        stages: In an order in which each comes after what it needs.
        perhaps: Those that run only if the result of one of their inputs really changes.
        sharing: What it costs that sharing was switched off, if it was.
        findings: What is to be said before anything runs.
        triton: What the source pins, where it does.
        downloads: What would be fetched.
    """
    rows = tuple(
        PlanRow(
            stage=stage.stage,
            action=stage.action,
            status="cached" if stage.cached else "perhaps" if stage.stage in perhaps else "run",
            needs=stage.needs,
            variants=stage.variants,
            why=stage.why,
            estimate=stage.estimate,
        )
        for stage in stages
    )
    return PlanReport(
        recipe=recipe,
        variants=tuple(variants),
        totals=_totals(rows),
        stages=rows,
        sharing=sharing,
        findings=tuple(findings),
        triton=tuple(triton),
        downloads=tuple(downloads),
    )


def _totals(rows: Sequence[PlanRow]) -> PlanTotals:
    ends: dict[StageId, float] = {}
    work = 0.0
    for row in rows:
        wall = (row.estimate or 0.0) if row.status != "cached" else 0.0
        work += wall
        ends[row.stage] = wall + max((ends.get(need, 0.0) for need in row.needs), default=0.0)
    counts = {status: sum(row.status == status for row in rows) for status in ("cached", "run", "perhaps")}
    return PlanTotals(
        stages=len(rows),
        cached=counts["cached"],
        run=counts["run"],
        perhaps=counts["perhaps"],
        work=work,
        longest=max(ends.values(), default=0.0),
        unknown=sum(row.status != "cached" and row.estimate is None for row in rows),
    )
