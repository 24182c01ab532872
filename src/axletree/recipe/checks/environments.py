"""What providers of environments can do, and who may use which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.recipe.addresses import has_login
from axletree.recipe.checks.axes import add_hint, missing_axes
from axletree.recipe.environments import has_python
from axletree.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.environments import Environment
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe, Stage

_FOR_ENV = 'provider "system" is only for `axletree env`; choose a venv or conda environment'
_ONLY_CONDA = 'set provider = "conda", or remove {}'


def environment_faults(recipe: Recipe) -> Iterator[Fault]:
    """Keys that a provider does not have, and environments that a stage or a test can't be run in."""
    for name, environment in recipe.environments.items():
        yield from _provider_faults(("environments", name), environment)
    for name, stage in recipe.stages.items():
        path: Path = ("stages", name)
        for key, named in (("environment", stage.environment), ("host", stage.host)):
            yield from _user_faults(recipe, (*path, key), named)
            yield from _image_faults(recipe, (*path, key), named, stage.image)
        yield from _host_faults(recipe, path, stage)
    for name, test in recipe.tests.items():
        path = ("tests", name)
        yield from _user_faults(recipe, (*path, "environment"), test.environment)
        yield from _image_faults(recipe, (*path, "environment"), test.environment, test.image)


def _provider(recipe: Recipe, name: str | None) -> str | None:
    environment = recipe.environments.get(name or "")
    return None if environment is None else environment.provider


def _user_faults(recipe: Recipe, path: Path, named: str | None) -> Iterator[Fault]:
    if _provider(recipe, named) == "system":
        needs: tuple[Path, ...] = (("environments", str(named), "provider"),)
        message = f"environment {named!r} installs nothing, so stages and tests cannot use it"
        yield Fault(path=path, message=message, hint=_FOR_ENV, needs=needs)


def _image_faults(recipe: Recipe, path: Path, named: str | None, image: str | None) -> Iterator[Fault]:
    if image is not None and _provider(recipe, named) == "conda":
        needs: tuple[Path, ...] = (("environments", str(named), "provider"), (*path[:-1], "image"))
        message = f"a {str(path[0]).removesuffix('s')} cannot use both an image and a conda environment"
        yield Fault(path=path, message=message, hint="remove one of the two", needs=needs)


def _host_faults(recipe: Recipe, path: Path, stage: Stage) -> Iterator[Fault]:
    """A host environment is one of conda, beside a build environment of conda that differs by no more axes."""
    if stage.host is None:
        return
    if stage.action not in {"build", "compile", "run"}:
        yield Fault(path=(*path, "host"), message=f"a {stage.action} stage does not link, so it has no host")
    if stage.environment is None:
        hint = "set environment to the conda environment that has the compilers"
        yield Fault(path=(*path, "host"), message="host needs an environment beside it", hint=hint)
    for key, named in (("host", stage.host), ("environment", stage.environment)):
        provider = _provider(recipe, named)
        if provider == "venv":
            needs: tuple[Path, ...] = (("environments", str(named), "provider"),)
            message = f"environment {named!r} is not a conda environment, but the stage has a host"
            yield Fault(path=(*path, key), message=message, hint='set provider = "conda" in it', needs=needs)
    build, host = recipe.environments.get(stage.environment or ""), recipe.environments.get(stage.host)
    missing = missing_axes(build.axes, host.axes, recipe) if build is not None and host is not None else ()
    if missing:
        axes = " and ".join(repr(axis) for axis in missing)
        declared_at: Path = ("environments", stage.host, "axes")
        message = f"environment {stage.environment!r}, whose run exports it gets, differs by axis {axes}"
        yield Fault(path=(*path, "host"), message=message, hint=add_hint(missing, declared_at), needs=(declared_at,))


def _provider_faults(path: Path, environment: Environment) -> Iterator[Fault]:
    provider = environment.provider
    if provider == "conda" and not environment.channels:
        yield Fault(
            path=path, message="a conda environment needs channels", hint='for example, channels = ["conda-forge"]'
        )
    if provider == "conda" and not environment.requires and not has_python(environment):
        yield Fault(path=path, message="a conda environment needs requires", hint='for example, requires = ["cmake"]')
    for key, given in (("channels", environment.channels), ("wheels", environment.wheels)):
        if provider != "conda" and given:
            message, hint = f"provider {provider!r} does not use {key}", _ONLY_CONDA.format(key)
            if key == "wheels" and provider == "venv":
                hint = "write the requirements in requires"
            yield Fault(path=(*path, key), message=message, hint=hint)
    for number, channel in enumerate(environment.channels):
        if has_login(channel) or "/t/" in channel:
            message = "the channel contains a user name, password or token, which would be stored in locks and keys"
            yield Fault(path=(*path, "channels", number), message=message, hint="use a channel without it")
    if provider == "system" and (environment.requires or environment.requires_from):
        key = "requires" if environment.requires else "requires-from"
        message = 'provider "system" uses the host as it is and installs nothing'
        yield Fault(path=(*path, key), message=message, hint='to install packages, use provider = "venv" or "conda"')
