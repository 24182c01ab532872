"""``axletree check``: validate recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from axletree.app.recipes import CheckedRecipes, check_recipe
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.errors import RecipeError
from axletree.core.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(cls=ReportCommand, report=CheckedRecipes)
@click.argument("recipes", metavar="RECIPE...", nargs=-1, required=True)
def command(recipes: tuple[str, ...]) -> Reported:
    """Validate recipes and report all their errors at once.

    A RECIPE is a .toml file or the name of a recipe that ships with Axletree. The exit code is 2 if any recipe has an
    error.
    """
    checked = CheckedRecipes(recipes=tuple(check_recipe(recipe) for recipe in recipes))
    return Reported(checked, lambda: _lines(checked), RecipeError.exit_code if checked.problems else 0)


def _lines(checked: CheckedRecipes) -> Iterator[str]:
    for each in checked.recipes:
        if not each.problems:
            counts = f"{plural(each.variants, 'variant')}, {plural(each.stages, 'stage')}"
            yield f"ok: {each.name} {each.version}, {counts}"
    if checked.problems:
        raise RecipeError(*checked.problems)
