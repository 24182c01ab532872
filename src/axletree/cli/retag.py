"""``axletree retag``: the same wheel under other tags."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from axletree.app.epoch import source_date_epoch
from axletree.app.retag import RetaggedWheels, retag
from axletree.cli.notes import say_aside
from axletree.cli.options import PATH, wheels_argument
from axletree.cli.reporting import ReportCommand, Reported, until_error
from axletree.core.errors import UsageError
from axletree.package.wheel.retag import Wishes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@click.command(cls=ReportCommand, report=RetaggedWheels)
@wheels_argument
@click.option("--python", metavar="TAGS", help="Set the Python tags, such as cp311 or py2.py3.")
@click.option("--abi", metavar="TAGS", help="Set the ABI tags, such as cp311, abi3 or none.")
@click.option("--platform", metavar="TAGS", help="Set the platform tags, such as manylinux_2_28_x86_64.")
@click.option("--build", metavar="TAG", help="Set the build tag, which must start with a digit; '' removes it.")
@click.option("--local", metavar="LABEL", help="Set the version's local label, such as cu130; '' removes it.")
@click.option("--out", type=PATH, help="Folder for the new wheels; by default, the folder of the old ones.")
def command(wheels: tuple[Path, ...], out: Path | None, **wanted: str | None) -> Reported:
    """Change the tags, build tag or local version of wheels.

    TAGS replace the existing ones; a leading + adds tags, and a leading - removes them (--abi=-none). The content is
    copied without recompressing it. The old wheels are kept; prints the paths of the new ones.
    """
    wishes = Wishes(**wanted)
    if wishes == Wishes():
        raise UsageError(
            "nothing to change", hint="specify at least one of --python, --abi, --platform, --build and --local"
        )
    epoch, threads = source_date_epoch(os.environ), len(os.sched_getaffinity(0))
    done, error = until_error(wheels, lambda path: retag(path, wishes, out=out, epoch=epoch, threads=threads))
    report = RetaggedWheels(wheels=done)
    return Reported(report, lambda: _lines(report), error=error)


def _lines(report: RetaggedWheels) -> Iterator[str]:
    for done in report.wheels:
        yield str(done.wheel)
        if done.unsigned:
            say_aside("  note: the old wheel's signature is left out because it is not valid for the new wheel")
