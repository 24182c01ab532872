"""What a rule has to say about facts: one type for doctor, diagnosis, audit, drift and tuning."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a log."""

    line: int
    """Its number in the log, starting at 1."""
    text: str


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finding of one rule about one place."""

    rule: str
    """Id of the rule, such as ``dist/needed-unresolved``; for logs, the kind of failure, such as ``link/killed``."""
    severity: Severity
    where: str
    """The place: a wheel, a member of it, a file with its line."""
    message: str
    """The finding, in one sentence."""
    cause: str = ""
    """The cause, if it is known: for failures in logs."""
    fix: str | None = None
    """What to do; a line that begins with ``$`` is a command."""
    evidence: tuple[str, ...] = ()
    """The facts that the rule used, as short lines."""
    lines: tuple[LogLine, ...] = ()
    """The lines of the log that show it."""
    variants: tuple[str, ...] = ()
    """The affected variants; empty if all variants are."""
    waived: str = ""
    """Why the recipe accepts the finding, if it does; ``severity`` is still that of the rule."""


def worst(findings: tuple[Finding, ...]) -> Severity | None:
    """The highest severity present, or ``None`` where there are no findings; waived ones do not count."""
    present = {finding.severity for finding in findings if not finding.waived}
    return next((severity for severity in SEVERITIES if severity in present), None)
