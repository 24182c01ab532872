"""``axletree matrix``: list variants."""

from __future__ import annotations

import click
import msgspec

from axletree.app.matrix import MatrixReport, list_variants
from axletree.cli.recipe_options import gpu_option, set_option, skip_option, variant_option
from axletree.cli.reporting import ReportCommand, Reported, terminal_width, wants_json
from axletree.view.presets import preset_text
from axletree.view.tables import render_table


@click.command(cls=ReportCommand, report=MatrixReport)
@click.argument("recipe")
@set_option
@variant_option
@skip_option
@gpu_option
@click.option(
    "--preset",
    metavar="NAME",
    help="Count the configurations, variants and packages of this preset instead of listing variants.",
)
@click.option("--github", is_flag=True, help='Print one line, {"include": [...]}, for the matrix of a CI job.')
def command(
    recipe: str,
    sets: tuple[str, ...],
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    *,
    gpu: str | None,
    preset: str | None,
    github: bool,
) -> Reported:
    """List a recipe's variants."""
    if github and (wants_json() or preset is not None):
        raise click.UsageError(f"{'--json' if wants_json() else '--preset'} and --github cannot be combined")
    if gpu is not None and preset is not None:
        raise click.UsageError("--gpu selects the recipe's own variants; use --variant for those of a preset")
    report = list_variants(recipe, sets=sets, patterns=patterns, skip=skip, gpu=gpu, preset=preset)
    return Reported(report, lambda: _for_github(report) if github else _text(report))


def _for_github(report: MatrixReport) -> str:
    include = [{"variant": variant.id, **variant.values} for variant in report.variants]
    return msgspec.json.encode({"include": include}).decode()


def _text(report: MatrixReport) -> str:
    width = terminal_width()
    if report.preset is not None:
        return preset_text(report.preset, width=width)
    rows = [[variant.id, *variant.values.values()] for variant in report.variants]
    return render_table(["Variant", *report.axes], rows, width=width)
