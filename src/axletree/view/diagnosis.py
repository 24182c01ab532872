"""What a log says, as text and as JSON: the root cause in full, what else there is in a line each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Protocol

from axletree.view.tables import plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.check.diagnosis.engine import Diagnosed, Diagnosis
    from axletree.core.findings import Finding

SCHEMA = 1
_LISTED = 10
"""Findings after the first that are listed."""


class Report(Protocol):
    """What is shown: see ``axletree.app.diagnose.LogReport``."""

    @property
    def name(self) -> str:
        """Of the log."""

    @property
    def diagnosis(self) -> Diagnosis:
        """What is in it."""


def has_error(reports: Sequence[Report]) -> bool:
    """Whether anything failed."""
    return any(finding.severity == "error" for report in reports for finding in report.diagnosis.findings)


def diagnosis_document(reports: Sequence[Report]) -> dict[str, Any]:
    """``schema`` and ``findings``, the root cause first. With several logs, evidence says of which it is.

    Where the host was looked at, root causes have ``host``: what of it tells the reason.
    """
    findings = []
    for report in reports:
        file = {"file": report.name} if len(reports) > 1 else {}
        findings += [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "title": finding.title,
                "cause": finding.cause,
                "fix": finding.fix,
                "evidence": [{**file, "line": line.line, "text": line.text} for line in finding.evidence],
                **({} if finding.host is None else {"host": [_of_host(found) for found in finding.host]}),
            }
            for finding in report.diagnosis.findings
        ]
    findings.sort(key=lambda finding: finding["severity"] != "error")
    return {"schema": SCHEMA, "findings": findings}


def _of_host(found: Finding) -> dict[str, Any]:
    return {"rule": found.rule, "severity": found.severity, "message": found.message, "fix": found.fix or ""}


def diagnosis_text(reports: Sequence[Report], *, width: int) -> str:
    """The logs one after the other.

    Args:
        reports: Logs with what is in them.
        width: Columns of the terminal.
    """
    lines: list[str] = []
    for report in reports:
        lines += [""] if lines else []
        lines += _log_lines(report, min(width, 120))
    return printable("\n".join(lines))


def _log_lines(report: Report, width: int) -> Iterator[str]:
    yield f"{report.name}: {_ending(report.diagnosis)}"
    findings = report.diagnosis.findings
    if not findings:
        return
    yield ""
    yield from _in_full(findings[0], width)
    rest = findings[1 : 1 + _LISTED]
    if rest:
        yield ""
        yield "also:"
    for finding in rest:
        place = f"line {finding.evidence[0].line}" if finding.evidence else report.name
        yield f"  {finding.severity}: {finding.title} ({place}; {finding.rule})"
        yield from (f"    {line}" for line in finding.fix.split("\n") if line.startswith("$ "))
    if len(findings) > 1 + _LISTED:
        yield f"  ... {len(findings) - 1 - _LISTED:,} more; --json lists all"


def _ending(diagnosis: Diagnosis) -> str:
    outcome = diagnosis.outcome
    where = f"line {outcome.said.line:,} of {outcome.lines:,}" if outcome.said else plural(outcome.lines, "line")
    errors = any(finding.severity == "error" for finding in diagnosis.findings)
    words = {
        "failed": "something failed",
        "succeeded": "something failed, although the log ends normally" if errors else "nothing failed",
        "unfinished": "the log stops in the middle of the work",
        "unknown": "an error, but the log does not say how the run ended" if errors else "the log shows no failure",
    }[outcome.ending]
    said = f": {outcome.said.text.strip()}" if outcome.said and outcome.ending == "failed" else ""
    return f"{words} ({where}{said})"


def _in_full(finding: Diagnosed, width: int) -> Iterator[str]:
    yield f"{finding.severity}: {finding.title} ({finding.rule})"
    columns = max((len(f"{line.line}") for line in finding.evidence), default=0)
    for line in finding.evidence:
        yield f"  {line.line:>{columns}} | {line.text}"
    if finding.cause:
        yield ""
        yield from _wrapped(finding.cause, width)
    if finding.fix:
        yield ""
        yield "  what to do:"
        yield from _steps(finding.fix, width)
    if finding.host is not None and finding.see:
        yield from _host_lines(finding.host, width)


def _host_lines(found: Sequence[Finding], width: int) -> Iterator[str]:
    if not found:
        yield ""
        yield from _wrapped("on this host: `axletree doctor` finds no reason for it", width)
    for each in found:
        yield ""
        yield from _wrapped(f"on this host: {each.message} ({each.rule})", width)
        yield from _steps(each.fix or "", width, indent="    ")


def _steps(fix: str, width: int, indent: str = "  ") -> Iterator[str]:
    for step in fix.split("\n"):
        yield from [f"    {step}"] if step.startswith("$ ") else _wrapped(step, width, indent)


def _wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
