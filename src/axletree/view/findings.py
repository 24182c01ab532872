"""Findings of many stages, put together so that what is said once is read once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.findings import SEVERITIES, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.view.state import StageView


class FindingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All findings of one rule that say the same."""

    finding: Finding
    """The first of them."""
    places: tuple[tuple[str, tuple[str, ...]], ...]
    """``where`` and evidence of each, in order, none twice."""


def group_findings(stages: Iterable[StageView]) -> tuple[FindingGroup, ...]:
    """Findings of all stages, those that say the same of several places together, worst first."""
    groups: dict[tuple[str, str, str], tuple[Finding, dict[tuple[str, tuple[str, ...]], None]]] = {}
    for stage in stages:
        for finding in stage.findings:
            identity = (finding.severity, finding.rule, finding.message)
            groups.setdefault(identity, (finding, {}))[1][finding.where, finding.evidence] = None
    ordered = sorted(groups.values(), key=lambda group: SEVERITIES.index(group[0].severity))
    return tuple(FindingGroup(finding=finding, places=tuple(places)) for finding, places in ordered)
