"""The packages of an SDK that were built, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import format_bytes, plural
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.report.sdk import SdkReport

_NOTES = 10


def built_text(report: SdkReport, *, install: Sequence[str], width: int) -> str:
    """A table of wheels, what hosts must bring, and how to install them."""
    rows = [
        (
            wheel.file,
            f"{wheel.files:,}",
            format_bytes(wheel.size),
            format_bytes(wheel.installed),
            ", ".join(wheel.targets),
        )
        for wheel in report.wheels
    ]
    headers = ("wheel", "files", "download", "installed", "GPUs")
    table = render_table(headers, rows, width=width, right=(1, 2, 3))
    wrote = f"wrote {plural(len(report.wheels), 'wheel')} to {report.out}"
    return "\n".join([table, *_more(report), wrote, *install])


def _more(report: SdkReport) -> Iterator[str]:
    if report.dropped:
        yield f"dropped by the manifest: {plural(report.dropped, 'file')}"
    system = sorted({soname for wheel in report.wheels for soname in wheel.system})
    if system:
        yield f"hosts must provide: {', '.join(map(printable, system))}"
    yield from (f"note: {printable(note)}" for note in report.notes[:_NOTES])
    if len(report.notes) > _NOTES:
        yield f"and {plural(len(report.notes) - _NOTES, 'more note')}; --json lists them all"
