"""Dependency drift as text."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from axletree.core.units import plural
from axletree.package.drift.evidence import UPSTREAM
from axletree.package.drift.verdict import VERDICTS
from axletree.view.findings import Style, finding_lines, plain
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.report.drift import Dependency, DriftReport, Stated

_MOST_SPECS = 3
_HEADERS = ("dependency", "upstream", "recipe", "newest", "verdict")


def drift_text(
    report: DriftReport, *, width: int, evidence: bool, only: Sequence[str] = (), style: Style = plain
) -> str:
    """The table, why each row has its verdict, and where upstream contradicts itself.

    Args:
        report: what was compared.
        width: columns of the terminal.
        evidence: show every statement, and what only upstream's CI uses.
        only: show these dependencies alone.
        style: colours severities.
    """
    wanted = [row for row in report.dependencies if not only or row.dependency in only]
    chosen = [row for row in wanted if evidence or not row.ci_only]
    alone = [] if evidence or only else [row.dependency for row in chosen if row.verdicts == ("only in recipe",)]
    rows = [row for row in chosen if row.dependency not in alone]
    compared = ", ".join(f"{each.what} {each.name}" for each in report.inputs[1:])
    lines = [printable(f"{report.recipe} {report.version} against {compared}"), ""]
    if rows:
        lines.append(render_table(_HEADERS, [_cells(row) for row in rows], width=width))
    if evidence:
        lines += [line for row in rows for line in ("", *_evidence(row))]
    elif reasons := [line for row in rows for line in _reasons(row)]:
        lines += ["", *reasons]
    if alone:
        lines += [
            "",
            *textwrap.wrap(
                f"only in recipe: {', '.join(alone)}", max(width, 60), subsequent_indent="  ", break_on_hyphens=False
            ),
        ]
    for finding in report.findings if not only else ():
        lines += ["", *finding_lines(finding, style, width=max(width, 60))]
    hidden = len([row for row in report.dependencies if row.ci_only]) if not (evidence or only) else 0
    if hidden:
        what = "is" if hidden == 1 else "are"
        lines += ["", f"{hidden} more {what} only pinned by upstream's CI or searched for by CMake; see --evidence"]
    lines += [""] * bool(report.notes) + [printable(f"note: {note}") for note in report.notes]
    return "\n".join([*lines, "", _summary(report.dependencies)])


def _cells(row: Dependency) -> tuple[str, ...]:
    upstream = [each for column in UPSTREAM for each in row.evidence if each.column == column]
    telling = [each for each in upstream if each.role != "mention"] or upstream
    newest = row.newest.version if row.newest is not None else ""
    asked = [each for each in row.evidence if each.column == "recipe"]
    verdict = ", ".join(row.verdicts) + (" (optional)" if row.judgements and row.judgements[0].optional else "")
    return row.dependency, _specs(telling), _specs(asked), newest, verdict


def _specs(evidence: Iterable[Stated]) -> str:
    """What several statements say, each once; any version last and only where nothing else is said."""
    specs = list(dict.fromkeys(_spec(each) for each in evidence))
    specs = [spec for spec in specs if spec != "*"] or specs
    more = f" +{len(specs) - _MOST_SPECS}" if len(specs) > _MOST_SPECS else ""
    return " / ".join(specs[:_MOST_SPECS]) + more


def _spec(each: Stated) -> str:
    return f"{each.spec} [{each.optional}]" if each.optional else each.spec


def _reasons(row: Dependency) -> Iterator[str]:
    shown = [each for each in row.judgements if each.verdict != "same"]
    for number, each in enumerate(shown[:_MOST_SPECS]):
        yield printable(f"{row.dependency if number == 0 else '':<18} {each.verdict}: {each.why}")
    if len(shown) > _MOST_SPECS:
        yield f"{'':<18} and {len(shown) - _MOST_SPECS} more: see --evidence --only {row.dependency}"


def _evidence(row: Dependency) -> Iterator[str]:
    yield printable(f"{row.dependency}: {', '.join(row.verdicts)}")
    for judgement in row.judgements:
        yield printable(f"  {judgement.verdict}: {judgement.why}")
    cells = [(each.column, each.spec, each.place, each.text, _remarks(each)) for each in row.evidence]
    if row.newest is not None:
        cells.append(("newest", row.newest.version, row.newest.file, plural(row.newest.releases, "version"), ""))
    widths = [max(len(cell[column]) for cell in cells) for column in range(3)]
    for column, spec, where, text, remarks in cells:
        head = f"  {column:<{widths[0]}}  {spec:<{widths[1]}}  {where:<{widths[2]}}  {text}".rstrip()
        yield printable(head)
        if remarks:
            yield printable(f"  {'':<{widths[0]}}    {remarks}")


def _remarks(each: Stated) -> str:
    parts = [each.when, f"extra {each.optional}" if each.optional else "", each.note]
    parts.append("" if each.confidence == "certain" else each.confidence)
    return "; ".join(filter(None, parts))


def _summary(rows: Iterable[Dependency]) -> str:
    counted = [row.verdicts[0] for row in rows if row.verdicts and not row.ci_only]
    told = [f"{counted.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in counted]
    return f"{plural(len(counted), 'dependency')}: {', '.join(told) or 'none'}"
