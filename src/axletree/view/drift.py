"""Dependency drift as text and as JSON."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Protocol

from axletree.core.units import plural
from axletree.package.drift.evidence import UPSTREAM, Evidence, place
from axletree.package.drift.ranges import describe
from axletree.package.drift.verdict import VERDICTS
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.core.findings import Finding
    from axletree.package.drift.verdict import Row

SCHEMA = 1
_MOST_SPECS = 3
_HEADERS = ("dependency", "upstream", "recipe", "newest", "verdict")


class Report(Protocol):
    """What is shown: see ``axletree.app.drift.DriftReport``."""

    @property
    def recipe(self) -> str:
        """Name of the recipe."""

    @property
    def version(self) -> str:
        """The upstream version that all inputs are of."""

    @property
    def inputs(self) -> Sequence[Any]:
        """Inputs, with the version of each."""

    @property
    def rows(self) -> Sequence[Row]:
        """A row for each dependency."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Where upstream contradicts itself."""

    @property
    def notes(self) -> Sequence[str]:
        """What one should know of the inputs."""


def drift_text(report: Report, *, width: int, evidence: bool, only: Sequence[str] = ()) -> str:
    """The table, why each row has its verdict, and where upstream contradicts itself.

    Args:
        report: what was compared.
        width: columns of the terminal.
        evidence: show every statement, and what only upstream's CI uses.
        only: show these dependencies alone.
    """
    chosen = [row for row in report.rows if (evidence or not row.secondary) and (not only or row.dependency in only)]
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
    lines += _contradictions(report.findings if not only else ())
    hidden = len([row for row in report.rows if row.secondary]) if not (evidence or only) else 0
    if hidden:
        what = "is" if hidden == 1 else "are"
        lines += ["", f"{hidden} more {what} only pinned by upstream's CI or looked for by CMake; see --evidence"]
    lines += [""] * bool(report.notes) + [printable(f"note: {note}") for note in report.notes]
    return "\n".join([*lines, "", _summary(report.rows)])


def _cells(row: Row) -> tuple[str, ...]:
    upstream = [each for column in UPSTREAM for each in row.evidence if each.column == column]
    telling = [each for each in upstream if each.role != "mention"] or upstream
    newest = row.offer.versions[-1][1] if row.offer is not None else ""
    asked = [each for each in row.evidence if each.column == "recipe"]
    verdict = ", ".join(row.verdicts) + (" (optional)" if row.judgements and row.judgements[0].optional else "")
    return row.dependency, _specs(telling), _specs(asked), newest, verdict


def _specs(evidence: Iterable[Evidence]) -> str:
    """What several statements say, each once; any version last and only where nothing else is said."""
    specs = list(dict.fromkeys(_spec(each) for each in evidence))
    specs = [spec for spec in specs if spec != "*"] or specs
    more = f" +{len(specs) - _MOST_SPECS}" if len(specs) > _MOST_SPECS else ""
    return " / ".join(specs[:_MOST_SPECS]) + more


def _spec(each: Evidence) -> str:
    return f"{each.spec} [{each.optional}]" if each.optional else each.spec


def _reasons(row: Row) -> Iterator[str]:
    shown = [each for each in row.judgements if each.verdict != "same"]
    for number, each in enumerate(shown[:_MOST_SPECS]):
        yield printable(f"{row.dependency if number == 0 else '':<18} {each.verdict}: {each.why}")
    if len(shown) > _MOST_SPECS:
        yield f"{'':<18} and {len(shown) - _MOST_SPECS} more: see --evidence --only {row.dependency}"


def _evidence(row: Row) -> Iterator[str]:
    yield printable(f"{row.dependency}: {', '.join(row.verdicts)}")
    for judgement in row.judgements:
        yield printable(f"  {judgement.verdict}: {judgement.why}")
    cells = [(each.column, each.spec, place(each), each.text, _remarks(each)) for each in row.evidence]
    if row.offer is not None:
        newest = row.offer.versions[-1][1]
        cells.append(("newest", newest, row.offer.file, plural(len(row.offer.versions), "version"), ""))
    widths = [max(len(cell[column]) for cell in cells) for column in range(3)]
    for column, spec, where, text, remarks in cells:
        head = f"  {column:<{widths[0]}}  {spec:<{widths[1]}}  {where:<{widths[2]}}  {text}".rstrip()
        yield printable(head)
        if remarks:
            yield printable(f"  {'':<{widths[0]}}    {remarks}")


def _remarks(each: Evidence) -> str:
    parts = [each.when, f"extra {each.optional}" if each.optional else "", each.note]
    parts.append("" if each.confidence == "certain" else each.confidence)
    return "; ".join(filter(None, parts))


def _contradictions(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        yield ""
        yield printable(f"{finding.severity}: {finding.message}")
        yield from (printable(f"  {line}") for line in finding.evidence)


def _summary(rows: Iterable[Row]) -> str:
    counted = [row.verdicts[0] for row in rows if row.verdicts and not row.secondary]
    told = [f"{counted.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in counted]
    return f"{plural(len(counted), 'dependency')}: {', '.join(told) or 'none'}"


def drift_document(report: Report) -> dict[str, object]:
    """All of it, for programs."""
    return {
        "schema": SCHEMA,
        "recipe": report.recipe,
        "version": report.version,
        "inputs": report.inputs,
        "dependencies": [_row(row) for row in report.rows],
        "contradictions": report.findings,
        "notes": report.notes,
    }


def _row(row: Row) -> dict[str, object]:
    newest = None if row.offer is None else {"version": row.offer.versions[-1][1], "file": row.offer.file}
    return {
        "dependency": row.dependency,
        "verdicts": row.verdicts,
        "judgements": row.judgements,
        "newest": newest,
        "ci_only": row.secondary,
        "evidence": [_statement(each) for each in row.evidence],
    }


def _statement(each: Evidence) -> dict[str, object]:
    fields = {name: getattr(each, name) for name in each.__struct_fields__ if name not in {"dependency", "range"}}
    return fields | {"range": None if each.range is None else describe(each.range)}
