"""``axletree env import``: conda's ``environment.yml`` as a table of a recipe."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from axletree.cli.options import PATH
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.units import plural
from axletree.environment.imported import said
from axletree.report.environments import ImportedEnvironment
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@click.command(name="import", cls=ReportCommand, report=ImportedEnvironment)
@click.argument("file", type=PATH)
@click.option("--name", metavar="NAME", help="Name of the environment; by default, the one in the file.")
@click.option(
    "--out",
    "recipe",
    metavar="RECIPE",
    type=PATH,
    help="Add the environment to this recipe, which is created if it does not exist; by default, it is printed.",
)
def import_command(file: Path, *, name: str | None, recipe: Path | None) -> Reported:
    """Turn conda's environment.yml, or the output of `conda list --explicit`, into an environment of a recipe.

    Comments name each line that cannot be carried over, with the reason.
    """
    from axletree.app.env_import import import_environment  # noqa: PLC0415 (it loads a YAML library)

    report = import_environment(file, name=name, recipe=recipe)
    return Reported(report, lambda: os.fsencode(report.table) if recipe is None else "\n".join(_added(report)))


def _added(report: ImportedEnvironment) -> Iterator[str]:
    yield f"added environment {report.name} to {report.recipe}"
    if report.notes:
        yield f"{plural(len(report.notes), 'note')}, also in {report.recipe} as comments:"
        yield from (f"  {printable(said(note))}" for note in report.notes)
    yield f"create it: axletree env create {report.recipe} --environment {report.name}"
