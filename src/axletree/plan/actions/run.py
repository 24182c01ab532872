"""``run``: commands of the recipe that fill a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.plan.actions.project import CommandParameters
from axletree.plan.actions.spec import ActionSpec

if TYPE_CHECKING:
    from axletree.recipe.target import TargetStage


def parameters(stage: TargetStage) -> CommandParameters:
    """What a stage of a recipe asks for."""
    return CommandParameters(directory=stage.directory, env=stage.env, commands=stage.commands)


SPEC = ActionSpec(
    of_stage=parameters, module="axletree.execute.actions.run", revision=3, parameters=CommandParameters, compiles=True
)
