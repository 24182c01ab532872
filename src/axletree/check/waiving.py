"""Findings that a recipe accepts: they stay in the report, with the reason, and fail nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, apply_rules, fires, silent, worst_first
from axletree.core.globs import glob_matcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.core.findings import Finding
    from axletree.plan.actions.packages import Waived


class Unused(msgspec.Struct, frozen=True, kw_only=True):
    """A waiver after an audit."""

    place: str
    """Where the recipe has it, with its line."""
    rule: str
    where: str
    used: bool


def waive(
    findings: Sequence[Finding], waivers: Sequence[Waived], places: Sequence[str]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Mark the findings that are accepted.

    Args:
        findings: those of an audit.
        waivers: what the recipe accepts; the first that fits a finding counts.
        places: where the recipe has each; empty where another audit of the package may need it.

    Returns:
        All findings, worst first; and a warning for each waiver that fits none.
    """
    matchers = [glob_matcher([each.where]) for each in waivers]
    used: set[int] = set()
    marked: list[Finding] = []
    for finding in findings:
        fitting = [
            number
            for number, (each, fits) in enumerate(zip(waivers, matchers, strict=True))
            if each.rule == finding.rule and fits(finding.where)
        ]
        used.update(fitting)
        reason = waivers[fitting[0]].reason if fitting else ""
        marked.append(msgspec.structs.replace(finding, waived=reason) if fitting else finding)
    unused = [
        finding
        for number, (each, place) in enumerate(zip(waivers, places, strict=True))
        for finding in apply_rules(
            WAIVER_RULES, Unused(place=place, rule=each.rule, where=each.where, used=number in used or not place)
        )
    ]
    return (*worst_first(each for each in marked if not each.waived), *(f for f in marked if f.waived)), tuple(unused)


def _unused(facts: Unused) -> Iterator[Found]:
    if not facts.used:
        yield Found(facts.place, f"the audit found no {facts.rule} at {facts.where!r} to waive")


def _sample(*, used: bool) -> Unused:
    return Unused(place="torch.toml:12", rule="dist/needed-unresolved", where="torch/lib/*.so", used=used)


WAIVER_RULES: tuple[Rule[Unused], ...] = (
    Rule(
        id="build/waiver-unused",
        severity="warning",
        title="The recipe waives a finding that the audit does not report",
        why=("A waiver that outlives its finding silently accepts whatever the rule finds in the same place next."),
        fix="remove the waiver, correct its rule or pattern, or limit it with `when` to the variants that need it",
        check=_unused,
        cases=lambda: (
            fires("a waiver that matches no finding", _sample(used=False)),
            silent("a waiver that matches a finding", _sample(used=True)),
        ),
    ),
)
