"""What a rule has to say about facts: one type for doctor, diagnosis, audit, drift and tuning."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement of one rule about one place."""

    rule: str
    """Id of the rule, such as ``dist/needed-unresolved``."""
    severity: Severity
    where: str
    """What is meant: a wheel, a member of it, a file with its line."""
    message: str
    """What is the case, one sentence."""
    fix: str | None = None
    """What to do about it."""
    evidence: tuple[str, ...] = ()
    """The facts that the rule looked at, short lines."""


def worst(findings: tuple[Finding, ...]) -> Severity | None:
    """The highest severity present, or ``None`` where there are no findings."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), None)
