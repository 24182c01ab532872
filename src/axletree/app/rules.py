"""Every rule that there is, whatever it looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.check.rules.archive import ARCHIVE_RULES
from axletree.check.rules.build import BUILD_RULES
from axletree.check.rules.compiling import COMPILING_RULES
from axletree.check.rules.conda import CONDA_RULES
from axletree.check.rules.environment import ENVIRONMENT_RULES
from axletree.check.rules.host.all import HOST_RULES
from axletree.check.rules.wheel.all import DIST_RULES
from axletree.core.errors import Problem, UsageError
from axletree.core.findings import Severity
from axletree.host.kinds import read_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.check.diagnosis.kind import Kind
    from axletree.check.engine import Rule

RULES: tuple[tuple[str, Sequence[Rule[Any]]], ...] = (
    ("What `axletree doctor` reports about hosts", HOST_RULES),
    ("What `axletree env verify` reports about environments", ENVIRONMENT_RULES),
    ("What a build reports before it compiles", BUILD_RULES),
    ("What a build reports after it compiled", COMPILING_RULES),
    ("What the audit reports about archives that it rejects", ARCHIVE_RULES),
    ("What the audit reports about wheels", DIST_RULES),
    ("What the audit reports about conda packages", CONDA_RULES),
)
"""Title -> rules, by what they look at."""
KINDS = "What `axletree diagnose` finds in logs"
_LOG = "log"


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, or a kind of failure, as it is listed."""

    rule: str
    severity: Severity
    title: str
    why: str
    fix: str
    references: tuple[str, ...]
    fires: tuple[str, ...]
    """Titles of cases; of a kind the first line of each sample."""
    silent: tuple[str, ...]


def find_rules(patterns: Sequence[str]) -> tuple[tuple[str, tuple[Listed, ...]], ...]:
    """Rules by their ids, ``cuda/error-804``, or by what they are about, ``cuda``; all where nothing is named.

    Kinds of failure are listed where one of their stages is named, or ``log``: there are hundreds.

    Raises:
        UsageError: a name fits no rule.
        HostError: the kinds of failure can't be read.
    """
    kinds = read_kinds()
    groups = [(title, [_of_rule(rule) for rule in rules]) for title, rules in RULES]
    groups.append((KINDS, [_of_kind(kind) for kind in kinds]))
    known = [listed.rule for _, rules in groups for listed in rules]
    unknown = [name for name in patterns if name != _LOG and not any(_fits(rule, name) for rule in known)]
    if unknown:
        import difflib  # noqa: PLC0415 (only on this error path: start-up time)

        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(Problem(message=f"no rule called {unknown[0]}", hint=f"{hint}`axletree rules` lists them"))
    if not patterns:
        return tuple((title, tuple(rules)) for title, rules in groups if title != KINDS)
    chosen = (
        (title, tuple(listed for listed in rules if _chosen(listed.rule, patterns, logs=title == KINDS)))
        for title, rules in groups
    )
    return tuple((title, rules) for title, rules in chosen if rules)


def _chosen(rule: str, patterns: Sequence[str], *, logs: bool) -> bool:
    return (logs and _LOG in patterns) or any(_fits(rule, name) for name in patterns)


def _fits(rule: str, name: str) -> bool:
    return name in (rule, rule.partition("/")[0])


def _of_rule(rule: Rule[Any]) -> Listed:
    cases = rule.cases()
    return Listed(
        rule=rule.id,
        severity=rule.severity,
        title=rule.title,
        why=rule.why,
        fix=rule.fix,
        references=rule.references,
        fires=tuple(case.title for case in cases if case.fires),
        silent=tuple(case.title for case in cases if not case.fires),
    )


def _of_kind(kind: Kind) -> Listed:
    return Listed(
        rule=kind.id,
        severity=kind.severity,
        title=kind.title,
        why=kind.cause,
        fix=kind.fix,
        references=kind.references,
        fires=tuple(_first_line(sample) for sample in kind.samples),
        silent=tuple(_first_line(log) for log in kind.silent),
    )


def _first_line(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if line.strip()), "")
