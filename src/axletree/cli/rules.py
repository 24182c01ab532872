"""``axletree rules``: what is checked, why, and what to do."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

import click
import msgspec

from axletree.app.rules import find_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.engine import Rule

SCHEMA = 1


@click.command()
@click.argument("names", nargs=-1, metavar="[RULE]...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
def command(*, names: tuple[str, ...], as_json: bool) -> None:
    """List the rules of audits, builds and the doctor; of those that are named, why and what to do.

    RULE is an id such as cuda/error-804, or what rules are about, such as cuda.
    """
    found = find_rules(names)
    if as_json:
        documents = [_document(rule) for _, rules in found for rule in rules]
        click.echo(msgspec.json.format(msgspec.json.encode({"schema": SCHEMA, "rules": documents}), indent=1))
        return
    width = min(shutil.get_terminal_size().columns, 100)
    for number, (title, rules) in enumerate(found):
        click.echo(("\n" if number else "") + click.style(title.replace("`", ""), bold=True))
        longest = max(len(rule.id) for rule in rules)
        for rule in rules:
            click.echo(f"  {rule.id:{longest}}  {rule.severity:7}  {rule.title}")
            if rule.id in names:
                for line in _explained(rule, width):
                    click.echo(f"      {line}".rstrip())


def _explained(rule: Rule[Any], width: int) -> Iterator[str]:
    yield from textwrap.wrap(f"why: {rule.why}", width - 6)
    for line in f"what to do: {rule.fix}".splitlines():
        yield from textwrap.wrap(line, width - 6, break_long_words=False, break_on_hyphens=False)
    for case in rule.cases():
        yield f"- {'fires' if case.fires else 'silent'}: {case.title}"


def _document(rule: Rule[Any]) -> dict[str, object]:
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "why": rule.why,
        "fix": rule.fix,
        "fires": [case.title for case in rule.cases() if case.fires],
        "silent": [case.title for case in rule.cases() if not case.fires],
    }
