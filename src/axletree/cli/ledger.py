"""``axletree ledger``: what is built of a recipe in an output folder, and what remains."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import click

from axletree.app.ledger import chosen, standings
from axletree.app.publish import OUT
from axletree.store.layout import default_root
from axletree.store.store import Store
from axletree.view.ledger import ledger_json, ledger_text


@click.command(help="Show the state of each variant of a recipe: done, failed, interrupted, stale, never built.")
@click.argument("recipe")
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="Output folder.")
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(*, recipe: str, out: Path, patterns: tuple[str, ...], as_json: bool) -> int:
    """Print the ledger; exit 0 when nothing remains to be built, else 1."""
    store = Store.open(default_root(os.environ))
    found = standings(recipe, store, out=out, environ=os.environ, patterns=patterns)
    if as_json:
        click.echo(ledger_json(found))
    else:
        separate = {each.entry.outcome.no_share for each in found if each.entry.outcome is not None}
        again = build_command(
            recipe,
            out,
            patterns=patterns,
            no_share=separate.pop() if len(separate) == 1 else (),
            options=("--keep-going", "--remaining"),
        )
        click.echo(ledger_text(found, width=shutil.get_terminal_size((100, 24)).columns, command=again))
    return 1 if chosen(found, only_failed=False) else 0


def build_command(
    recipe: str,
    out: Path,
    *,
    patterns: tuple[str, ...] = (),
    skip: tuple[str, ...] = (),
    no_share: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
) -> str:
    """The command line that builds some variants, to be pasted."""
    words = ["axletree", "build", recipe]
    words += ["--out", str(out)] if out != OUT else []
    for option, values in (("-v", patterns), ("--skip", skip), ("--no-share", no_share)):
        words += [word for value in values for word in (option, value)]
    return shlex.join([*words, *options])
