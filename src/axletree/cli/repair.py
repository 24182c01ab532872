"""``axletree repair``: make wheels that can be loaded on a clean machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.epoch import source_date_epoch
from axletree.app.repair import RepairedWheels, repair_wheel
from axletree.cli.options import FOLDER, PATH, wheels_argument
from axletree.cli.reporting import ReportCommand, Reported, until_error
from axletree.core.errors import UsageError
from axletree.core.units import format_bytes, parse_size, plural
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.repair import RepairedWheel


@click.command(cls=ReportCommand, report=RepairedWheels)
@wheels_argument
@click.option("--out", type=PATH, default=Path("wheelhouse"), show_default=True, help="Folder to write the results to.")
@click.option(
    "--policy",
    metavar="TAG",
    help="Platform tag to give the wheels, such as manylinux_2_28; the lowest possible tag by default.",
)
@click.option(
    "--library-path",
    multiple=True,
    type=FOLDER,
    help="Folder to search for libraries before the system folders. Repeatable.",
)
@click.option(
    "--max-graft",
    default="64 MB",
    show_default=True,
    metavar="SIZE",
    help="Fail if a library to copy is larger than SIZE.",
)
def command(
    wheels: tuple[Path, ...],
    out: Path,
    policy: str | None,
    library_path: tuple[Path, ...],
    max_graft: str,
) -> Reported:
    """Copy missing libraries into wheels, unless another distribution provides them, and retag the wheels.

    Libraries of torch, NVIDIA, ROCm and drivers are never copied: the distribution that owns them provides them. Each
    copied library gets a name that contains its digest; the bill of materials records where it came from.
    """
    limit = _limit(max_graft)
    epoch, threads = source_date_epoch(os.environ), len(os.sched_getaffinity(0))

    def repair(path: Path) -> RepairedWheel:
        return repair_wheel(
            path, out, policy=policy, library_path=library_path, max_graft=limit, epoch=epoch, threads=threads
        )

    done, error = until_error(wheels, repair)
    return Reported(RepairedWheels(wheels=done), lambda: (line for each in done for line in _lines(each)), error=error)


def _limit(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"--max-graft: {error}") from error


def _lines(result: RepairedWheel) -> Iterator[str]:
    yield click.style(result.wheel, bold=True)
    for library in result.grafts:
        source = f" ({library.package} {library.version})" if library.package else ""
        yield f"  copied {library.origin}{source}, {format_bytes(library.size)}, to {printable(library.path)}"
    for left in result.left:
        note = "" if left.declared else click.style(f"; the wheel does not require {left.owner}", fg="yellow")
        yield f"  not copied: {printable(left.soname)}, which {left.owner} provides{note}"
    if result.relinked:
        files = printable(", ".join(result.relinked[:5]))
        yield f"  changed library names and search paths in {plural(len(result.relinked), 'file')}: {files}"
    if result.platform != result.before:
        yield f"  tag: {result.before} -> {result.platform}"
    if not result.grafts:
        yield "  no libraries were missing"
    yield f"  wrote {result.path}, {format_bytes(result.size)}"
