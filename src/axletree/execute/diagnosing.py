"""The log of a failed stage: what is known of its root cause."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from axletree.check.diagnosis.engine import Engine
from axletree.check.diagnosis.log import BinaryLogError
from axletree.core.findings import Finding
from axletree.host.kinds import read_kinds
from axletree.host.providers import read_providers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from axletree.check.diagnosis.engine import Diagnosed

_CHUNK = 1 << 18
_REPEATS = 10
"""Kinds that are no more specific say that there is an error: the last lines of the log stand beside it already."""
_WARNINGS = 5
"""Silent downgrades of a failed stage that are told, at most."""


@cache
def engine() -> Engine:
    """All kinds, made ready once.

    Raises:
        HostError: the data files are missing or can't be read.
        IntegrityError: one is not in its form.
    """
    return Engine(read_kinds(), providers=read_providers())


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """A stream, piece by piece."""
    while chunk := stream.read(_CHUNK):
        yield chunk


def log_findings(log: Path) -> tuple[Finding, ...]:
    """The root cause of a failure, where a kind of failure tells it, and what the build went on without."""
    try:
        with log.open("rb") as stream:
            found = engine().diagnose(read_chunks(stream)).findings
    except BinaryLogError:
        return ()
    known = [finding for finding in found if not finding.rule.startswith("log/") and finding.specific > _REPEATS]
    errors = [finding for finding in known if finding.severity == "error"]
    warnings = [finding for finding in known if finding.severity == "warning"]
    return tuple(_finding(log, diagnosed) for diagnosed in (*errors[:1], *warnings[:_WARNINGS]))


def _finding(log: Path, diagnosed: Diagnosed) -> Finding:
    line = f":{diagnosed.evidence[0].line}" if diagnosed.evidence else ""
    return Finding(
        rule=diagnosed.rule,
        severity=diagnosed.severity,
        where=f"{log.name}{line}",
        message=f"{diagnosed.title}. {diagnosed.cause}",
        fix=diagnosed.fix or None,
        evidence=tuple(f"{line.line}: {line.text}" for line in diagnosed.evidence),
    )
