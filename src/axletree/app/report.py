"""Write the report of a build into its output folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.index_root import write_beside_roots
from axletree.app.publish import REPORT
from axletree.host import machine
from axletree.view.report import render_report
from axletree.view.report_data import report_data

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from axletree.app.build import Built
    from axletree.core.records import StageRecord
    from axletree.host.folder_lock import Note


def write_report(built: Built, out: Path, *, note: Note) -> Path:
    """Write ``report.html`` and return its path; ``note`` is told whom this waits for, when it has to.

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
    write_beside_roots(path, render_report(data).encode(), note=note)
    return path


def isolation_text(records: Iterable[StageRecord]) -> str:
    """What isolation the stages had that made some records, on whichever machine that was."""
    granted = [record.isolation for record in records if record.isolation]
    lacking = sorted({name for kinds in granted for name, was_granted in kinds.items() if not was_granted})
    if not granted:
        return "stage isolation was not recorded"
    return f"stages not isolated: {', '.join(lacking)}" if lacking else "stages isolated"
