"""``axletree check``: validate recipes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from axletree.app.checking import CheckedRecipe, CheckedRecipes, check_recipe
from axletree.app.defaults import NOT_LOCKED
from axletree.cli.recipe_options import set_option
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.errors import RecipeError
from axletree.core.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command(cls=ReportCommand, report=CheckedRecipes)
@click.argument("recipes", metavar="RECIPE...", nargs=-1, required=True)
@set_option
@click.option("--expanded", is_flag=True, help="Print the whole recipe as TOML, including its defaults.")
def command(recipes: tuple[str, ...], *, sets: tuple[str, ...], expanded: bool) -> Reported:
    """Validate recipes and report all their errors at once.

    A RECIPE is a .toml file or the name of a recipe that ships with Axletree. The exit code is 2 if any recipe has an
    error.
    """
    checked = CheckedRecipes(recipes=tuple(check_recipe(recipe, sets, expand_it=expanded) for recipe in recipes))
    return Reported(checked, lambda: _lines(checked), RecipeError.exit_code if checked.problems else 0)


def _lines(checked: CheckedRecipes) -> Iterator[str]:
    for each in checked.recipes:
        if each.expanded is not None:
            yield each.expanded.rstrip("\n")
        elif not each.problems:
            yield f"ok: {_counts(each)}"
    if checked.problems:
        raise RecipeError(*checked.problems)


def _counts(checked: CheckedRecipe) -> str:
    """What a valid recipe describes."""
    named = " ".join(filter(None, (checked.name or checked.asked, checked.version)))
    variants = plural(checked.variants, "variant")
    if not checked.lacking:
        return f"{named}, {variants}, {plural(checked.stages, 'stage')}"
    first = checked.lacking[0]
    said = NOT_LOCKED if first.message.startswith(NOT_LOCKED) else first.message
    more = f" (and {len(checked.lacking) - 1} more)" if len(checked.lacking) > 1 else ""
    return f"{named}, {variants}; {said}{more}: {first.hint}"
