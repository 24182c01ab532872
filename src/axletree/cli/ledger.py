"""``axletree ledger``: what is built of a recipe in an output folder, and what remains."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import click

from axletree.app.ledger import Standings, chosen, standings
from axletree.app.planning import PlanRequest
from axletree.cli.opening import open_store, settings
from axletree.cli.reporting import ReportCommand, Reported
from axletree.view.ledger import ledger_text


@click.command(
    cls=ReportCommand,
    report=Standings,
    help="Show the state of each variant of a recipe: done, failed, interrupted, stale, never built.",
)
@click.argument("recipe")
@click.option(
    "--out", type=click.Path(path_type=Path), show_default="dist, or the `out` setting", help="Output folder."
)
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match PATTERN.")
def command(*, recipe: str, out: Path | None, patterns: tuple[str, ...]) -> Reported:
    """Print the ledger; exit 0 if nothing remains to be built, otherwise 1."""
    given = settings(out=out)
    request = PlanRequest(recipe=recipe, out=Path(given.out), patterns=patterns)
    found = standings(request, open_store(given), environ=os.environ, as_built=True)
    separate = {each.entry.outcome.no_share for each in found if each.entry.outcome is not None}
    again = build_command(
        recipe,
        out,
        patterns=patterns,
        no_share=separate.pop() if len(separate) == 1 else (),
        options=("--keep-going", "--remaining"),
    )
    width = shutil.get_terminal_size((100, 24)).columns
    return Reported(
        Standings(variants=found),
        lambda: ledger_text(found, width=width, command=again),
        1 if chosen(found, only_failed=False) else 0,
    )


def build_command(
    recipe: str,
    out: Path | None,
    *,
    patterns: tuple[str, ...] = (),
    skip: tuple[str, ...] = (),
    no_share: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
) -> str:
    """The command line that builds some variants, to be pasted; ``out`` is the option, where it was given."""
    words = ["axletree", "build", recipe]
    words += ["--out", str(out)] if out is not None else []
    for option, values in (("-v", patterns), ("--skip", skip), ("--no-share", no_share)):
        words += [word for value in values for word in (option, value)]
    return shlex.join([*words, *options])
