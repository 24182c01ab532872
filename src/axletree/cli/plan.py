"""``axletree plan``: what a build would do, and why."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app import planning
from axletree.app.forewarnings import plan_findings
from axletree.app.releases import patterns_for_gpu
from axletree.app.sharing import compare_sharing
from axletree.app.triton import triton_uses
from axletree.cli.opening import open_store, settings
from axletree.cli.reporting import ReportCommand, Reported
from axletree.report.plan import PlanReport, plan_report
from axletree.view.plain import download_lines, warning_lines
from axletree.view.plan import plan_text, triton_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(
    cls=ReportCommand,
    report=PlanReport,
    help="Show the stages of a build: what is shared, cached or run again, and why.",
)
@click.argument("recipe")
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match PATTERN.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Skip variants that match PATTERN.")
@click.option("--gpu", metavar="GPU", help="Only variants for this GPU: cpu, cu126, 12.6, rocm7.1, xpu.")
@click.option("--no-share", multiple=True, metavar="AXIS", help="Do not share stages between values of this axis.")
@click.option(
    "--source", type=click.Path(path_type=Path), help="Source folder to build instead of the recipe's source."
)
@click.option("--release", metavar="RELEASE", help="Version of the packages, as for build: nightly=YYYYMMDD, rc=N ...")
@click.option("--explain", is_flag=True, help="Show all the reasons for each stage, and the variants that share it.")
def command(
    *,
    recipe: str,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    gpu: str | None,
    no_share: tuple[str, ...],
    source: Path | None,
    release: str | None,
    explain: bool,
) -> Reported:
    """Print the plan of a recipe."""
    given = settings()
    store = open_store(given)
    patterns = patterns if gpu is None else patterns_for_gpu(recipe, gpu, patterns, skip)
    request = planning.PlanRequest(
        recipe=recipe,
        out=Path(given.out),
        patterns=patterns,
        skip=skip,
        no_share=no_share,
        source=source,
        release=release,
    )
    prepared = planning.prepare(request, store, environ=os.environ, only_plan=True)
    report = plan_report(
        prepared.plan.recipe,
        variants=prepared.plan.variants,
        stages=planning.planned_stages(prepared),
        perhaps=planning.perhaps(prepared),
        sharing=compare_sharing(prepared, store),
        findings=plan_findings(prepared),
        triton=triton_uses(prepared, store),
        downloads=planning.downloads(prepared, store),
    )
    return Reported(report, lambda: _lines(report, explain=explain))


def _lines(report: PlanReport, *, explain: bool) -> Iterator[str]:
    yield plan_text(report, width=shutil.get_terminal_size((100, 24)).columns, explain=explain)
    yield from (*download_lines(report.downloads), *triton_lines(report), *warning_lines(report.findings, click.style))
