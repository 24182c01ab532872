"""``axletree split``: take one wheel apart into several distributions that install together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.epoch import source_date_epoch
from axletree.app.split import SplitOutcome, load_split_rules, split_wheel
from axletree.cli.notes import say_aside
from axletree.cli.options import FILE, PATH
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.units import format_bytes, plural
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.split import Format

_NOTES = 10


@click.command(cls=ReportCommand, report=SplitOutcome)
@click.argument("wheel", type=FILE)
@click.option(
    "--rules",
    metavar="FILE_OR_NAME",
    help="Rules file, or the name of rules that ship with Axletree; by default, those for the wheel's project.",
)
@click.option(
    "--out",
    type=PATH,
    default=Path("dist"),
    show_default=True,
    help="Folder to write the parts and their package index to.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(["wheel", "conda"]),
    default=["wheel"],
    show_default=True,
    help="Package format of the parts. Repeat it to write several formats.",
)
@click.option(
    "--no-verify", is_flag=True, help="Do not verify the parts after writing them, which saves a third of the time."
)
@click.option("--dry-run", is_flag=True, help="Show which part each file would go to, without writing anything.")
def command(
    wheel: Path,
    rules: str | None,
    out: Path,
    formats: tuple[Format, ...],
    *,
    no_verify: bool,
    dry_run: bool,
) -> Reported:
    """Split a wheel into several distributions that install together.

    Each file goes to exactly one package, or is dropped for a reason that the rules state. Nothing appears in the
    output folder until every part has been read back and finds its libraries.
    """
    outcome = split_wheel(
        wheel,
        load_split_rules(rules, wheel=wheel),
        out,
        formats=formats,
        verify=not no_verify,
        dry_run=dry_run,
        epoch=source_date_epoch(os.environ),
        note=say_aside,
    )
    return Reported(outcome, lambda: _render(outcome))


def _render(outcome: SplitOutcome) -> Iterator[str]:
    report = outcome.split
    yield click.style(report.wheel, bold=True)
    sizes = {each.path.name: format_bytes(each.size) for each in outcome.written}
    width = max(len(package.name) for package in report.packages)
    for package in report.packages:
        written = f", {sizes[package.filename]} as a wheel" if package.filename in sizes else ""
        counts = f"{plural(package.files, 'file'):>12}, {format_bytes(package.size)}{written}"
        yield f"  {package.name:{width}}  {counts if package.files else 'requires the other packages'}"
    for part in report.conda:
        compiled = f", {plural(part.compiled, 'compiled file')}" if part.compiled else ""
        yield f"  {part.filename}: {sizes[part.filename.rpartition('/')[2]]}{compiled}"
    for rule in report.dropped:
        yield click.style(
            f"  dropped: {plural(rule.files, 'file')}, {format_bytes(rule.size)}: {rule.drop}", fg="yellow"
        )
    for note in report.notes[:_NOTES]:
        yield f"  note: {printable(note)}"
    if len(report.notes) > _NOTES:
        yield f"  and {plural(len(report.notes) - _NOTES, 'more note')}"
    for rule in report.rules:
        if not rule.files:
            first, *more = rule.takes.split(", ")
            yield printable(f"  no file matches rule {rule.number}, {first}{f' and {len(more)} more' if more else ''}")
    if outcome.written:
        yield f"  wrote {plural(len(outcome.written), 'package')} (version {report.version}) to {outcome.out}"
    yield from (f"  install them with: {command}" for command in outcome.install)
    if report.conda:
        yield f"  conda channel: {(outcome.out.absolute() / 'conda').as_uri()}"
