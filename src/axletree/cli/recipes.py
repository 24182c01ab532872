"""``axletree recipes``: list what ships."""

from __future__ import annotations

import click

from axletree.app.recipes import ShippedRecipes, list_recipes
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.view.tables import render_table


@click.command(cls=ReportCommand, report=ShippedRecipes)
def command() -> Reported:
    """List the recipes that ship with Axletree."""
    report = list_recipes()
    return Reported(report, lambda: _table(report))


def _table(report: ShippedRecipes) -> str:
    cells = [[row.name, row.version, str(row.variants), row.summary] for row in report.recipes]
    width = terminal_width()
    return render_table(["Name", "Version", "Variants", "Summary"], cells, width=width, right=[2])
