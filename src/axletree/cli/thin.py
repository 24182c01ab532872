"""``axletree thin``: wheels, or single libraries, with the GPU code of some architectures only."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.epoch import source_date_epoch
from axletree.app.thin import ThinReport, ThinRequest, thin
from axletree.cli.notes import say_aside
from axletree.cli.options import FILE, PATH
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.errors import UsageError
from axletree.core.units import format_bytes
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.thin import LibrarySaving, ThinResult

_WIDTH = 120
_CUDA = re.compile(r"\d{2}\.\d")


@click.command(cls=ReportCommand, report=ThinReport)
@click.argument("file", type=FILE, metavar="WHEEL|LIBRARY")
@click.option(
    "--arch",
    "archs",
    multiple=True,
    help="Keep the code for this GPU, such as 90, sm_90 or gfx90a:xnack-. Repeatable.",
)
@click.option(
    "--arch-each", "each", is_flag=True, help="Write a separate result for each GPU that the input contains code for."
)
@click.option(
    "--keep-ptx",
    is_flag=True,
    help="Keep PTX, which drivers can compile for later GPUs, even if there is machine code for the GPU.",
)
@click.option(
    "--allow-missing",
    is_flag=True,
    help="Do not fail if some kernels already lack code for the requested GPU before thinning.",
)
@click.option(
    "--cuda",
    metavar="VERSION",
    help="CUDA version that the driver must support, such as 13.0; read from the wheel by default.",
)
@click.option("--out", type=PATH, default=Path("dist"), show_default=True, help="Folder to write the results to.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would be saved, by library and architecture, without writing anything."
)
def command(
    file: Path,
    archs: tuple[str, ...],
    cuda: str | None,
    out: Path,
    *,
    each: bool,
    keep_ptx: bool,
    allow_missing: bool,
    dry_run: bool,
) -> Reported:
    """Remove the code for unwanted GPUs from a wheel's libraries.

    Each fat binary keeps the entries that the driver may choose for a requested GPU; one that would become empty is an
    error. A wheel becomes a variant (PEP 825): its name and variant.json identify the GPU, and the folder gets the
    index file that installers use to choose a variant. Several --arch options make one wheel for all of these GPUs.
    """
    if each == bool(archs):
        raise UsageError(
            "specify either --arch for one result, or --arch-each for several",
            hint="use --arch 90, for example, or --arch-each",
        )
    if cuda is not None and not _CUDA.fullmatch(cuda):
        raise UsageError(f"--cuda: {cuda!r} is not a version", hint="write it as 13.0")
    request = ThinRequest(archs=archs, each=each, keep_ptx=keep_ptx, allow_missing=allow_missing, cuda=cuda)
    threads = len(os.sched_getaffinity(0))
    place, epoch = None if dry_run else out, source_date_epoch(os.environ)
    report = thin(file, request, out=place, epoch=epoch, threads=threads, note=say_aside)
    return Reported(report, lambda: _render(report, detailed=dry_run))


def _render(report: ThinReport, *, detailed: bool) -> Iterator[str]:
    yield f"{click.style(report.input, bold=True)}  {format_bytes(report.size)}"
    for result in report.results:
        if result.refused:
            yield click.style(f"{', '.join(result.gpus)}: no result", fg="yellow")
            yield from (f"  {printable(reason)}" for reason in result.refused)
            continue
        yield from _result(result, report, detailed=detailed)
    yield from (click.style(f"left unchanged: {printable(text)}", fg="yellow") for text in report.unread)
    if report.index:
        yield report.index
    yield _closing(report)


def _closing(report: ThinReport) -> str:
    """What dropping means for sizes."""
    libraries = [library for result in report.results for library in result.libraries if library.dropped]
    if libraries and all(library.saved for library in libraries):
        return "Dropped code takes up no space, neither in the download nor once installed."
    wheel = report.input.endswith(".whl")
    zeros = (
        "the download gets smaller, but the installed size does not change."
        if wheel
        else "the file compresses better, but its size does not change."
    )
    where = " unless noted otherwise" if any(library.saved for library in libraries) else ""
    return f"Dropped code becomes zeros{where}: {zeros}"


def _result(result: ThinResult, report: ThinReport, *, detailed: bool) -> Iterator[str]:
    about = "" if report.written else "about "
    head = result.file if report.written else f"{', '.join(result.gpus)} -> {result.file}"
    yield click.style(head, fg="green") + (f"  {about}{format_bytes(result.size)}" if result.label else "")
    if result.properties and detailed:
        yield from (f"  {text}" for text in result.properties)
    for library in result.libraries:
        kept = sum(arch.kept_size for arch in library.archs)
        saved = f", about {format_bytes(library.download)} less to download" if not report.written else ""
        whole = format_bytes(kept + library.dropped)
        smaller = f", {format_bytes(library.saved)} smaller once installed" if library.saved else ""
        yield f"  {printable(library.path)}: keeps {format_bytes(kept)} of {whole} of GPU code{smaller}{saved}"
        if detailed:
            yield from _archs(library)
        yield from (f"    note: {printable(note)}" for note in library.notes)


def _archs(library: LibrarySaving) -> Iterator[str]:
    rows = [
        (
            arch.arch,
            f"{arch.entries:,}",
            format_bytes(arch.size),
            format_bytes(arch.kept_size) if arch.kept_size else "-",
            format_bytes(arch.size - arch.kept_size) if arch.kept_size < arch.size else "-",
        )
        for arch in library.archs
    ]
    headers = ("architecture", "entries", "bytes", "kept", "dropped")
    yield render_table(headers, rows, width=_WIDTH, right=(1, 2, 3, 4), indent="    ")
    other = format_bytes(library.size - library.code)
    yield f"    {other} in other sections are left unchanged, even if they contain GPU code"
