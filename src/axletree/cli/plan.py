"""``axletree plan``: what a build would do, and why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app import planning
from axletree.app.forewarnings import plan_findings
from axletree.app.releases import patterns_for_gpu
from axletree.app.sharing import compare_sharing
from axletree.app.triton import triton_uses
from axletree.app.version_note import version_note
from axletree.cli.notes import say_aside
from axletree.cli.opening import open_store, settings
from axletree.cli.recipe_options import (
    gpu_option,
    part_options,
    set_option,
    skip_option,
    source_option,
    split_sources,
    variant_option,
)
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.report.plan import PlanReport, plan_report
from axletree.view.plain import download_lines, warning_lines
from axletree.view.plan import plan_text, triton_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(cls=ReportCommand, report=PlanReport)
@click.argument("recipe")
@set_option
@variant_option
@skip_option
@gpu_option
@part_options
@click.option(
    "--no-share",
    multiple=True,
    metavar="AXIS",
    help="Build a separate copy of each stage for every value of this axis, instead of sharing it. Repeatable.",
)
@source_option
@click.option(
    "--release",
    metavar="RELEASE",
    help=(
        "Version to give the packages: nightly=YYYYMMDD, rc=N, post=N, git=SHA, tag=vX.Y.Z, or a version such as 2.1.0."
    ),
)
@click.option("--explain", is_flag=True, help="Show every reason why a stage runs, and the variants that share it.")
def command(
    *,
    recipe: str,
    sets: tuple[str, ...],
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    gpu: str | None,
    formats: tuple[str, ...],
    packages: tuple[str, ...],
    no_share: tuple[str, ...],
    sources: tuple[str, ...],
    release: str | None,
    explain: bool,
) -> Reported:
    """Show the stages of a build: what is shared, cached or run again, and why."""
    given = settings()
    store = open_store(given)
    patterns = patterns if gpu is None else patterns_for_gpu(recipe, gpu, patterns, skip, sets)
    source, import_sources = split_sources(sources)
    request = planning.PlanRequest(
        recipe=recipe,
        sets=sets,
        formats=formats,
        packages=packages,
        out=Path(given.out),
        patterns=patterns,
        skip=skip,
        no_share=no_share,
        source=source,
        import_sources=import_sources,
        release=release,
        gpus=given.gpus_in_images,
    )
    prepared = planning.prepare(request, store, environ=os.environ, only_plan=True)
    for line in version_note(prepared, request, os.environ):
        say_aside(f"note: {line}")
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
    yield plan_text(report, width=terminal_width(100), explain=explain)
    yield from (*download_lines(report.downloads), *triton_lines(report), *warning_lines(report.findings, click.style))
