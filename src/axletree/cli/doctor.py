"""``axletree doctor``: is this host able to build and run that, and what is to be changed?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from axletree.app.doctor import examine, wishes_of
from axletree.app.facts import read_facts, take_facts
from axletree.cli.opening import open_store, settings
from axletree.cli.options import FILE
from axletree.cli.recipe_options import set_option
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.findings import worst
from axletree.report.doctor import HostReport
from axletree.view.doctor import render_doctor

if TYPE_CHECKING:
    from pathlib import Path


@click.command(cls=ReportCommand, report=HostReport)
@click.argument("recipe", required=False)
@set_option
@click.option(
    "-v",
    "--variant",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Select only variants that match PATTERN, such as 'py311-*'. Repeatable.",
)
@click.option(
    "--facts",
    type=FILE,
    metavar="FILE",
    help="Check the host that FILE describes instead of this one; create FILE there with `axletree facts --json`.",
)
def command(*, recipe: str | None, sets: tuple[str, ...], patterns: tuple[str, ...], facts: Path | None) -> Reported:
    """Check whether this host can build and run a recipe's variants, and suggest fixes.

    Without a recipe, checks what every build needs. The exit code is 1 if a build would fail.
    """
    if (patterns or sets) and recipe is None:
        raise click.UsageError(f"{'--variant' if patterns else '--set'} needs a recipe")
    chosen = settings()
    store = None if facts is not None else open_store(chosen)
    name, wishes = (
        ("", ()) if recipe is None else wishes_of(recipe, patterns, sets=sets, environ=os.environ, store=store)
    )
    host = take_facts(os.environ, chosen) if facts is None else read_facts(facts)
    report = examine(host, name, wishes)
    return Reported(report, lambda: render_doctor(report, click.style), int(worst(report.findings) == "error"))
