"""What a user says of a build on the command line in upstream's words: its release, and the GPU that it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from axletree.app.recipes import load_recipe
from axletree.buildsystem.pytorch.versions import parse_desired_cuda, version_for
from axletree.core.errors import UsageError
from axletree.recipe.axes import exactly, expand, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.recipe.model import Recipe


def release_version(recipe: Recipe, text: str) -> str:
    """The version that packages get instead of the recipe's; the source stays that of the recipe's version.

    Raises:
        UsageError: ``text`` is nothing that can be said of a release, or the version has a local label beside those of
            packages.
    """
    try:
        version = version_for(recipe.version, text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    local = Version(version).local
    labelled = [name for name, package in recipe.packages.items() if package.local is not None]
    if local is not None and labelled:
        hint = f"the recipe's packages.{labelled[0]}.local would add a second label"
        raise UsageError(f"version {version} already has a local label ({local!r})", hint=hint)
    return version


def patterns_for_gpu(
    recipe: str, desired: str, patterns: Sequence[str], skip: Sequence[str], sets: Sequence[str] = ()
) -> tuple[str, ...]:
    """Patterns of exactly the variants for one GPU, of those that ``patterns`` and ``skip`` leave.

    Args:
        recipe: name or path.
        desired: as upstream's ``DESIRED_CUDA``: ``cpu``, ``cu126``, ``12.6``, ``rocm7.1``.
        patterns: which variants; none means all.
        skip: which variants not.
        sets: changes of the recipe, ``KEY=VALUE`` each.

    Raises:
        UsageError: it says nothing of this, or no variant is for that GPU.
        RecipeError: the recipe is wrong.
    """
    loaded = load_recipe(recipe, sets).recipe
    try:
        label = parse_desired_cuda(desired).label
    except ValueError as error:
        raise UsageError(str(error)) from None
    variants = select(expand(loaded), patterns, skip)
    found = tuple(exactly(variant.id) for variant in variants if variant.values.get("gpu") == label)
    if not found:
        values = dict.fromkeys(variant.values["gpu"] for variant in variants if "gpu" in variant.values)
        hint = f"values of axis gpu: {', '.join(values)}" if values else "the recipe has no axis gpu"
        raise UsageError(f"no variant is built for {label}", hint=hint)
    return found
