"""``axletree rebuild``: bring an editable source tree up to date."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from axletree.app.dev import rebuild
from axletree.cli.dev import bring_up


@click.command(help="Rebuild what changed in an editable source tree, the one that you are in or DIR.")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, folder: Path | None, as_json: bool) -> None:
    """Rebuild; exit 0 when the tree is up to date, else as what failed."""
    bring_up(partial(rebuild, folder or Path()), as_json=as_json)
