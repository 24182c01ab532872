"""``axletree unpack``: wheels as folders, checked on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.unpack import UnpackedWheels, unpack
from axletree.cli.notes import say_aside
from axletree.cli.options import PATH, wheels_argument
from axletree.cli.reporting import ReportCommand, Reported, until_error
from axletree.core.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(cls=ReportCommand, report=UnpackedWheels)
@wheels_argument
@click.option("--out", type=PATH, default=Path(), help="Folder to unpack into; the current folder by default.")
def command(wheels: tuple[Path, ...], out: Path) -> Reported:
    """Unpack wheels and check them against their RECORD.

    Each wheel goes into a new folder NAME-VERSION, whose path is printed. A wheel that is damaged, or that does not
    match its RECORD, leaves nothing behind.
    """
    done, error = until_error(wheels, lambda path: unpack(path, out=out))
    report = UnpackedWheels(wheels=done)
    return Reported(report, lambda: _lines(report), error=error)


def _lines(report: UnpackedWheels) -> Iterator[str]:
    for done in report.wheels:
        yield str(done.folder)
        say_aside(f"  {plural(done.files, 'file')}, {format_bytes(done.size)}")
        if done.unchecked:
            count = len(done.unchecked)
            say_aside(f"  note: RECORD has no SHA-256 for {count} of these files, such as {done.unchecked[0]}")
