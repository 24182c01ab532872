"""The step of a stage that relocates a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.plan.actions.relocate import RelocateParameters
from axletree.plan.step import Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.plan.inputs import PlanInputs
    from axletree.recipe.relocation import Relocate
    from axletree.recipe.target import TargetStage


def relocation_step(stage: TargetStage, rules: Relocate, inputs: PlanInputs, needs: Mapping[str, str]) -> Step:
    """The step: what it does, the libraries of this machine that it may take in, and the data that it goes by.

    Args:
        stage: the stage.
        rules: its table.
        inputs: what was read beforehand.
        needs: name of an input -> step that makes it, the tree that is relocated first.
    """
    return Step(
        name=stage.name,
        action="relocate",
        axes=stage.axes,
        parameters=RelocateParameters(
            tree=next(iter(needs)),
            relocate=rules,
            libraries=inputs.libraries.get(graft_key(rules), {}),
            policy=inputs.policy,
            providers=inputs.providers,
        ),
        needs=dict(needs),
        resources=stage.resources,
    )


def graft_key(rules: Relocate) -> tuple[str, ...]:
    """What decides which libraries of this machine a relocation may take in: patterns, and folders behind a mark."""
    return (*rules.graft, "in", *rules.graft_from)
