"""``axletree lock``: resolve and pin."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import click

from axletree.app.lock import lock_recipe
from axletree.app.lock_changes import LockedFile, LockedRecipe, PartlyLockedError
from axletree.cli.notes import say_aside
from axletree.cli.opening import lock_context, settings
from axletree.cli.recipe_options import find_links_option, index_url_option, set_option, skip_option, variant_option
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.units import format_bytes, plural, some_of
from axletree.view.tables import render_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.lock_changes import LockedFile

_SHOWN = 6


@click.command(cls=ReportCommand, report=LockedRecipe)
@click.argument("recipe")
@set_option
@variant_option
@skip_option
@click.option("--upgrade", is_flag=True, help="Choose the newest matching versions instead of keeping the locked ones.")
@click.option("--source", is_flag=True, help="Lock only the source, and the defaults that are read from it.")
@click.option("--offline", is_flag=True, help="Do not use the network; use only caches and folders on this machine.")
@find_links_option
@index_url_option
def command(
    *,
    recipe: str,
    sets: tuple[str, ...],
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    upgrade: bool,
    source: bool,
    offline: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
) -> Reported:
    """Resolve a recipe's source and environments, and pin them by hash."""
    chosen = settings(offline=offline, find_links=find_links, index_url=index_url)
    try:
        files = lock_recipe(
            recipe,
            lock_context(chosen),
            sets=sets,
            patterns=patterns,
            skip=skip,
            upgrade=upgrade,
            only_source=source,
            note=say_aside,
        )
    except PartlyLockedError as error:
        locked = error.locked
        return Reported(locked, lambda: _lines(locked), error=error)
    report = LockedRecipe(files=files)
    return Reported(report, lambda: _lines(report))


def _lines(report: LockedRecipe) -> Iterator[str]:
    files = report.files
    if files:
        yield render_table(["", "Lock", "Pins", "Download"], [_row(file) for file in files], width=_width(), right=[3])
    written = sum(file.outcome == "written" for file in files)
    yield f"{plural(len(files), 'lock')}, {written} written" if files else "nothing was locked"
    if report.missing:
        yield f"not locked yet: {some_of(report.missing, _SHOWN)}"


def _row(file: LockedFile) -> list[str]:
    pins = file.what if file.pinned is None else plural(file.packages, file.pinned)
    size = "unknown" if file.size is None else format_bytes(file.size)
    path = os.path.relpath(file.path)
    return [file.outcome, file.path if path.startswith(os.pardir) else path, pins, size]


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
