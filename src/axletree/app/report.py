"""Write the report of a build into its output folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.publish import REPORT, put_beside_index
from axletree.host import machine
from axletree.view.report import render_report
from axletree.view.report_data import report_data

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from axletree.app.build import Built
    from axletree.core.records import StageRecord


def write_report(built: Built, out: Path) -> Path:
    """Write ``report.html`` and return its path.

    Raises:
        HostError: the folder cannot be written, or its disk is full.
    """
    prepared = built.prepared
    records = {
        stage: resolved.record for stage, resolved in built.result.resolved.items() if resolved.record is not None
    }
    data = report_data(
        built.view,
        records=records,
        parameters={stage.id: stage.step.parameters for stage in prepared.plan.stages.values()},
        recipe_name=prepared.plan.recipe,
        recipe_version=prepared.plan.version,
        host={**machine.summary(), "isolation": isolation_text(records.values())},
        toolchain={name: tool.fingerprint["version"] for name, tool in prepared.tools.items()},
        environments={name: environment.lock for name, environment in prepared.inputs.environments.items()},
        install=built.install,
    )
    path = out / REPORT
    put_beside_index(path, render_report(data).encode())
    return path


def isolation_text(records: Iterable[StageRecord]) -> str:
    """What isolation the stages had that made some records, on whichever machine that was."""
    granted = [record.isolation for record in records if record.isolation]
    lacking = sorted({name for kinds in granted for name, was_granted in kinds.items() if not was_granted})
    if not granted:
        return "isolation of stages not recorded"
    return f"stages not isolated: {', '.join(lacking)}" if lacking else "stages isolated"
