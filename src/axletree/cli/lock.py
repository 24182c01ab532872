"""``axletree lock``: resolve and pin."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from axletree.app.lock import LockContext, LockedFile, LockedRecipe, lock_recipe
from axletree.cli.notes import say_aside
from axletree.cli.opening import settings
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.units import format_bytes, plural
from axletree.store.layout import StoreLayout
from axletree.view.tables import render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.app.lock import LockedFile


@click.command(cls=ReportCommand, report=LockedRecipe)
@click.argument("recipe")
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match PATTERN.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Skip variants that match PATTERN.")
@click.option("--upgrade", is_flag=True, help="Choose the newest matching versions instead of keeping the locked ones.")
@click.option("--find-links", multiple=True, metavar="PLACE", help="Folder or page with wheels. Repeatable.")
@click.option("--index-url", metavar="URL", help="Package index to use instead of the configured one.")
def command(
    *,
    recipe: str,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    upgrade: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
) -> Reported:
    """Resolve a recipe's source and environments, and pin them by hash."""
    chosen = settings(find_links=find_links, index_url=index_url)
    surroundings = LockContext(
        environ=os.environ,
        home=Path.home(),
        cwd=Path.cwd(),
        settings=chosen,
        cache=StoreLayout(Path(chosen.store)).cache,
    )
    files = lock_recipe(
        recipe,
        surroundings,
        patterns=patterns,
        skip=skip,
        upgrade=upgrade,
        note=say_aside,
    )
    return Reported(LockedRecipe(files=files), lambda: _lines(files))


def _lines(files: Sequence[LockedFile]) -> Iterator[str]:
    yield render_table(["", "Lock", "Pins", "Download"], [_row(file) for file in files], width=_width(), right=[3])
    written = sum(file.outcome == "written" for file in files)
    yield f"{plural(len(files), 'lock')}, {written} written"


def _row(file: LockedFile) -> list[str]:
    pins = file.what if file.packages == 1 else plural(file.packages, "wheel")
    size = "unknown" if file.size is None else format_bytes(file.size)
    return [file.outcome, os.path.relpath(file.path), pins, size]


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
