"""What a log says, as text: the root cause in full, what else there is in a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import plural
from axletree.view.findings import Style, finding_lines, indented, plain, wrapped
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.core.findings import Finding
    from axletree.report.diagnosis import LogReport

_LISTED = 10
"""Findings after the first that are listed."""
_WIDEST = 120


def diagnosis_text(reports: Sequence[LogReport], *, width: int, style: Style = plain) -> Iterator[str]:
    """The logs one after the other, line by line.

    Args:
        reports: Logs with what is in them.
        width: Columns of the terminal.
        style: Colours severities.
    """
    for number, report in enumerate(reports):
        yield from [""] if number else []
        yield from _log_lines(report, min(width, _WIDEST), style)


def _log_lines(report: LogReport, width: int, style: Style) -> Iterator[str]:
    yield printable(f"{report.name}: {_ending(report)}")
    if not report.findings:
        return
    root, *others = report.findings
    yield ""
    yield from finding_lines(root, style, width=width)
    if root.host is not None and root.see:
        yield from _host_lines(root.host, width, style)
    if others:
        yield ""
        yield "also:"
    for finding in others[:_LISTED]:
        yield from indented(finding_lines(finding, style, brief=True))
        commands = (line for line in (finding.fix or "").splitlines() if line.startswith("$ "))
        yield from (f"        {printable(line)}" for line in commands)
    if len(others) > _LISTED:
        yield f"  and {len(others) - _LISTED:,} more; --json lists them all"


def _host_lines(found: Sequence[Finding], width: int, style: Style) -> Iterator[str]:
    """What of the host tells the reason."""
    if not found:
        yield from ("", *wrapped("on this host: `axletree doctor` does not find a cause", width))
        return
    yield from ("", "on this host:")
    for each in found:
        yield from indented(finding_lines(each, style, width=width - 2))


def _ending(report: LogReport) -> str:
    outcome = report.outcome
    where = f"line {outcome.said.line:,} of {outcome.lines:,}" if outcome.said else plural(outcome.lines, "line")
    failed = report.failed
    words = {
        "failed": "something failed",
        "succeeded": "something failed, although the log ends normally" if failed else "nothing failed",
        "unfinished": "the log ends before the work does",
        "unknown": "an error occurred, but the log does not show how the run ended"
        if report.failed
        else "the log shows no failure",
    }[outcome.ending]
    said = f": {outcome.said.text.strip()}" if outcome.said and outcome.ending == "failed" else ""
    return f"{words} ({where}{said})"
