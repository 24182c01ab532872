"""``axletree lock``: resolve and pin."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click
import msgspec

from axletree.app.lock import LockedFile, Surroundings, lock_recipe
from axletree.core.units import format_bytes
from axletree.host.indexes import Layer
from axletree.store.layout import Layout, default_root
from axletree.view.tables import plural, render_table

JSON_SCHEMA = 1


@click.command()
@click.argument("recipe")
@click.option("-v", "--variant", "patterns", multiple=True, metavar="PATTERN", help="Only variants that match.")
@click.option("--skip", multiple=True, metavar="PATTERN", help="Skip variants that match.")
@click.option("--upgrade", is_flag=True, help="Choose the newest matching versions instead of keeping the locked ones.")
@click.option("--find-links", multiple=True, metavar="PLACE", help="Folder or page with wheels. Repeatable.")
@click.option("--index-url", metavar="URL", help="Package index to use instead of the configured one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    *,
    recipe: str,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    upgrade: bool,
    find_links: tuple[str, ...],
    index_url: str | None,
    as_json: bool,
) -> None:
    """Resolve a recipe's source and environments, and pin them by hash."""
    surroundings = Surroundings(
        environ=os.environ, home=Path.home(), cwd=Path.cwd(), cache=Layout(default_root(os.environ)).cache
    )
    files = lock_recipe(
        recipe,
        surroundings,
        patterns=patterns,
        skip=skip,
        upgrade=upgrade,
        given=Layer(index_url=index_url, find_links=find_links),
        note=lambda text: click.echo(text, err=True),
    )
    if as_json:
        click.echo(msgspec.json.encode({"schema": JSON_SCHEMA, "files": files}))
        return
    click.echo(
        render_table(["", "Lock", "Pins", "Download"], [_row(file) for file in files], width=_width(), right=[3])
    )
    written = sum(file.outcome == "written" for file in files)
    click.echo(f"{plural(len(files), 'lock')}, {written} written")


def _row(file: LockedFile) -> list[str]:
    pins = file.what if file.packages == 1 else plural(file.packages, "wheel")
    size = "unknown" if file.size is None else format_bytes(file.size)
    return [file.outcome, os.path.relpath(file.path), pins, size]


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
