"""``axletree check``: validate recipes."""

from __future__ import annotations

import click
import msgspec

from axletree.app.recipes import CheckedRecipe, check_recipe
from axletree.core.errors import RecipeError
from axletree.view.tables import plural

JSON_SCHEMA = 1


@click.command()
@click.argument("recipes", metavar="RECIPE...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with the problems of each recipe.")
@click.pass_context
def command(ctx: click.Context, recipes: tuple[str, ...], *, as_json: bool) -> None:
    """Validate recipes and report all their errors at once.

    A RECIPE is a .toml file or the name of a recipe that ships with Axletree. The exit code is 2 if any recipe has an
    error.
    """
    checked = [check_recipe(recipe) for recipe in recipes]
    problems = [problem for each in checked for problem in each.problems]
    if as_json:
        click.echo(msgspec.json.encode({"schema": JSON_SCHEMA, "recipes": checked}))
        ctx.exit(RecipeError.exit_code if problems else 0)
    for each in checked:
        if not each.problems:
            click.echo(_line(each))
    if problems:
        raise RecipeError(*problems)


def _line(checked: CheckedRecipe) -> str:
    counts = f"{plural(checked.variants, 'variant')}, {plural(checked.stages, 'stage')}"
    return f"ok: {checked.name} {checked.version}, {counts}"
