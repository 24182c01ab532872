"""``axletree matrix``: list variants."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click
import msgspec

from axletree.app.recipes import load_recipe, preset_of
from axletree.app.releases import patterns_for_gpu
from axletree.recipe.axes import expand, select
from axletree.recipe.presets import count_preset
from axletree.view.presets import preset_document, preset_text
from axletree.view.tables import render_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.recipe.axes import Variant
    from axletree.recipe.model import Recipe

JSON_SCHEMA = 1


@click.command()
@click.argument("recipe")
@click.option(
    "-v",
    "--variant",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Only variants whose id matches, such as 'py311-*'. Repeatable.",
)
@click.option("--skip", metavar="PATTERN", multiple=True, help="Skip variants whose id matches. Repeatable.")
@click.option("--gpu", metavar="GPU", help="Only variants for this GPU: cpu, cu126, 12.6, rocm7.1, xpu.")
@click.option(
    "--preset",
    metavar="NAME",
    help="Count the configurations, variants and packages of a preset of the recipe instead.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--github", is_flag=True, help='Print one line, {"include": [...]}, for the matrix of a CI job.')
def command(
    recipe: str,
    patterns: tuple[str, ...],
    skip: tuple[str, ...],
    *,
    gpu: str | None,
    preset: str | None,
    as_json: bool,
    github: bool,
) -> None:
    """List a recipe's variants."""
    if github and (as_json or preset is not None):
        raise click.UsageError(f"{'--json' if as_json else '--preset'} and --github exclude each other")
    if gpu is not None and preset is not None:
        raise click.UsageError("--gpu selects the recipe's own variants; use --variant for those of a preset")
    loaded = load_recipe(recipe).recipe
    patterns = patterns if gpu is None else patterns_for_gpu(recipe, gpu, patterns, skip)
    width = shutil.get_terminal_size().columns
    if preset is not None:
        report = count_preset(preset, preset_of(loaded, preset), patterns, skip)
        document = preset_document(report, loaded.name)
        click.echo(msgspec.json.encode(document) if as_json else preset_text(report, width=width))
        return
    variants = select(expand(loaded), patterns, skip)
    if github:
        include = [{"variant": variant.id, **variant.values} for variant in variants]
        click.echo(msgspec.json.encode({"include": include}))
    elif as_json:
        click.echo(msgspec.json.encode(_document(loaded, variants)))
    else:
        rows = [[variant.id, *variant.values.values()] for variant in variants]
        click.echo(render_table(["Variant", *loaded.axes], rows, width=width))


def _document(recipe: Recipe, variants: Sequence[Variant]) -> dict[str, object]:
    return {
        "schema": JSON_SCHEMA,
        "recipe": recipe.name,
        "version": recipe.version,
        "axes": recipe.axes,
        "variants": variants,
    }
