"""What ``axletree diagnose`` reports."""

from __future__ import annotations

import msgspec

from axletree.check.diagnosis.engine import Diagnosed
from axletree.check.diagnosis.outcome import LogOutcome
from axletree.core.findings import worst


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """A log and its findings."""

    name: str
    """Its name as given; ``-`` for stdin."""
    outcome: LogOutcome
    """How it ends."""
    findings: tuple[Diagnosed, ...]
    """The root cause first."""

    @property
    def failed(self) -> bool:
        """Whether there is a finding of severity error."""
        return worst(self.findings) == "error"


class DiagnosedLogs(msgspec.Struct, frozen=True):
    """All logs."""

    logs: tuple[LogReport, ...]

    @property
    def failed(self) -> bool:
        """Whether anything failed."""
        return any(log.failed for log in self.logs)
