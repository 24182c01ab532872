"""A preset as text: its jobs, its packages, and what is counted as one of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.units import plural
from axletree.view.tables import render_table

if TYPE_CHECKING:
    from axletree.recipe.presets import PresetReport

_DEFINITIONS = {
    "configurations": "jobs; variants built by the same job have these values in common",
    "variants": "combinations of one value from each axis, except excluded ones",
    "packages": "package files: one for each package name and combination of its axes' values",
}


def preset_text(report: PresetReport, *, width: int) -> str:
    """A preset as two tables, its totals, and what they count."""
    jobs = render_table(
        ["CONFIGURATION", "VARIANTS", "PACKAGES"],
        [[job.id, f"{len(job.variants):,}", f"{job.packages:,}"] for job in report.configurations],
        width=width,
        right=(1, 2),
    )
    rows = [[row.name, f"{row.count:,}", ", ".join(row.axes)] for row in report.packages]
    packages = render_table(["PACKAGE", "COUNT", "DIFFERS BY"], rows, width=width, right=(1,))
    totals = ", ".join(
        plural(count, name.removesuffix("s")) for name, count in msgspec.structs.asdict(report.totals).items()
    )
    definitions = [f"  {name}: {text}" for name, text in _DEFINITIONS.items()]
    tables = [jobs, packages] if report.packages else [jobs]
    return "\n\n".join([report.summary, *tables, "\n".join([f"{report.name}: {totals}", *definitions])])
