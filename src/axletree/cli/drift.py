"""``axletree drift``: a recipe's dependencies beside upstream's and what can be had."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import click

from axletree.app.drift import DriftInputs, find_drift
from axletree.cli.opening import settings
from axletree.cli.options import FILE, FOLDER
from axletree.cli.recipe_options import set_option
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.host.indexes import read_indexes
from axletree.report.drift import DriftReport
from axletree.view.drift import drift_text

_FAILING = {
    "conflict": ("conflict",),
    "missing": ("conflict", "missing in recipe"),
    "looser": ("conflict", "missing in recipe", "recipe looser"),
    "tighter": ("conflict", "missing in recipe", "recipe looser", "recipe tighter"),
}
"""Choice -> the verdicts that fail: that one and graver ones."""


@click.command(cls=ReportCommand, report=DriftReport)
@click.argument("recipe")
@set_option
@click.option("--source", type=FOLDER, help="Folder with upstream's source tree.")
@click.option(
    "--wheel",
    "wheels",
    type=FILE,
    multiple=True,
    help="Also compare with this official wheel of the version that the recipe builds, or with its cuda-toolkit wheel. "
    "Repeatable.",
)
@click.option(
    "--recipe-metadata",
    type=FILE,
    help="Compare this conda recipe (meta.yaml or recipe.yaml) instead of the recipe's own requirements.",
)
@click.option(
    "--channel",
    "channels",
    type=FILE,
    multiple=True,
    help="Also compare with this conda channel's repodata.json[.zst]. Repeatable.",
)
@click.option(
    "--at",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Use only packages that were in the channels on this day (UTC).",
)
@click.option(
    "--index",
    is_flag=True,
    help="Also compare with the newest releases on the package index that pip and uv are configured to use.",
)
@click.option(
    "-v",
    "--variant",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Select only variants that match PATTERN, such as 'py311-*'. Repeatable.",
)
@click.option("--evidence", is_flag=True, help="Show the files and lines that each verdict is based on.")
@click.option("--only", metavar="NAME", multiple=True, help="Show only this dependency. Repeatable.")
@click.option(
    "--fail-on",
    type=click.Choice([*_FAILING, "contradiction", "never"]),
    multiple=True,
    default=("conflict",),
    show_default=True,
    help=(
        "Exit with code 1 if a dependency has this verdict or a more severe one: tighter, looser, missing or conflict. "
        "With contradiction, exit with code 1 if upstream contradicts itself; with never, always exit with code 0. "
        "Repeatable."
    ),
)
def command(
    recipe: str,
    sets: tuple[str, ...],
    source: Path | None,
    wheels: tuple[Path, ...],
    recipe_metadata: Path | None,
    channels: tuple[Path, ...],
    at: dt.datetime | None,
    patterns: tuple[str, ...],
    only: tuple[str, ...],
    fail_on: tuple[str, ...],
    *,
    index: bool,
    evidence: bool,
) -> Reported:
    """Compare a recipe's dependencies with upstream's and with the versions that channels offer.

    Upstream's dependencies are the ones that it vendors, pins, requires or links. All inputs must have the same
    upstream version. Nothing is executed or rendered: commits and tags come from git, everything else from files. The
    exit code is 1 if a dependency has a verdict given with --fail-on.
    """
    if at is not None and not channels:
        raise click.UsageError("--at needs a channel: use --channel")
    indexes = read_indexes(settings(), os.environ, home=Path.home(), cwd=Path.cwd()) if index else None
    end = None if at is None else (at.replace(tzinfo=dt.UTC) + dt.timedelta(days=1)).timestamp()
    inputs = DriftInputs(
        source=source, wheels=wheels, conda_recipe=recipe_metadata, channels=channels, before=end, index=indexes
    )
    report = find_drift(recipe, inputs, environ=os.environ, sets=sets, patterns=patterns)
    unknown = sorted(set(only) - {row.dependency for row in report.dependencies})
    if unknown:
        raise click.UsageError(f"no dependency is called {', '.join(unknown)}; --json lists them all")
    width = terminal_width()
    return Reported(
        report,
        lambda: drift_text(report, width=width, evidence=evidence, only=only, style=click.style),
        int(_fails(report, fail_on)),
    )


def _fails(report: DriftReport, fail_on: tuple[str, ...]) -> bool:
    verdicts = {each.verdict for row in report.dependencies for each in row.judgements if not each.optional}
    failing = {verdict for choice in fail_on for verdict in _FAILING.get(choice, ())}
    return not verdicts.isdisjoint(failing) or ("contradiction" in fail_on and bool(report.findings))
