"""``axletree doctor``: is this host able to build and run that, and what is to be changed?"""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from axletree.app.doctor import examine, wishes_of
from axletree.app.facts import read_facts, take_facts
from axletree.store.layout import default_root
from axletree.store.store import Store
from axletree.view.doctor import doctor_document, render_doctor


@click.command()
@click.argument("recipe", required=False)
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match.")
@click.option(
    "--facts",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=False),
    metavar="FILE",
    help="Check another host with its facts, as written there by `axletree facts`.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(*, recipe: str | None, patterns: tuple[str, ...], facts: Path | None, as_json: bool) -> int:
    """Check whether this host can build and run a recipe's variants, and what to change.

    Without a recipe, checks what every build needs. The exit code is 1 if something would make a build fail.
    """
    if patterns and recipe is None:
        raise click.UsageError("--variant needs a recipe")
    store = None if facts is not None else Store.open(default_root(os.environ))
    name, wishes = ("", ()) if recipe is None else wishes_of(recipe, patterns, environ=os.environ, store=store)
    host = take_facts(os.environ) if facts is None else read_facts(facts)
    answer = examine(host, name, wishes)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(doctor_document(host, answer)), indent=1))
    else:
        for line in render_doctor(host, answer, click.style):
            click.echo(line)
    return int(any(each.finding.severity == "error" for each in answer.affecting))
