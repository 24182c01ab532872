"""A plan as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import format_duration, plural
from axletree.view.tables import render_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.report.plan import PlanReport, PlanRow, Sharing


def triton_lines(report: PlanReport) -> list[str]:
    """The pinned triton of each GPU world, and which packages require another."""
    lines: list[str] = []
    for use in report.triton:
        lines.append(f"triton for {use.gpu}: {use.requirement} (pinned by the source, from index whl/{use.channel})")
        lines += [f"  warning: package {package} requires {text}" for package, text in use.other.items()]
    return lines


def plan_text(report: PlanReport, *, width: int, explain: bool = False) -> str:
    """The plan as a table.

    Args:
        report: The plan.
        width: Columns of the terminal.
        explain: All reasons of each stage, one a line, instead of the first; and who shares what some share.
    """
    if report.totals.cached == report.totals.stages:
        return f"{report.recipe}: nothing to run, {plural(report.totals.stages, 'stage')} in the store"
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
    return f"{text}; last time, the stages took {now} instead of {before}"


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
        lines.append(f"sharing saves {separate - totals.stages:,} of {plural(separate, 'stage')}{_saved(report)}")
    if report.sharing is not None:
        lines.append(_unshared_text(report.sharing))
    if totals.work:
        gap = f", not counting {plural(totals.unknown, 'stage')} that have never run" if totals.unknown else ""
        lines.append(
            f"last time: {format_duration(totals.work)} of work, at least {format_duration(totals.longest)} from "
            f"start to end{gap}"
        )
    return "\n".join(lines)
