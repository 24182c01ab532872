"""``hipify``: the source with HIP code made of its CUDA code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.plan.actions.project import WorkParameters
from axletree.plan.actions.spec import ActionSpec, Facts

if TYPE_CHECKING:
    from axletree.recipe.target import TargetStage


class HipifyFacts(Facts, frozen=True, kw_only=True):
    """What changed in the source."""

    made: int
    """Number of files that are new."""
    edited: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def parameters(stage: TargetStage) -> WorkParameters:
    """What a stage of a recipe asks for."""
    return WorkParameters(directory=stage.directory, env=stage.env)


SPEC = ActionSpec(
    of_stage=parameters,
    module="axletree.execute.actions.hipify",
    revision=1,
    parameters=WorkParameters,
    facts=HipifyFacts,
)
