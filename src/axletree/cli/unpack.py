"""``axletree unpack``: wheels as folders, checked on the way."""

from __future__ import annotations

from pathlib import Path

import click

from axletree.app.unpack import unpack
from axletree.cli.notes import say_aside
from axletree.core.units import format_bytes
from axletree.view.tables import printable


@click.command()
@click.argument(
    "wheels",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="WHEEL...",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder to unpack into; else the present one.",
)
def command(wheels: tuple[Path, ...], out: Path) -> int:
    """Unpack wheels, checked against their RECORD.

    Each goes into a new folder NAME-VERSION, whose path is printed. A wheel that is damaged, or that does not hold what
    its RECORD says, leaves nothing behind.
    """
    for path in wheels:
        done = unpack(path, out=out)
        click.echo(done.folder)
        say_aside(f"  {done.files} files, {format_bytes(done.size)}")
        if done.unchecked:
            count = len(done.unchecked)
            name = printable(done.unchecked[0])
            say_aside(f"  note: RECORD has no SHA-256 for {count} of them, such as {name}")
    return 0
