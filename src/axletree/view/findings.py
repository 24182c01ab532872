"""Findings as text, the same for every command; and those of many stages together, so that nothing is read twice."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from axletree.core.findings import SEVERITIES, Finding, LogLine, Severity
from axletree.core.units import plural, some_of
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.view.state import StageView

COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "info": "cyan"}
Style = Callable[..., str]
"""Colours a text, as :func:`click.style` does."""

_INDENT = " " * 6
_EVIDENCE = 6
_VARIANTS = 3


def plain(text: str, **_: object) -> str:
    """The style of places without colours."""
    return text


def finding_lines(
    finding: Finding, style: Style = plain, *, width: int | None = None, brief: bool = False
) -> Iterator[str]:
    """A finding: what is wrong and where, whom it concerns, what shows it, why it is so, what to do.

    Args:
        finding: the finding.
        style: colours the severity.
        width: columns for the texts that have several sentences; where there is none they are not wrapped.
        brief: the first line alone.
    """
    head = style(label_of(finding), fg="cyan" if finding.waived else COLOURS[finding.severity], bold=True)
    reason = f": {finding.waived}" if finding.waived else ""
    yield f"{head} {printable(f'{finding.where}: {finding.message}')} [{finding.rule}]{printable(reason)}"
    if not brief:
        details = _details(finding, width and width - len(_INDENT))
        yield from (f"{_INDENT}{printable(line)}".rstrip() for line in details)


def label_of(finding: Finding) -> str:
    """What a finding counts as: its severity, or ``waived error``."""
    return f"waived {finding.severity}" if finding.waived else finding.severity


def indented(lines: Iterable[str], by: str = "  ") -> Iterator[str]:
    """Lines of a finding that stands below something."""
    yield from (f"{by}{line}" for line in lines)


def _details(finding: Finding, width: int | None) -> Iterator[str]:
    if finding.variants:
        yield f"for {some_of(finding.variants, _VARIANTS)}"
    yield from finding.evidence[:_EVIDENCE]
    if len(finding.evidence) > _EVIDENCE:
        yield f"and {len(finding.evidence) - _EVIDENCE} more"
    yield from _numbered(finding.lines)
    yield from _labelled("why: ", finding.cause, width)
    yield from _labelled("fix: ", "" if finding.waived else finding.fix or "", width)


def _numbered(lines: Sequence[LogLine]) -> Iterator[str]:
    columns = max((len(str(line.line)) for line in lines), default=0)
    yield from (f"{line.line:>{columns}} | {line.text}" for line in lines)


def _labelled(label: str, text: str, width: int | None) -> Iterator[str]:
    """A text of several lines behind a label; commands, and lines to copy into a file, are never wrapped."""
    for number, line in enumerate(text.splitlines()):
        first, rest = label if number == 0 else " " * len(label), " " * len(label)
        parts = [line] if line.startswith(("$ ", "    ")) else wrapped(line, width and width - len(label))
        yield from (f"{first if part == 0 else rest}{each}" for part, each in enumerate(parts))


def wrapped(text: str, width: int | None) -> list[str]:
    """The lines of a text; one where there is no width."""
    if width is None or not text:
        return [text] if text else []
    return textwrap.wrap(text, max(width, 40), break_long_words=False, break_on_hyphens=False)


def counted(findings: Sequence[Finding]) -> str:
    """``2 errors, 1 warning``; empty where there is nothing."""
    counted = [finding.severity for finding in findings if not finding.waived]
    counts = [(severity, counted.count(severity)) for severity in SEVERITIES]
    said = [f"{count} info" if severity == "info" else plural(count, severity) for severity, count in counts if count]
    waived = len(findings) - len(counted)
    return ", ".join([*said, *([f"{waived} waived"] if waived else [])])


class FindingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All findings of one rule that say the same."""

    finding: Finding
    """The first of them."""
    places: tuple[tuple[str, tuple[str, ...]], ...]
    """``where`` of each and what shows it, in order, none twice."""


def group_findings(stages: Iterable[StageView]) -> tuple[FindingGroup, ...]:
    """Findings of all stages, those that say the same of several places together, worst first."""
    groups: dict[tuple[str, str, str, str], tuple[Finding, dict[tuple[str, tuple[str, ...]], None]]] = {}
    for stage in stages:
        for finding in stage.findings:
            identity = (finding.severity, finding.rule, finding.message, f"{finding.cause}\n{finding.waived}")
            shown = (*finding.evidence, *_numbered(finding.lines))
            groups.setdefault(identity, (finding, {}))[1][finding.where, shown] = None
    ordered = sorted(groups.values(), key=lambda group: SEVERITIES.index(group[0].severity))
    return tuple(FindingGroup(finding=finding, places=tuple(places)) for finding, places in ordered)
