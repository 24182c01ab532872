"""Every rule that there is, whatever it looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.rules.archive import ARCHIVE_RULES
from axletree.check.rules.asked import ASKED_RULES
from axletree.check.rules.build import BUILD_RULES
from axletree.check.rules.compiling import COMPILING_RULES
from axletree.check.rules.conda import CONDA_RULES
from axletree.check.rules.conda_beside import BESIDE_RULES
from axletree.check.rules.host.all import HOST_RULES
from axletree.check.rules.image import IMAGE_RULES
from axletree.check.rules.image_proof import PROOF_RULES
from axletree.check.rules.plan import LOCK_RULES, PLAN_RULES, REPUBLISHING_RULES
from axletree.check.rules.search_order import ENVIRONMENT_RULES
from axletree.check.rules.wheel.all import DIST_RULES
from axletree.check.waiving import WAIVER_RULES
from axletree.core.errors import Problem, UsageError
from axletree.core.findings import Severity
from axletree.core.near import nearest
from axletree.host.shipped_data import read_shipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.check.diagnosis.kind import Kind
    from axletree.check.engine import Rule

RULES: tuple[tuple[str, Sequence[Rule[Any]]], ...] = (
    ("What `axletree doctor` reports about hosts", HOST_RULES),
    ("What `axletree env verify` reports about environments", ENVIRONMENT_RULES),
    ("What a plan reports before anything runs", (*PLAN_RULES, *LOCK_RULES, *REPUBLISHING_RULES)),
    ("What a build reports before it compiles", BUILD_RULES),
    ("What a build reports about the images that it compiles in", (*IMAGE_RULES, *PROOF_RULES)),
    ("What a build reports after CMake has configured the project", ASKED_RULES),
    ("What a build reports after it compiles", COMPILING_RULES),
    ("What the audit reports about archives that it rejects", ARCHIVE_RULES),
    ("What the audit reports about wheels", DIST_RULES),
    ("What the audit reports about conda packages", (*CONDA_RULES, *BESIDE_RULES)),
    ("What a build reports about waivers in its recipe", WAIVER_RULES),
)
"""Title -> rules, by what they look at."""
KINDS = "What `axletree diagnose` finds in logs"
_LOG = "log"


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A rule or a kind of failure in a list."""

    rule: str
    severity: Severity
    title: str
    why: str
    fix: str
    references: tuple[str, ...]
    fires: tuple[str, ...]
    """Titles of cases; for a kind, the first line of each sample."""
    silent: tuple[str, ...]


class RuleGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group of rules."""

    title: str
    rules: tuple[Listed, ...]


class ListedRules(msgspec.Struct, frozen=True):
    """The requested rules."""

    groups: tuple[RuleGroup, ...]


def find_rules(patterns: Sequence[str]) -> ListedRules:
    """Rules by their ids, ``cuda/error-804``, or by what they are about, ``cuda``; all where nothing is named.

    Kinds of failure are listed where one of their stages is named, or ``log``: there are hundreds.

    Raises:
        UsageError: a name fits no rule.
        HostError: the kinds of failure can't be read.
    """
    kinds = read_shipped(FAILURE_KINDS)
    groups = [RuleGroup(title=title, rules=tuple(map(_of_rule, rules))) for title, rules in RULES]
    groups.append(RuleGroup(title=KINDS, rules=tuple(map(_of_kind, kinds))))
    known = [listed.rule for group in groups for listed in group.rules]
    unknown = [name for name in patterns if name != _LOG and not any(_fits(rule, name) for rule in known)]
    if unknown:
        near = nearest(unknown[0], known)
        hint = f"did you mean {near}? " if near else ""
        raise UsageError(
            Problem(message=f"unknown rule {unknown[0]!r}", hint=f"{hint}`axletree rules` lists all rules")
        )
    if not patterns:
        return ListedRules(tuple(groups[:-1]))
    chosen = (_chosen(group, patterns) for group in groups)
    return ListedRules(tuple(group for group in chosen if group.rules))


def _chosen(group: RuleGroup, patterns: Sequence[str]) -> RuleGroup:
    if group.title == KINDS and _LOG in patterns:
        return group
    fitting = tuple(each for each in group.rules if any(_fits(each.rule, name) for name in patterns))
    return msgspec.structs.replace(group, rules=fitting)


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
