"""What of a valid recipe cannot be built: nothing to do, secrets that would be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.recipes import problem_at
from axletree.core.errors import Problem, RecipeError
from axletree.core.secrets import looks_secret
from axletree.recipe.defaults import DERIVED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.app.recipes import LoadedRecipe
    from axletree.recipe.target import Target


def refuse_nothing(loaded: LoadedRecipe) -> None:
    """Refuse a recipe without stages and packages: its build would succeed without a result.

    Raises:
        RecipeError: it is one.
    """
    recipe = loaded.recipe
    if recipe.stages or recipe.packages:
        return
    if loaded.only_environments:
        message = "the file has only environments, so there is nothing to build"
        hint = f"create one: axletree env create {loaded.asked}; to build a project, set source"
        raise RecipeError(Problem(file=str(loaded.path), message=message, hint=hint))
    message = "the recipe has no stages and no packages, so there is nothing to build"
    if "python" not in recipe.axes:
        hint = 'to build the project, set axes.python, such as python = ["3.12"]; its stages are then derived from it'
        raise RecipeError(Problem(file=str(loaded.path), message=message, hint=hint))
    other = next((name for name in recipe.environments if name not in DERIVED), None)
    if other is None:
        raise RecipeError(Problem(file=str(loaded.path), message=message, hint="add a stage and a package"))
    hint = "stages are derived from the project only if its environments are called build and test; rename this one"
    raise RecipeError(problem_at(loaded, ("environments", other), message, hint=hint))


def refuse_secrets(targets: Iterable[Target], loaded: LoadedRecipe) -> None:
    """Refuse to pass on what looks like a secret: the value of a passed variable lies in records and reports.

    Raises:
        RecipeError: a stage asks for such variables; names all.
    """
    hint = (
        "the store keeps the values of variables passed to builds; fetch anything that needs a secret before the build"
    )
    problems = {
        (stage.name, number): problem_at(
            loaded, ("stages", stage.name, "pass-env", number), f"{name} looks like a secret", hint=hint
        )
        for target in targets
        for stage in target.stages
        for number, name in enumerate(stage.pass_env)
        if looks_secret(name)
    }
    if problems:
        raise RecipeError(*problems.values())
