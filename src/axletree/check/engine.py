"""Rules over facts. A rule says what it looks at, why, what to do, and in which cases it fires and in which not.

The cases are part of the rule: they are its tests and the examples on its page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from axletree.core.findings import SEVERITIES, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

F = TypeVar("F")


class Found(msgspec.Struct, frozen=True):
    """What a check has to say about one place."""

    where: str
    message: str
    evidence: tuple[str, ...] = ()
    fix: str | None = None
    """What to do about it, where it can be said better than in the rule."""


def listing(places: Sequence[str]) -> tuple[str, ...]:
    """The places of a finding as its evidence; none where the finding names the only one already."""
    return tuple(places) if len(places) > 1 else ()


def subject(files: Sequence[str], one: str, many: str) -> str:
    """``this file needs`` or ``this file and 3 others need``, said of the file that a finding names."""
    others = len(files) - 1
    return f"this file and {others} other{'s' if others > 1 else ''} {many}" if others else f"this file {one}"


class Case(msgspec.Struct, Generic[F], frozen=True, kw_only=True):
    """Facts that make a rule fire, or leave it silent."""

    title: str
    facts: F
    fires: bool


def fires(title: str, facts: F) -> Case[F]:
    """Facts that make a rule fire."""
    return Case(title=title, facts=facts, fires=True)


def silent(title: str, facts: F) -> Case[F]:
    """Facts that leave a rule silent."""
    return Case(title=title, facts=facts, fires=False)


class Rule(msgspec.Struct, Generic[F], frozen=True, kw_only=True):
    """One rule."""

    id: str
    """``dist/needed-unresolved``: what it is about, and what is wrong."""
    severity: Severity
    title: str
    why: str
    """What goes wrong for whom if nothing is done."""
    fix: str
    """What to do."""
    references: tuple[str, ...] = ()
    """Where more is said: threads, manuals, PEPs."""
    check: Callable[[F], Iterable[Found]]
    cases: Callable[[], tuple[Case[F], ...]]
    """Made when they are asked for: tests and pages need the samples, and an audit should not wait for them."""


def apply_rules(rules: Sequence[Rule[F]], facts: F) -> tuple[Finding, ...]:
    """All findings, worst first; within a severity in the order of the rules."""
    findings = [
        Finding(
            rule=rule.id,
            severity=rule.severity,
            where=found.where,
            message=found.message,
            fix=found.fix or rule.fix,
            evidence=found.evidence,
        )
        for rule in rules
        for found in rule.check(facts)
    ]
    return worst_first(findings)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings by severity; within one in the order that they are given."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))
