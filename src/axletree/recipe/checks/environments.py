"""What providers of environments can do, and who may use which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.faults import Path
    from axletree.recipe.model import Environment, Recipe

_FOR_ENV = 'choose an environment with provider = "venv"; other providers are only for `axletree env`'


def environment_faults(recipe: Recipe) -> Iterator[Fault]:
    """Keys that a provider does not have, and environments that a stage or a test can't be run in."""
    for name, environment in recipe.environments.items():
        yield from _provider_faults(("environments", name), environment)
    users: list[tuple[Path, str | None]] = [
        *((("stages", name, "environment"), stage.environment) for name, stage in recipe.stages.items()),
        *((("tests", name, "environment"), test.environment) for name, test in recipe.tests.items()),
    ]
    for path, named in users:
        used = recipe.environments.get(named or "")
        if used is not None and used.provider != "venv":
            needs: tuple[Path, ...] = (("environments", str(named), "provider"),)
            message = f"environment {named!r} has provider {used.provider!r}, but stages and tests can use only a venv"
            yield Fault(path=path, message=message, hint=_FOR_ENV, needs=needs)


def _provider_faults(path: Path, environment: Environment) -> Iterator[Fault]:
    provider = environment.provider
    if provider == "conda" and not environment.channels:
        yield Fault(
            path=path, message="a conda environment needs channels", hint='for example, channels = ["conda-forge"]'
        )
    if provider != "conda" and environment.channels:
        yield Fault(
            path=(*path, "channels"),
            message=f"provider {provider!r} does not use channels",
            hint='set provider = "conda", or remove channels',
        )
    if provider == "system" and environment.requires:
        message = 'provider "system" uses the host as it is and installs nothing'
        yield Fault(
            path=(*path, "requires"), message=message, hint='to install packages, use provider = "venv" or "conda"'
        )
