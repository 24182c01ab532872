"""``axletree rules``: what is checked, why, and what to do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from axletree.app.rules import ListedRules, find_rules
from axletree.cli.reporting import ReportCommand, Reported, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.rules import Listed


@click.command(cls=ReportCommand, report=ListedRules)
@click.argument("names", nargs=-1, metavar="[RULE]...")
def command(*, names: tuple[str, ...]) -> Reported:
    """List the audit, build and doctor rules, or explain the rules you name.

    RULE is an id such as cuda/error-804, or a subject such as cuda. The kinds of failure that `axletree diagnose`
    recognizes are listed by stage, such as link; `log` lists all of them.
    """
    found = find_rules(names)
    return Reported(found, lambda: _lines(found, names))


def _lines(found: ListedRules, names: tuple[str, ...]) -> Iterator[str]:
    width = terminal_width(most=100)
    for number, group in enumerate(found.groups):
        yield ("\n" if number else "") + click.style(group.title.replace("`", ""), bold=True)
        longest = max(len(listed.rule) for listed in group.rules)
        for listed in group.rules:
            yield f"  {listed.rule:{longest}}  {listed.severity:7}  {listed.title}"
            if listed.rule in names:
                yield from (f"      {line}".rstrip() for line in _explained(listed, width))


def _explained(listed: Listed, width: int) -> Iterator[str]:
    yield from textwrap.wrap(f"why: {listed.why}", width - 6)
    for line in f"what to do: {listed.fix}".splitlines():
        yield from textwrap.wrap(line, width - 6, break_long_words=False, break_on_hyphens=False)
    if listed.references:
        yield from textwrap.wrap(f"see: {'; '.join(listed.references)}", width - 6, break_long_words=False)
    yield from (f"- fires: {case}" for case in listed.fires)
    yield from (f"- silent: {case}" for case in listed.silent)
