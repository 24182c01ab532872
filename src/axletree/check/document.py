"""The reference page of rules, from the rules themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.check.engine import Rule

_HEAD = """\
# Rules

What `axletree audit` and the audit of every build check. A finding of severity **error** makes the command exit with 1
and keeps a built wheel out of the index; a **warning** does not; an **info** is a hint. This page is made from the
rules; their cases, listed below each, are run as tests.
"""


def render_rules(rules: Sequence[Rule[Any]]) -> str:
    """The page in Markdown."""
    return "\n".join([_HEAD, *_table(rules), *(line for rule in rules for line in _section(rule))])


def _table(rules: Iterable[Rule[Any]]) -> list[str]:
    rows = [f"| [`{rule.id}`](#{_anchor(rule)}) | {rule.severity} | {rule.title} |" for rule in rules]
    return ["| rule | severity | what it finds |", "|---|---|---|", *rows, ""]


def _section(rule: Rule[Any]) -> list[str]:
    fires = [case.title for case in rule.cases() if case.fires]
    silent = [case.title for case in rule.cases() if not case.fires]
    return [
        f"## {rule.id} {{ #{_anchor(rule)} }}",
        "",
        f"**{rule.severity}**: {rule.title}.",
        "",
        rule.why,
        "",
        f"What to do: {rule.fix}",
        "",
        *(f"- fires: {title}" for title in fires),
        *(f"- silent: {title}" for title in silent),
        "",
    ]


def _anchor(rule: Rule[Any]) -> str:
    return rule.id.replace("/", "-")
