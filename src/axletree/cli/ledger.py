"""``axletree ledger``: what is built of a recipe in an output folder, and what remains."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from axletree.app.ledger import Standings, chosen, standings
from axletree.app.planning import PlanRequest
from axletree.cli.opening import open_store, settings
from axletree.cli.options import PATH
from axletree.cli.recipe_options import part_options, part_words, set_option, set_words, variant_option
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.view.ledger import ledger_text


@click.command(cls=ReportCommand, report=Standings)
@click.argument("recipe")
@set_option
@part_options
@click.option("--out", type=PATH, show_default="dist, or the `out` setting", help="Output folder.")
@variant_option
def command(
    *,
    recipe: str,
    sets: tuple[str, ...],
    formats: tuple[str, ...],
    packages: tuple[str, ...],
    out: Path | None,
    patterns: tuple[str, ...],
) -> Reported:
    """Show the state of each variant of a recipe: done, failed, interrupted, stale or never built."""
    given = settings(out=out)
    request = PlanRequest(
        recipe=recipe,
        out=Path(given.out),
        sets=sets,
        formats=formats,
        packages=packages,
        patterns=patterns,
        gpus=given.gpus_in_images,
    )
    report = standings(request, open_store(given), environ=os.environ, as_built=True)
    found = report.variants
    asked = [each for each in found if each.changes == found[0].changes]
    separate = {each.entry.outcome.no_share for each in asked if each.entry.outcome is not None}
    again = build_command(
        recipe,
        out,
        sets=sets,
        patterns=patterns,
        no_share=separate.pop() if len(separate) == 1 else (),
        options=(*part_words(formats, packages), "--keep-going", "--remaining"),
    )
    width = terminal_width(100)
    return Reported(
        report,
        lambda: ledger_text(found, report.former, width=width, command=again),
        1 if chosen(asked, only_failed=False) else 0,
    )


def build_command(
    recipe: str,
    out: Path | None,
    *,
    sets: tuple[str, ...] = (),
    patterns: tuple[str, ...] = (),
    skip: tuple[str, ...] = (),
    no_share: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
) -> str:
    """The command line that builds some variants, to be pasted; ``out`` is the option, where it was given."""
    words = ["axletree", "build", recipe, *set_words(sets)]
    words += ["--out", str(out)] if out is not None else []
    for option, values in (("-v", patterns), ("--skip", skip), ("--no-share", no_share)):
        words += [word for value in values for word in (option, value)]
    return shlex.join([*words, *options])
