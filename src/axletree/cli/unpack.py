"""``axletree unpack``: wheels as folders, checked on the way."""

from __future__ import annotations

from pathlib import Path

import click

from axletree.app.unpack import unpack
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
    help="Folder to unpack into; the current one by default.",
)
def command(wheels: tuple[Path, ...], out: Path) -> int:
    """Unpack wheels and check them against their RECORD.

    Each wheel goes into a new folder NAME-VERSION, whose path is printed. A wheel that is damaged, or that does not
    match its RECORD, leaves nothing behind.
    """
    for path in wheels:
        done = unpack(path, out=out)
        click.echo(done.folder)
        click.echo(f"  {done.files} files, {format_bytes(done.size)}", err=True)
        if done.unchecked:
            count = len(done.unchecked)
            name = printable(done.unchecked[0])
            click.echo(f"  note: RECORD has no SHA-256 for {count} of them, such as {name}", err=True)
    return 0
