"""A plan as text and as JSON: each stage, who shares it, whether it runs, why, and how long it took last time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.findings import Finding
from axletree.core.values import StageId, canonical_json
from axletree.view.tables import format_duration, plural, render_table

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from axletree.core.events import StagePlanned

PLAN_SCHEMA: Literal[1] = 1

PlanStatus = Literal["cached", "run", "perhaps"]
"""``perhaps``: something that it needs runs again; if that gives the same result, the store has this one already."""


class PlanTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over a plan. Times in seconds, from earlier runs."""

    stages: int
    cached: int
    run: int
    perhaps: int
    work: float
    """Time of all stages to run together, where it is known; a ``perhaps`` counts in full."""
    longest: float
    """Time of the longest chain of stages that wait for one another: no number of cores makes it shorter."""
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
    """What it costs that nothing is shared across some axes. Times in seconds, from earlier runs."""

    axes: tuple[str, ...]
    stages: int
    """Stages of this plan."""
    shared_stages: int
    """Stages of the plan that shares what it can."""
    work: float | None
    """Time of all stages together; a stage that never ran counts as what it would be shared with took. ``None`` where
    nothing ever ran."""
    shared_work: float | None


class TritonUse(msgspec.Struct, frozen=True, kw_only=True):
    """The triton that the source is made for."""

    gpu: str
    requirement: str
    channel: str
    """The part of PyTorch's wheel index that has it."""
    other: dict[str, str] = {}
    """Packages of the recipe that require another one -> their requirement."""


class PlanReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``axletree plan --json`` prints. Fields may be added within a schema version, never renamed."""

    recipe: str
    variants: tuple[str, ...]
    totals: PlanTotals
    stages: tuple[PlanRow, ...]
    sharing: Sharing | None = None
    """Where sharing was switched off."""
    findings: tuple[Finding, ...] = ()
    """What is to be said before anything runs."""
    triton: tuple[TritonUse, ...] = ()
    """What the source pins, where it does."""
    schema: Literal[1] = PLAN_SCHEMA


def plan_report(
    recipe: str,
    *,
    variants: Sequence[str],
    stages: Sequence[StagePlanned],
    perhaps: Collection[StageId] = (),
    sharing: Sharing | None = None,
    findings: Sequence[Finding] = (),
    triton: Sequence[TritonUse] = (),
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


def triton_lines(report: PlanReport) -> list[str]:
    """The pinned triton of each GPU world, and which packages require another."""
    lines: list[str] = []
    for use in report.triton:
        lines.append(f"triton for {use.gpu}: {use.requirement} (pinned by the source, index whl/{use.channel})")
        lines += [f"  warning: package {package} requires {text}" for package, text in use.other.items()]
    return lines


def plan_json(report: PlanReport) -> str:
    """The plan as one JSON document, keys sorted."""
    return canonical_json(report).decode()


def plan_text(report: PlanReport, *, width: int, explain: bool = False) -> str:
    """The plan as a table.

    Args:
        report: The plan.
        width: Columns of the terminal.
        explain: All reasons of each stage, one a line, instead of the first; and who shares what some share.
    """
    if report.totals.cached == report.totals.stages:
        return f"{report.recipe}: nothing to run: {plural(report.totals.stages, 'stage')} in the store"
    several = len(report.variants) > 1
    headers = ["STAGE", "STATUS", *(["VARIANTS"] if several else []), "LAST TIME", "WHY"]
    rows = []
    for row in report.stages:
        estimate = "" if row.estimate is None else format_duration(row.estimate)
        shared = [_sharing(row.variants, len(report.variants), explain=explain)] if several else []
        rows.append([row.stage, row.status, *shared, estimate, _why(row, explain=explain)])
    table = render_table(headers, rows, width=width, right=(len(headers) - 2,))
    return f"{table}\n\n{_totals_text(report)}"


def _sharing(variants: Sequence[str], total: int, *, explain: bool) -> str:
    count = f"all {total}" if len(variants) == total else f"{len(variants)} of {total}"
    return "\n".join([count, *variants]) if explain and 1 < len(variants) < total else count


def _why(row: PlanRow, *, explain: bool) -> str:
    reasons = [*row.why]
    if row.status == "perhaps" and not reasons:
        reasons = ["if an input changes"]
    if explain or len(reasons) < 2:
        return "\n".join(reasons)
    return f"{reasons[0]} (+{len(reasons) - 1} more)"


def _saved(report: PlanReport) -> str:
    """The time that sharing saves, as far as it is known: what is done once would be done for each variant."""
    saved = sum((row.estimate or 0.0) * (len(row.variants) - 1) for row in report.stages)
    return f", {format_duration(saved)} of work" if saved >= 1 else ""


def _unshared_text(sharing: Sharing) -> str:
    more = sharing.stages - sharing.shared_stages
    text = f"without sharing across {' and '.join(sharing.axes)}: {plural(sharing.stages, 'stage')}, {more:,} more"
    if sharing.work is None or sharing.shared_work is None:
        return text
    now, before = format_duration(sharing.work), format_duration(sharing.shared_work)
    return f"{text}; last time: {now} of work instead of {before}"


def _totals_text(report: PlanReport) -> str:
    totals = report.totals
    counts = [f"{totals.run:,} to run", f"{totals.cached:,} in the store"]
    if totals.perhaps:
        counts.insert(1, f"{totals.perhaps:,} perhaps")
    lines = [
        f"{report.recipe}: {plural(totals.stages, 'stage')} for {plural(len(report.variants), 'variant')}: "
        + ", ".join(counts)
    ]
    separate = sum(len(row.variants) for row in report.stages)
    if separate > totals.stages:
        lines.append(f"sharing saves {plural(separate - totals.stages, 'stage')} of {separate:,}{_saved(report)}")
    if report.sharing is not None:
        lines.append(_unshared_text(report.sharing))
    if totals.work:
        gap = f", not counting {plural(totals.unknown, 'stage')} that never ran" if totals.unknown else ""
        lines.append(
            f"last time: {format_duration(totals.work)} of work, at least {format_duration(totals.longest)} from "
            f"start to end{gap}"
        )
    return "\n".join(lines)
