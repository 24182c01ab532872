"""The lock of a conda environment: which file of each package, by digest. It lies beside the recipe's other locks."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Literal

import msgspec
import tomli_w

from axletree.core.errors import Problem, RecipeError
from axletree.core.formats import format_problem
from axletree.recipe.axes import variant_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_VERSION: Literal[1] = 1


class LockedPackage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A package of a channel."""

    name: str
    version: str
    build: str
    url: str
    sha256: str = ""
    """Empty where the channel does not tell it."""
    md5: str = ""


class CondaLock(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """What solving gave, and what was asked."""

    lock_version: Literal[1] = _VERSION
    platform: str
    """``linux-64``."""
    channels: tuple[str, ...]
    requires: tuple[str, ...]
    packages: tuple[LockedPackage, ...]


def conda_lock_name(environment: str, values: Mapping[str, str], recipe_axes: Mapping[str, Sequence[str]]) -> str:
    """File name of a lock for the values of the environment's axes."""
    suffix = variant_id(dict(values), recipe_axes)
    return f"conda-lock.{environment}-{suffix}.toml" if suffix else f"conda-lock.{environment}.toml"


def parse_conda_lock(text: str, *, file: str) -> CondaLock:
    """Read a lock.

    Raises:
        RecipeError: it is none.
    """
    hint = "remove the file and run `axletree env create` again"
    try:
        data = tomllib.loads(text)
        problem = format_problem(data.get("lock-version", _VERSION), _VERSION, file=file, remake=hint)
        if problem is not None:
            raise RecipeError(problem)
        return msgspec.convert(data, CondaLock)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError, RecursionError) as error:
        raise RecipeError(
            Problem(file=file, message=f"the file is not a valid lock of a conda environment: {error}", hint=hint)
        ) from error


def render_conda_lock(lock: CondaLock) -> str:
    """The text of a lock; packages by name."""
    ordered = msgspec.structs.replace(lock, packages=tuple(sorted(lock.packages, key=lambda each: each.name)))
    return tomli_w.dumps(msgspec.to_builtins(ordered))
