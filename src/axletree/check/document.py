"""The reference page of rules, from the rules themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.check.engine import Rule

_HEAD = """\
# Rules

What `axletree audit`, the audit of every build and `axletree doctor` check. A finding of severity **error** makes the
command exit with 1 and keeps a built wheel out of the index; a **warning** does not; an **info** is a hint. This page
is generated from the rules; the cases listed under each rule run as tests. `axletree rules` prints the same text.
"""


def render_rules(groups: Sequence[tuple[str, Sequence[Rule[Any]]]]) -> str:
    """The page in Markdown: a table for each group, then a section for each rule."""
    tables = [line for title, rules in groups for line in (f"## {title}", "", *_table(rules))]
    return "\n".join([_HEAD, *tables, *(line for _, rules in groups for rule in rules for line in _section(rule))])


def _table(rules: Iterable[Rule[Any]]) -> list[str]:
    rows = [f"| [`{rule.id}`](#{_anchor(rule)}) | {rule.severity} | {rule.title} |" for rule in rules]
    return ["| rule | severity | finding |", "|---|---|---|", *rows, ""]


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
        *_what_to_do(rule.fix),
        *([f"See: {'; '.join(rule.references)}.", ""] * bool(rule.references)),
        "",
        *(f"- fires: {title}" for title in fires),
        *(f"- silent: {title}" for title in silent),
        "",
    ]


def _what_to_do(fix: str) -> list[str]:
    """Advice; commands in blocks of their own."""
    lines: list[str] = []
    for number, line in enumerate(fix.splitlines()):
        head = "What to do: " if number == 0 else ""
        lines += (
            [*([head.strip(), ""] * bool(head)), "```console", line, "```"] if line[:2] == "$ " else [head + line, ""]
        )
    return lines


def _anchor(rule: Rule[Any]) -> str:
    return rule.id.replace("/", "-")
