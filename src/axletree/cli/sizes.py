"""``axletree sizes``: where the bytes of wheels and libraries are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from axletree.app.sizes import Sizes, measure_path
from axletree.cli.options import EXISTING
from axletree.cli.reporting import ReportCommand, Reported, until_error
from axletree.core.units import format_bytes, plural
from axletree.package.gpu.arch import gpu_of, parse_code
from axletree.view.tables import printable, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from axletree.package.sizes import ArchTotal, PartSize, SizeReport

_ROWS = 12
_WIDTH = 120


@click.command(cls=ReportCommand, report=Sizes)
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="WHEEL|FOLDER|FILE...")
def command(paths: tuple[Path, ...]) -> Reported:
    """Show what takes up space: by folder, ELF section and GPU architecture.

    Also shows what the loader never reads, and how much stripping or thinning would save.
    """
    inputs, error = until_error(paths, measure_path)
    return Reported(Sizes(inputs=inputs), lambda: _lines(inputs), error=error)


def _lines(inputs: Sequence[SizeReport]) -> Iterator[str]:
    for index, report in enumerate(inputs):
        if index:
            yield ""
        yield from _render(report)


def _render(report: SizeReport) -> Iterator[str]:
    size = f"{format_bytes(report.size)} in {plural(report.files, 'file')}"
    packed = f", {format_bytes(report.compressed)} compressed" if report.packed else ""
    yield f"{click.style(report.input, bold=True)}  {size}{packed}"
    if report.files > 1:
        yield from _parts(report)
    yield from _sections(report)
    yield from _archs(report.archs)
    yield from _savings(report)
    yield from (click.style(f"  could not be read: {printable(text)}", fg="yellow") for text in report.damaged)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int], more: int) -> Iterator[str]:
    yield ""
    yield render_table(headers, rows, width=_WIDTH, right=right, indent="  ")
    if more > 0:
        yield f"  and {more:,} more"


def _parts(report: SizeReport) -> Iterator[str]:
    packed = ("compressed",) if report.packed else ()
    rows = [(part.path, f"{part.files:,}", *_both(part, report)) for part in report.parts[:_ROWS]]
    yield from _table(("part", "files", "size", *packed), rows, right=(1, 2, 3), more=len(report.parts) - _ROWS)
    rows = [(part.path, *_both(part, report)) for part in report.largest]
    yield from _table(("largest files", "size", *packed), rows, right=(1, 2), more=0)


def _both(part: PartSize, report: SizeReport) -> tuple[str, ...]:
    size = format_bytes(part.size)
    return (size, format_bytes(part.compressed)) if report.packed else (size,)


def _sections(report: SizeReport) -> Iterator[str]:
    if report.sections:
        rows = [
            (section.name, f"{section.files:,}", format_bytes(section.size), "" if section.loaded else "not loaded")
            for section in report.sections[:_ROWS]
        ]
        yield from _table(("section", "files", "size", ""), rows, right=(1, 2), more=len(report.sections) - _ROWS)


def _archs(archs: Sequence[ArchTotal]) -> Iterator[str]:
    if archs:
        rows = [
            (
                arch.arch,
                arch.section,
                "PTX" if arch.arch.startswith("compute_") else arch.form,
                f"{arch.entries:,}",
                format_bytes(arch.size),
                format_bytes(arch.unpacked) if arch.unpacked else "",
            )
            for arch in archs
        ]
        headers = ("GPU code for", "section", "form", "entries", "size", "unpacked")
        yield from _table(headers, rows, right=(3, 4, 5), more=0)


def _savings(report: SizeReport) -> Iterator[str]:
    gpus: dict[str, int] = {}
    for arch in report.archs:
        code = parse_code(arch.arch)
        gpu = gpu_of(code) if code is not None else None  # code for 90 and for 90a is all for one
        if gpu is not None:
            gpus[gpu.name] = gpus.get(gpu.name, 0) + arch.size
    if report.strippable or len(gpus) > 1:
        yield ""
    if report.strippable:
        yield (
            f"  strip would save about {format_bytes(report.strippable)}: symbols and debug information of "
            f"{plural(len(report.unloaded), 'file')}, which the loader does not read"
        )
    if len(gpus) > 1:
        whole = sum(arch.size for arch in report.archs)
        yield (
            f"  thin would save most of the {format_bytes(whole)} of GPU code in the download, but nothing once "
            f"installed: no single GPU has more than {format_bytes(max(gpus.values()))} of code"
        )
