"""Environments as a recipe has them, and what they come to at a variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from axletree.recipe.axes import variant_id
from axletree.recipe.base import AxisName, Table
from axletree.recipe.filling import Filler
from axletree.recipe.importing import is_present
from axletree.recipe.target_source import AxisValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.recipe.model import Recipe, Stage

_ITS_AXIS = "{python}"
"""What an environment's ``python`` is by default."""


class Environment(Table, frozen=True, kw_only=True):
    """A locked environment, with one lock file for each combination of its axis values."""

    requires: Annotated[
        tuple[str, ...],
        Meta(description="Requirements (PEP 508); for `conda`, match specs. Placeholders allowed."),
    ] = ()
    packages: Annotated[
        tuple[str, ...],
        Meta(description="Packages of recipes in `recipes`, such as `torch/torch`, whose wheels are installed, too."),
    ] = ()
    requires_from: Annotated[
        str | None,
        Meta(
            description="File with further requirements (PEP 508), one a line, relative to the recipe, such as `requirements.txt`. For `conda`, they are added to `wheels`."
        ),
    ] = None
    wheels: Annotated[
        tuple[str, ...],
        Meta(
            description="For `conda`: requirements (PEP 508) of wheels to install on top of the conda packages. They are locked together, and a wheel cannot replace a file of a conda package."
        ),
    ] = ()
    axes: Annotated[tuple[AxisName, ...], Meta(description="Axes that this environment may use.")] = ("python",)
    python: Annotated[str, Meta(description="Version of the interpreter, such as `3.11` or `3.13t`.")] = "{python}"
    provider: Annotated[
        Literal["venv", "conda", "system"],
        Meta(
            description="How the environment is created. `venv`: a virtual environment with wheels; `conda`: a conda prefix, with match specs in `requires`; `system`: nothing is installed, only for `axletree env`. A conda environment has a Python if it uses axis `python` or sets `python`."
        ),
    ] = "venv"
    channels: Annotated[
        tuple[str, ...],
        Meta(description="For `conda`: channels, highest priority first, as names, URLs or `file://` folders."),
    ] = ()
    toolkit: Annotated[
        str | None,
        Meta(
            description="For `axletree env`: root folder of the GPU toolkit outside the environment, such as `/opt/rocm`. By default: a toolkit in the environment, otherwise `ROCM_PATH` or `CUDA_HOME`, otherwise the usual folders."
        ),
    ] = None


class TargetEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment at this variant."""

    name: str
    python: str
    """``3.11``, or ``3.13t`` for the free-threaded build; empty where a conda environment has none."""
    requires: tuple[str, ...]
    axes: AxisValues
    lock: str
    """File name of its lock in the recipe's companion folder: ``pylock.build-py311-cpu.toml`` (PEP 751), or
    ``conda-lock.build-py311-cpu.toml``."""
    provider: Literal["venv", "conda", "system"] = "venv"
    channels: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()
    """Requirements of the pip half of a conda environment."""
    builders: tuple[str, ...] = ()
    """Environments that it is the host of in some stage: it gets their strong run exports."""
    toolkit: str | None = None
    packages: tuple[str, ...] = ()
    """Packages of imported recipes, ``torch/torch``, whose wheels it holds, too."""


def with_requirements(environment: Environment, further: tuple[str, ...]) -> Environment:
    """An environment with the requirements of a file: wheels, whatever its provider."""
    if not further:
        return environment
    key = "wheels" if environment.provider == "conda" else "requires"
    return msgspec.structs.replace(environment, **{key: (*getattr(environment, key), *further)})


def has_python(environment: Environment) -> bool:
    """Whether an environment has a Python: one of conda, with compilers alone, need not."""
    return environment.provider != "conda" or "python" in environment.axes or environment.python != _ITS_AXIS


def conda_lock_name(environment: str, values: AxisValues, recipe_axes: Mapping[str, Sequence[str]]) -> str:
    """File name of a conda lock for the values of the environment's axes."""
    suffix = variant_id(values, recipe_axes)
    return f"conda-lock.{environment}-{suffix}.toml" if suffix else f"conda-lock.{environment}.toml"


def lock_name(environment: str, values: AxisValues, recipe_axes: Mapping[str, Sequence[str]]) -> str:
    """File name of an environment's lock for the values of its own axes; PEP 751 allows no dot inside the name."""
    suffix = variant_id(values, recipe_axes)
    name = f"{environment}-{suffix}" if suffix else environment
    return f"pylock.{name.replace('.', '_')}.toml"


def builders_of(host: str, stages: Iterable[Stage]) -> tuple[str, ...]:
    """Environments whose programs build what links against a host environment."""
    found = (stage.environment for stage in stages if stage.host == host and stage.environment is not None)
    return tuple(dict.fromkeys(found))


def environment_at(
    recipe: Recipe, name: str, environment: Environment, values: Mapping[str, str], *, builders: tuple[str, ...]
) -> TargetEnvironment:
    """An environment at a variant.

    Raises:
        RecipeError: a text reads what the environment does not declare.
    """
    text = Filler(recipe, values, environment.axes)
    conda = environment.provider == "conda"
    return TargetEnvironment(
        name=name,
        python=text.one(environment.python) if has_python(environment) else "",
        requires=text.each(environment.requires),
        axes=text.axes,
        lock=(conda_lock_name if conda else lock_name)(name, text.axes, recipe.axes),
        provider=environment.provider,
        channels=text.each(environment.channels),
        wheels=text.each(environment.wheels),
        builders=builders,
        toolkit=None if environment.toolkit is None else text.one(environment.toolkit),
        packages=tuple(each for each in environment.packages if is_present(recipe, each, values)),
    )
