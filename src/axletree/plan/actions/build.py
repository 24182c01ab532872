"""``build``: a wheel by PEP 517."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.plan.actions.project import ProjectParameters
from axletree.plan.actions.spec import ActionSpec, Facts

if TYPE_CHECKING:
    from axletree.recipe.target import TargetStage


class BuildParameters(ProjectParameters, frozen=True, kw_only=True):
    """What is asked of the backend."""

    config: dict[str, str] = {}
    """Config settings."""


class BuiltWheel(Facts, frozen=True, kw_only=True):
    """The wheel that was built or unpacked."""

    wheel: str
    """Its file name."""


def parameters(stage: TargetStage) -> BuildParameters:
    """What a stage of a recipe asks for."""
    return BuildParameters(
        directory=stage.directory, env=stage.env, commands=stage.commands, expect=stage.expect, config=stage.config
    )


SPEC = ActionSpec(
    of_stage=parameters,
    module="axletree.execute.actions.build",
    revision=4,
    parameters=BuildParameters,
    facts=BuiltWheel,
    compiles=True,
)
