"""The recipes of a plan: the one that is built, and those that it imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from axletree.app.recipes import LoadedRecipe
from axletree.recipe.conda_locks import CondaLock
from axletree.recipe.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.app.planning import Prepared
    from axletree.plan.graph import PlannedStage


class PlannedRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with what of it is planned."""

    loaded: LoadedRecipe
    targets: tuple[Target, ...]
    relock: str
    """The command that locks it."""
    conda: Mapping[str, CondaLock]
    """Locks of its conda environments, by file name."""


def recipe_of(prepared: Prepared, stage: PlannedStage) -> PlannedRecipe:
    """The recipe that a stage is of."""
    if stage.recipe:
        return prepared.imported[stage.recipe]
    return PlannedRecipe(
        loaded=prepared.loaded, targets=prepared.targets, relock=prepared.relock, conda=prepared.inputs.conda
    )


def targets_of(planned: PlannedRecipe, stage: PlannedStage) -> Sequence[Target]:
    """The targets of its recipe that a stage is of."""
    if not stage.recipe:
        return [target for target in planned.targets if target.variant in stage.variants]
    # The stage names variants of the recipe that is built, so its targets are those that agree on what it sees.
    return [target for target in planned.targets if stage.step.axes.items() <= target.axes.items()]
