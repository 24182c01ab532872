"""What a rule has to say about facts: one type for doctor, diagnosis, audit, drift and tuning."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a log."""

    line: int
    """Its number in the raw log, counted from 1."""
    text: str


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One statement of one rule about one place."""

    rule: str
    """Id of the rule, such as ``dist/needed-unresolved``; of a log the kind of failure, such as ``link/killed``."""
    severity: Severity
    where: str
    """What is meant: a wheel, a member of it, a file with its line."""
    message: str
    """What is the case, one sentence."""
    cause: str = ""
    """Why it is so, where a rule can say it: of failures in logs."""
    fix: str | None = None
    """What to do about it; a line that begins with ``$`` is a command."""
    evidence: tuple[str, ...] = ()
    """The facts that the rule looked at, short lines."""
    lines: tuple[LogLine, ...] = ()
    """The lines of a log that it rests on."""
    variants: tuple[str, ...] = ()
    """Those of several variants that it is about; none where it holds for all."""


def worst(findings: tuple[Finding, ...]) -> Severity | None:
    """The highest severity present, or ``None`` where there are no findings."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), None)
