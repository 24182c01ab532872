"""The HTML report: one file that needs no other, from :class:`ReportData`."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from axletree.core.findings import SEVERITIES
from axletree.core.units import format_bytes, format_clock, format_duration, plural
from axletree.view.charts import memory_chart, timeline
from axletree.view.report_data import InstallCommand, ReportData, report_data
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.view.state import RunView, StageView

__all__ = ["InstallCommand", "ReportData", "render_report", "report_data"]

MAX_ROWS = 2000
"""Stages in the table: of more, the failed and the longest are shown."""

FOLD_ROWS = 40
"""Tables with more rows than this start closed."""


def render_report(data: ReportData) -> str:
    """The report as a page that loads nothing and runs only its own script.

    The content security policy names the digests of the page's one style sheet and one script, so that text from a log
    or a package could not run even if it got into the page unescaped.
    """
    environment = _environment()
    style = Markup(environment.get_template("report.css").render())  # noqa: S704 (a file of this package)
    script = Markup(environment.get_template("report.js").render())  # noqa: S704 (a file of this package)
    return environment.get_template("report.html.j2").render(
        data=data,
        run=data.run,
        stages=_worth_showing(tuple(data.run.stages.values())),
        timeline=timeline(data.run),
        memory=memory_chart(data.run),
        tiles=_tiles(data),
        style=style,
        script=script,
        policy=(
            f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
        largest=max((package.size or 0 for package in data.packages), default=0),
        fold=FOLD_ROWS,
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("axletree.view", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    environment.filters |= {
        "bytes": format_bytes,
        "clock": format_clock,
        "duration": format_duration,
        "iso": lambda time: datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds"),
        "moment": _moment,
        "plural": plural,
        "share": _share,
        "variants": _variants,
    }
    return environment


def _clean(value: object) -> object:
    """Text of logs and packages without control characters; markup of our own as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _source(text: str) -> str:
    """A CSP source expression that allows exactly this inline text (CSP level 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _worth_showing(stages: tuple[StageView, ...]) -> tuple[StageView, ...]:
    """All stages in plan order; of very many, those that failed or took longest."""
    if len(stages) <= MAX_ROWS:
        return stages
    return tuple(sorted(stages, key=lambda stage: (stage.status != "failed", -stage.elapsed(0.0)))[:MAX_ROWS])


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _share(value: float, whole: float) -> float:
    """Percent, for the width of a bar; at least a visible sliver."""
    return max(1.0, round(100 * value / whole, 2)) if whole and value else 0.0


def _variants(names: Sequence[str], total: int) -> str:
    if total > 1 and len(names) == total:
        return f"all {total}"
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} of {total}"


def _tiles(data: ReportData) -> list[tuple[str, str, str]]:
    """The figures at the top: label, value, what it consists of."""
    run = data.run
    new = [package for package in data.packages if package.status in ("new", "unchanged")]
    size = format_bytes(sum(package.size or 0 for package in new))
    tiles = [
        ("Stages", f"{len(run.stages):,}", _counts(run)),
        ("Time", format_duration(run.wall), f"{format_duration(_work(run))} of work"),
        ("Wheels", f"{len(new):,}", size if new else "none published"),
    ]
    if data.tests:
        passed = sum(test.status in ("done", "cached") for test in data.tests)
        tiles.append(("Tests", f"{passed} of {len(data.tests)}", "passed"))
    counts = dict.fromkeys(SEVERITIES, 0)
    for group in data.findings:
        counts[group.finding.severity] += len(group.places)
    said = [plural(counts[severity], severity) for severity in ("error", "warning") if counts[severity]]
    tiles.append(("Findings", f"{sum(counts.values()):,}", ", ".join(said) or "no warning"))
    return tiles


def _counts(run: RunView) -> str:
    words = (("failed", "failed"), ("done", "ran"), ("cached", "from the store"), ("blocked", "not reached"))
    counts = [(sum(stage.status == status for stage in run.stages.values()), word) for status, word in words]
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)


def _work(run: RunView) -> float:
    return sum(stage.elapsed(run.latest) for stage in run.stages.values() if stage.started is not None)
