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
from axletree.cli.options import FILE, FOLDER, PATH, threads_option
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.units import format_bytes, plural

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(cls=ReportCommand, report=PackedFolder)
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--out", type=PATH, default=Path(), help="Folder to write the wheel to; the current folder by default.")
@click.option(
    "--build",
    metavar="TAG",
    help="Build tag, which must start with a digit; '' for none. By default, the one in the folder's WHEEL file.",
)
@click.option(
    "--level",
    type=click.IntRange(0, 9),
    default=LEVEL,
    show_default=True,
    help="Compression level, from 0 (no compression) to 9 (smallest file).",
)
@threads_option("the wheel")
@click.option(
    "--from",
    "older",
    type=FILE,
    metavar="WHEEL",
    help="Earlier wheel to copy unchanged files from, instead of compressing them again.",
)
def command(folder: Path, out: Path, build: str | None, level: int, threads: int, older: Path | None) -> Reported:
    """Create a wheel from a folder that `axletree unpack` created.

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
