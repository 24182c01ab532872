"""The variants of a recipe, and what its presets come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.app.recipes import load_recipe, preset_of
from axletree.app.releases import patterns_for_gpu
from axletree.recipe.axes import Variant, expand, select
from axletree.recipe.presets import PresetReport, count_preset

if TYPE_CHECKING:
    from collections.abc import Sequence


class MatrixReport(msgspec.Struct, frozen=True, kw_only=True):
    """Variants of a recipe, or a preset of it: report of ``matrix``."""

    recipe: str
    version: str
    axes: dict[str, tuple[str, ...]]
    variants: tuple[Variant, ...]
    """The recipe's variants; empty for a preset."""
    preset: PresetReport | None = None


def list_variants(
    recipe: str,
    *,
    sets: Sequence[str] = (),
    patterns: Sequence[str] = (),
    skip: Sequence[str] = (),
    gpu: str | None = None,
    preset: str | None = None,
) -> MatrixReport:
    """Expand a recipe, or count what a preset of it comes to.

    Raises:
        UsageError: there is no such recipe or preset, or a pattern matches no variant.
        RecipeError: the recipe is wrong.
    """
    loaded = load_recipe(recipe, sets).recipe
    if preset is not None:
        counted = count_preset(preset, preset_of(loaded, preset), patterns, skip)
        return MatrixReport(recipe=loaded.name, version=loaded.version, axes=loaded.axes, variants=(), preset=counted)
    picked = patterns if gpu is None else patterns_for_gpu(recipe, gpu, patterns, skip, sets)
    variants = tuple(select(expand(loaded), picked, skip))
    return MatrixReport(recipe=loaded.name, version=loaded.version, axes=loaded.axes, variants=variants)
