"""``axletree rules``: what is checked, why, and what to do."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

import click
import msgspec

from axletree.app.rules import find_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.rules import Listed

SCHEMA = 1


@click.command()
@click.argument("names", nargs=-1, metavar="[RULE]...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(*, names: tuple[str, ...], as_json: bool) -> None:
    """List the rules of audits, builds and the doctor; explain those you name.

    RULE is an id such as cuda/error-804, or a subject such as cuda. The kinds of failure that `axletree diagnose` knows
    are listed by their stage, such as link, or all together by log.
    """
    found = find_rules(names)
    if as_json:
        documents = [listed for _, rules in found for listed in rules]
        click.echo(msgspec.json.format(msgspec.json.encode({"schema": SCHEMA, "rules": documents}), indent=1))
        return
    width = min(shutil.get_terminal_size().columns, 100)
    for number, (title, rules) in enumerate(found):
        click.echo(("\n" if number else "") + click.style(title.replace("`", ""), bold=True))
        longest = max(len(listed.rule) for listed in rules)
        for listed in rules:
            click.echo(f"  {listed.rule:{longest}}  {listed.severity:7}  {listed.title}")
            if listed.rule in names:
                for line in _explained(listed, width):
                    click.echo(f"      {line}".rstrip())


def _explained(listed: Listed, width: int) -> Iterator[str]:
    yield from textwrap.wrap(f"why: {listed.why}", width - 6)
    for line in f"what to do: {listed.fix}".splitlines():
        yield from textwrap.wrap(line, width - 6, break_long_words=False, break_on_hyphens=False)
    if listed.references:
        yield from textwrap.wrap(f"see: {'; '.join(listed.references)}", width - 6, break_long_words=False)
    yield from (f"- fires: {case}" for case in listed.fires)
    yield from (f"- silent: {case}" for case in listed.silent)
