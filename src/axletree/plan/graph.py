"""Targets -> plan: the graph of stages, each shared by all variants that agree on the axes it declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import RecipeError
from axletree.core.values import StageId, canonical_json
from axletree.plan import steps
from axletree.plan.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from axletree.plan.inputs import PlanInputs
    from axletree.recipe.target import Target
    from axletree.recipe.target_source import AxisValues


class PlannedStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of the plan."""

    id: StageId
    step: Step
    needs: dict[str, StageId]
    """Name of an input -> the stage that makes it."""
    variants: tuple[str, ...]
    """Variants that share it, in plan order."""

    @property
    def action(self) -> str:
        """Name of the action."""
        return self.step.action


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Stages in an order in which each comes after what it needs."""

    recipe: str
    version: str
    variants: tuple[str, ...]
    stages: dict[StageId, PlannedStage]

    def dependants(self) -> dict[StageId, tuple[StageId, ...]]:
        """Stage -> the stages that need it directly."""
        users: dict[StageId, list[StageId]] = {stage: [] for stage in self.stages}
        for stage in self.stages.values():
            for needed in dict.fromkeys(stage.needs.values()):
                users[needed].append(stage.id)
        return {stage: tuple(found) for stage, found in users.items()}

    def upstream(self, ids: Iterable[StageId]) -> set[StageId]:
        """The stages given and everything that they need."""
        wanted: set[StageId] = set()
        queue = list(ids)
        while queue:
            stage = queue.pop()
            if stage not in wanted:
                wanted.add(stage)
                queue.extend(self.stages[stage].needs.values())
        return wanted


def build_plan(targets: Iterable[Target], inputs: PlanInputs, *, label: Callable[[AxisValues], str]) -> Plan:
    """Make the plan of some targets of one recipe; ``label`` names the axis values that a stage sees.

    A step that two targets describe in the same words, with the same axes and the same needs, is one stage. Sharing is
    therefore never guessed: what a step cannot see cannot make it differ.

    Raises:
        RecipeError: there is no target, an environment has no lock, or two stages could not be told apart.
    """
    builder = _Builder(inputs, label)
    targets = tuple(targets)
    if not targets:
        hint = "remove entries from matrix.exclude; `axletree matrix RECIPE` lists the variants"
        raise RecipeError("the recipe has no variant to build: matrix.exclude removes all of them", hint=hint)
    for target in targets:
        builder.add(target)
    return Plan(
        recipe=targets[0].recipe,
        version=targets[0].version,
        variants=tuple(target.variant for target in targets),
        stages={
            stage_id: PlannedStage(id=stage_id, step=step, needs=needs, variants=tuple(builder.variants[stage_id]))
            for stage_id, (step, needs) in builder.stages.items()
        },
    )


class _Builder:
    """Collects the stages of target after target; a stage met again only gains a variant."""

    def __init__(self, inputs: PlanInputs, label: Callable[[AxisValues], str]) -> None:
        self.inputs = inputs
        self.label = label
        self.stages: dict[StageId, tuple[Step, dict[str, StageId]]] = {}
        self.variants: dict[StageId, list[str]] = {}
        self._by_content: dict[bytes, StageId] = {}

    def add(self, target: Target) -> None:
        made: dict[str, StageId] = {}
        for step in steps.steps_of(target, self.inputs):
            needs = {name: made[needed] for name, needed in step.needs.items()}
            made[step.name] = self._stage(step, needs, target.variant)

    def _stage(self, step: Step, needs: dict[str, StageId], variant: str) -> StageId:
        identity: list[Any] = [
            step.name,
            step.action,
            step.axes,
            step.parameters,
            step.pass_env,
            step.tools,
            step.image,
            needs,
        ]
        content = canonical_json(identity)
        stage_id = self._by_content.get(content)
        if stage_id is None:
            stage_id = self._name(step)
            self._by_content[content] = stage_id
            self.stages[stage_id] = (step, needs)
            self.variants[stage_id] = []
        if variant not in self.variants[stage_id]:
            self.variants[stage_id].append(variant)
        return stage_id

    def _name(self, step: Step) -> StageId:
        label = self.label(step.axes)
        stage_id = StageId(f"{step.name}[{label}]" if label else step.name)
        # Two steps with equal axes but other content: an override by an axis that the step may see but that the label
        # already holds can't do this, so it is a fault of the recipe layer and must not be papered over by a number.
        if stage_id in self.stages:
            raise RecipeError(f"two different stages have the id {stage_id}")
        return stage_id
