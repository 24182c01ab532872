"""``axletree plan``: what a build would do, and why."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from axletree.app import planning
from axletree.app.link_guard import link_findings
from axletree.app.publish import OUT
from axletree.app.releases import RELEASE_VARIABLE, patterns_for_gpu
from axletree.app.sharing import compare_sharing
from axletree.app.triton import triton_uses
from axletree.store.layout import default_root
from axletree.store.store import Store
from axletree.view.plain import download_lines, finding_lines
from axletree.view.plan import plan_json, plan_report, plan_text, triton_lines


@click.command(help="Show the stages of a build: what is shared, cached or run again, and why.")
@click.argument("recipe")
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Skip variants that match.")
@click.option("--gpu", metavar="GPU", help="Only variants for this GPU: cpu, cu126, 12.6, rocm7.1, xpu.")
@click.option("--no-share", multiple=True, metavar="AXIS", help="Share nothing between values of this axis.")
@click.option("--source", type=click.Path(path_type=Path), help="Folder to build instead of the recipe's source.")
@click.option("--release", metavar="RELEASE", help="Version of the packages, as for build: nightly=YYYYMMDD, rc=N ...")
@click.option("--explain", is_flag=True, help="Show all reasons of each stage, and the variants that share it.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
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
    as_json: bool,
) -> None:
    """Print the plan of a recipe."""
    store = Store.open(default_root(os.environ))
    environ = dict(os.environ) | ({planning.SOURCE_VARIABLE: str(source)} if source is not None else {})
    environ |= {RELEASE_VARIABLE: release} if release is not None else {}
    patterns = patterns if gpu is None else patterns_for_gpu(recipe, gpu, patterns, skip)
    prepared = planning.prepare(
        recipe, store, patterns=patterns, skip=skip, no_share=no_share, out=OUT, environ=environ
    )
    report = plan_report(
        prepared.plan.recipe,
        variants=prepared.plan.variants,
        stages=planning.planned_stages(prepared),
        perhaps=planning.perhaps(prepared),
        sharing=compare_sharing(prepared, store),
        findings=link_findings(prepared),
        triton=triton_uses(prepared, store),
    )
    if as_json:
        click.echo(plan_json(report))
        return
    click.echo(plan_text(report, width=shutil.get_terminal_size((100, 24)).columns, explain=explain))
    downloads = planning.downloads(prepared, store)
    for line in (*download_lines(downloads), *triton_lines(report), *finding_lines(report.findings)):
        click.echo(line)
