"""``axletree retag``: the same wheel under other tags."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.epoch import source_date_epoch
from axletree.app.retag import RetaggedWheels, retag
from axletree.cli.notes import say_aside
from axletree.cli.reporting import ReportCommand, Reported, until_error
from axletree.core.errors import UsageError
from axletree.package.wheel.retag import Wishes

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(cls=ReportCommand, report=RetaggedWheels)
@click.argument(
    "wheels",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="WHEEL...",
)
@click.option("--python", metavar="TAGS", help="Python tags: cp311, or a set such as py2.py3.")
@click.option("--abi", metavar="TAGS", help="ABI tags: abi3, cp311, none.")
@click.option("--platform", metavar="TAGS", help="Platform tags: manylinux_2_28_x86_64.")
@click.option("--build", metavar="TAG", help="Build tag, which starts with a digit; '' removes it.")
@click.option("--local", metavar="LABEL", help="Local label of the version, such as cu130; '' removes it.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for the new wheels; by default, the folder of the old ones."
)
def command(
    wheels: tuple[Path, ...],
    python: str | None,
    abi: str | None,
    platform: str | None,
    build: str | None,
    local: str | None,
    out: Path | None,
) -> Reported:
    """Change the tags, build tag or local version of wheels.

    TAGS replace the existing ones; a leading + adds tags, and a leading - removes them (--abi=-none). The content is
    copied without recompressing it. The old wheels are kept; prints the paths of the new ones.
    """
    wishes = Wishes(python=python, abi=abi, platform=platform, build=build, local=local)
    if wishes == Wishes():
        raise UsageError("nothing to change", hint="specify at least one of --python --abi --platform --build --local")
    epoch, threads = source_date_epoch(os.environ), len(os.sched_getaffinity(0))
    done, error = until_error(wheels, lambda path: retag(path, wishes, out=out, epoch=epoch, threads=threads))
    report = RetaggedWheels(wheels=done)
    return Reported(report, lambda: _lines(report), error=error)


def _lines(report: RetaggedWheels) -> Iterator[str]:
    for done in report.wheels:
        yield str(done.wheel)
        if done.unsigned:
            say_aside("  note: the old wheel's signature is left out because it is not valid for the new wheel")
