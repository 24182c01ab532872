"""``axletree rebuild``: bring an editable source tree up to date."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.dev import Developed, rebuild
from axletree.cli.dev import bring_up
from axletree.cli.options import FOLDER_PATH
from axletree.cli.reporting import ReportCommand

if TYPE_CHECKING:
    from axletree.cli.reporting import Reported


@click.command(cls=ReportCommand, report=Developed)
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER_PATH)
def command(*, folder: Path | None) -> Reported:
    """Rebuild what changed in an editable source tree: the current one, or DIR."""
    return bring_up(partial(rebuild, folder or Path()))
