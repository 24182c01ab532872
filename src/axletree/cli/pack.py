"""``axletree pack``: a folder as a wheel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.epoch import source_date_epoch
from axletree.app.pack import PackedFolder, pack
from axletree.binary.zip.deflate import LEVEL
from axletree.cli.notes import say_aside
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(cls=ReportCommand, report=PackedFolder)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder for the wheel; the current folder by default.",
)
@click.option(
    "--build", metavar="TAG", help="Build tag, which starts with a digit; '' for none. By default, the one in WHEEL."
)
@click.option(
    "--level",
    type=click.IntRange(0, 9),
    default=LEVEL,
    show_default=True,
    help="Compression level: 0 stores, 9 is smallest.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    default=lambda: min(64, len(os.sched_getaffinity(0))),
    show_default="all cores",
    help="Number of compression threads. The wheel does not depend on it.",
)
@click.option(
    "--from",
    "older",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="WHEEL",
    help="Wheel to copy unchanged members from without recompressing them.",
)
def command(folder: Path, out: Path, build: str | None, level: int, threads: int, older: Path | None) -> Reported:
    """Pack a folder created by unpack into a wheel.

    METADATA and WHEEL in its *.dist-info determine the wheel's file name; RECORD is rewritten. The same content
    always produces the same bytes; SOURCE_DATE_EPOCH sets the date of the members. Prints the path of the wheel.
    """
    epoch = source_date_epoch(os.environ)
    done = pack(folder, out=out, build=build, level=level, threads=threads, older=older, epoch=epoch)
    return Reported(done, lambda: _lines(done, older))


def _lines(done: PackedFolder, older: Path | None) -> Iterator[str]:
    yield str(done.wheel)
    reused = f", {done.reused} of them copied from {older}" if older is not None else ""
    say_aside(f"  {plural(done.files, 'file')}{reused}, {format_bytes(done.size)}")
    if done.left_out:
        names = ", ".join(done.left_out)
        say_aside(f"  note: left out because it describes a different wheel: {names}")
