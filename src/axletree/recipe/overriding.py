"""Overrides: a recipe with the changes that match a variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from axletree.recipe.axes import matches
from axletree.recipe.conda import changed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.recipe.model import Package, Recipe, Stage
    from axletree.recipe.override import Override


def overridden(recipe: Recipe, values: Mapping[str, str]) -> Recipe:
    """The recipe with the overrides that match."""
    stages, environments = dict(recipe.stages), dict(recipe.environments)
    packages = dict(recipe.packages)
    for override in recipe.override:
        if not matches(override.when, values):
            continue
        for name in override.stages:
            stages[name] = _override_stage(stages[name], override)
        for name in override.packages:
            packages[name] = _override_package(packages[name], override)
        if override.environment is not None:
            environment = environments[override.environment]
            requires = (*environment.requires, *override.requires)
            environments[override.environment] = replace(environment, requires=requires)
    return replace(recipe, stages=stages, environments=environments, packages=packages)


def _override_stage(stage: Stage, override: Override) -> Stage:
    return replace(
        stage,
        env={**stage.env, **override.env},
        config={**stage.config, **override.config},
        options={**stage.options, **override.options},
        expect={**stage.expect, **override.expect},
        commands=stage.commands if override.commands is None else override.commands,
        tools=(*stage.tools, *override.tools),
        pass_env=(*stage.pass_env, *override.pass_env),
        resources=stage.resources if override.resources is None else override.resources,
    )


def _override_package(package: Package, override: Override) -> Package:
    table = package.conda if override.conda is None else changed(package.conda, override.conda)
    return replace(package, requires=(*package.requires, *override.requires), conda=table)
