"""What a plan takes of imported recipes: their targets, and how stages of other recipes name what these make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.plan.inputs import PlanInputs
from axletree.recipe.axes import variant_id
from axletree.recipe.imported import ImportedTarget
from axletree.recipe.importing import split_reference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from axletree.plan.step import Step
    from axletree.recipe.target_source import AxisValues

WHEEL = "wheel:"
"""Beginning of the names of an environment's inputs that are wheels of imported recipes."""


class ImportedPart(msgspec.Struct, frozen=True, kw_only=True):
    """What a variant needs of an imported recipe."""

    part: ImportedTarget
    inputs: PlanInputs
    axes: dict[str, tuple[str, ...]]
    """Those of its recipe, for ids."""

    @property
    def recipe(self) -> str:
        """Name of its recipe."""
        return self.part.target.recipe

    def label(self, values: AxisValues) -> str:
        """What ids say of the axis values that a stage sees."""
        return variant_id(values, self.axes)

    @property
    def built(self) -> frozenset[str]:
        """Its stages that build a wheel, so that their trees are what is installed of it."""
        return frozenset(stage.name for stage in self.part.target.stages if stage.action == "build")


class PlanImports(msgspec.Struct, frozen=True, kw_only=True):
    """Imported recipes of a plan; empty for a recipe that imports none."""

    links: dict[str, dict[str, str]] = {}
    """Name of a recipe -> name in its table ``recipes`` -> name of the recipe that it imports."""
    parts: dict[str, tuple[ImportedPart, ...]] = {}
    """Variant -> what it needs of imported recipes, each after those that it imports itself."""


NO_IMPORTS = PlanImports()


def tree_step(stage: str, built: Collection[str]) -> str:
    """The step that makes a stage's tree: that of a PEP 517 build is its wheel, installed."""
    return f"install:{stage}" if stage in built else stage


def tree_of(name: str, built: Collection[str], links: Mapping[str, ImportedPart]) -> str:
    """The step that makes an input: of the recipe itself, or ``RECIPE/STEP`` of one that it imports."""
    reference = split_reference(name)
    if reference is None:
        return tree_step(name, built)
    part = links[reference[0]]
    return f"{part.recipe}/{tree_step(reference[1], part.built)}"


def wheel_needs(name: str, links: Mapping[str, ImportedPart]) -> dict[str, str]:
    """What an environment needs for an imported package: its wheel, and the audit that the wheel passed."""
    alias, package = split_reference(name) or ("", name)
    recipe = links[alias].recipe
    return {f"{WHEEL}{package}": f"{recipe}/pack:{package}", f"audit:{package}": f"{recipe}/audit:{package}"}


def input_name(name: str) -> str:
    """What a stage calls an input, in keys and as a folder: ``magma-compile`` for ``magma/compile``."""
    return name.replace("/", "-")


def wanted_steps(part: ImportedPart, steps: Iterable[Step]) -> list[Step]:
    """Of the steps of an imported recipe, those that make what is wanted of it, in their order."""
    made = {step.name: step for step in steps}
    queue = [tree_step(stage, part.built) for stage in part.part.stages]
    queue += [f"{kind}:{package}" for package in part.part.packages for kind in ("pack", "audit")]
    wanted: set[str] = set()
    while queue:
        name = queue.pop()
        if name in made and name not in wanted:
            wanted.add(name)
            queue.extend(made[name].needs.values())
    return [step for name, step in made.items() if name in wanted]
