"""``axletree recipes``: list what ships."""

from __future__ import annotations

import shutil

import click
import msgspec

from axletree.app.recipes import shipped_recipes
from axletree.recipe.axes import expand
from axletree.view.tables import render_table

JSON_SCHEMA = 1


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, as_json: bool) -> None:
    """List the recipes that ship with Axletree."""
    rows = [
        {
            "name": loaded.path.stem,
            "version": loaded.recipe.version,
            "summary": loaded.recipe.summary,
            "variants": len(expand(loaded.recipe)),
        }
        for loaded in shipped_recipes()
    ]
    if as_json:
        click.echo(msgspec.json.encode({"schema": JSON_SCHEMA, "recipes": rows}))
        return
    cells = [[str(row[key]) for key in ("name", "version", "variants", "summary")] for row in rows]
    width = shutil.get_terminal_size().columns
    click.echo(render_table(["Name", "Version", "Variants", "Summary"], cells, width=width, right=[2]))
