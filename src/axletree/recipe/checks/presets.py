"""Presets: their axes, and that each variant is in one configuration and has each package once at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.recipe.checks.axes import condition_faults, expansion, grid_faults, twice, unknown_axis
from axletree.recipe.faults import Fault
from axletree.recipe.presets import holds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.recipe.axes import Variant
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe
    from axletree.recipe.presets import Part, Preset


def preset_faults(name: str, preset: Preset) -> Iterator[Fault]:
    """All faults of a preset."""
    path: Path = ("presets", name)
    faults = [*grid_faults(preset, path), *_part_faults(preset, path)]
    if not faults:
        variants, faults = expansion(preset, path)
        faults += _cut_faults(preset, variants, path)
    yield from faults


def own_preset_faults(recipe: Recipe) -> Iterator[Fault]:
    """Faults of the presets that stand in a recipe itself."""
    for name, preset in recipe.presets.items():
        yield from preset_faults(name, preset)


def _cut_faults(preset: Preset, variants: Sequence[Variant], path: Path) -> Iterator[Fault]:
    """Variants in no configuration or in two, and packages that a variant has twice."""
    yield from _overlaps("configurations", preset.configurations, variants, (*path, "configurations"))
    for package in dict.fromkeys(part.name for part in preset.packages):
        named = [part if part.name == package else None for part in preset.packages]
        yield from _overlaps(f"package {package!r}", named, variants, (*path, "packages"))
    if preset.configurations:
        left = next((each for each in variants if not any(holds(part, each) for part in preset.configurations)), None)
        if left is not None:
            yield Fault(path=(*path, "configurations"), message=f"no configuration includes variant {left.id}")


def _part_faults(preset: Preset, path: Path) -> Iterator[Fault]:
    for key, parts in (("configurations", preset.configurations), ("packages", preset.packages)):
        for number, part in enumerate(parts):
            at: Path = (*path, key, number)
            yield from twice(part.axes, (*at, "axes"), "axis")
            for place, axis in enumerate(part.axes):
                if axis not in preset.axes:
                    yield unknown_axis(preset, axis, (*at, "axes", place))
            yield from condition_faults(preset, (*at, "when"), part.when, path)
            for place, condition in enumerate(part.exclude):
                yield from condition_faults(preset, (*at, "exclude", place), condition, path)


def _overlaps(what: str, parts: Sequence[Part | None], variants: Sequence[Variant], path: Path) -> Iterator[Fault]:
    """The first variant that two entries take."""
    for variant in variants:
        mine = [number for number, part in enumerate(parts) if part is not None and holds(part, variant)]
        if len(mine) > 1:
            message = f"variant {variant.id} is in two entries of {what}, {mine[0] + 1} and {mine[1] + 1}"
            yield Fault(path=(*path, mine[1]), message=message, hint="separate them with `when` or `exclude`")
            return
