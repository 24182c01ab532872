"""Targets -> plan: the graph of stages, each shared by all variants that agree on the axes it declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import RecipeError
from axletree.core.values import StageId, canonical_json
from axletree.plan import steps
from axletree.plan.imports import NO_IMPORTS, PlanImports, wanted_steps
from axletree.plan.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from axletree.plan.imports import ImportedPart
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
    recipe: str = ""
    """The imported recipe that it is of; empty for the recipe of the plan."""

    @property
    def own_id(self) -> StageId:
        """Its id in a plan of its own recipe."""
        return StageId(self.id.removeprefix(f"{self.recipe}/")) if self.recipe else self.id

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


def build_plan(
    targets: Iterable[Target],
    inputs: PlanInputs,
    *,
    label: Callable[[AxisValues], str],
    imports: PlanImports = NO_IMPORTS,
) -> Plan:
    """Make the plan of some targets of one recipe; ``label`` names the axis values that a stage sees.

    Stages of recipes that it imports carry the names of these: ``magma/compile[cu126]``.

    A step that two targets describe in the same words, with the same axes and the same needs, is one stage. Sharing is
    therefore never guessed: what a step cannot see cannot make it differ.

    Raises:
        RecipeError: there is no target, an environment has no lock, or two stages could not be told apart.
    """
    builder = _Builder(imports)
    targets = tuple(targets)
    if not targets:
        hint = "remove entries from matrix.exclude; `axletree matrix RECIPE` lists the variants"
        raise RecipeError("the recipe has no variant to build: matrix.exclude removes all of them", hint=hint)
    for target in targets:
        builder.add(target, inputs, label)
    return Plan(
        recipe=targets[0].recipe,
        version=targets[0].version,
        variants=tuple(target.variant for target in targets),
        stages={
            stage_id: PlannedStage(
                id=stage_id, step=step, needs=needs, variants=tuple(builder.variants[stage_id]), recipe=recipe
            )
            for stage_id, (step, needs, recipe) in builder.stages.items()
        },
    )


class _Builder:
    """Collects the stages of target after target; a stage met again only gains a variant."""

    def __init__(self, imports: PlanImports) -> None:
        self.imports = imports
        self.stages: dict[StageId, tuple[Step, dict[str, StageId], str]] = {}
        self.variants: dict[StageId, list[str]] = {}
        self._by_content: dict[bytes, StageId] = {}

    def add(self, target: Target, inputs: PlanInputs, label: Callable[[AxisValues], str]) -> None:
        """Add the steps of a target, those of the recipes that it imports first."""
        parts = {part.recipe: part for part in self.imports.parts.get(target.variant, ())}
        made: dict[str, StageId] = {}
        for part in parts.values():
            found = steps.steps_of(part.part.target, part.inputs, self._links(part.recipe, parts))
            self._add(wanted_steps(part, found), part.label, target.variant, made, recipe=part.recipe)
        self._add(steps.steps_of(target, inputs, self._links(target.recipe, parts)), label, target.variant, made)

    def _links(self, recipe: str, parts: dict[str, ImportedPart]) -> dict[str, ImportedPart]:
        links = self.imports.links.get(recipe, {})
        return {alias: parts[name] for alias, name in links.items() if name in parts}

    def _add(
        self,
        found: Iterable[Step],
        label: Callable[[AxisValues], str],
        variant: str,
        made: dict[str, StageId],
        *,
        recipe: str = "",
    ) -> None:
        """Add steps of one recipe; ``made`` has those of others by ``RECIPE/STEP``, and gets these."""
        own: dict[str, StageId] = {}
        for step in found:
            needs = {name: own.get(needed) or made[needed] for name, needed in step.needs.items()}
            own[step.name] = self._stage(step, needs, variant, label(step.axes), recipe)
        made |= {f"{recipe}/{name}": stage for name, stage in own.items()}

    def _stage(self, step: Step, needs: dict[str, StageId], variant: str, label: str, recipe: str) -> StageId:
        identity: list[Any] = [
            recipe,
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
            stage_id = self._name(step, label, recipe)
            self._by_content[content] = stage_id
            self.stages[stage_id] = (step, needs, recipe)
            self.variants[stage_id] = []
        if variant not in self.variants[stage_id]:
            self.variants[stage_id].append(variant)
        return stage_id

    def _name(self, step: Step, label: str, recipe: str) -> StageId:
        name = f"{recipe}/{step.name}" if recipe else step.name
        stage_id = StageId(f"{name}[{label}]" if label else name)
        # Two steps with equal axes but other content: an override by an axis that the step may see but that the label
        # already holds can't do this, so it is a fault of the recipe layer and must not be papered over by a number.
        if stage_id in self.stages:
            raise RecipeError(f"two different stages have the id {stage_id}")
        return stage_id
