"""What it costs that nothing is shared across some axes: the plan at hand against the one that shares what it can."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.plan.graph import build_plan
from axletree.recipe.axes import expand, variant_id
from axletree.recipe.target import resolve
from axletree.report.plan import Sharing

if TYPE_CHECKING:
    from axletree.app.planning import Prepared
    from axletree.core.values import StageId
    from axletree.plan.graph import Plan, PlannedStage
    from axletree.recipe.target import Target
    from axletree.store.store import Store


def compare_sharing(prepared: Prepared, store: Store) -> Sharing | None:
    """The two plans' stages and times; ``None`` where sharing is on."""
    if not prepared.no_share:
        return None
    recipe = prepared.loaded.recipe
    chosen = {variant.id: variant for variant in expand(recipe)}
    targets = [_as_planned(resolve(recipe, chosen[target.variant]), target) for target in prepared.targets]
    shared = build_plan(
        targets, prepared.inputs, label=lambda values: variant_id(values, recipe.axes), imports=prepared.imports
    )
    took = {
        stage: record.metrics.wall
        for stage in shared.stages
        if (record := store.last_record(stage, shared.recipe)) is not None
    }
    took |= {stage: record.metrics.wall for stage, record in prepared.last.items() if stage not in took}
    times = [took.get(stage.id, took.get(_twin(stage, shared), 0.0)) for stage in prepared.plan.stages.values()]
    return Sharing(
        axes=prepared.no_share,
        stages=len(prepared.plan.stages),
        shared_stages=len(shared.stages),
        work=sum(times) if took else None,
        shared_work=sum(took.get(stage, 0.0) for stage in shared.stages) if took else None,
    )


def _as_planned(target: Target, planned: Target) -> Target:
    """The part of a target that is planned: only of that it is known what it needs of imported recipes."""
    stages, packages, tests = (
        {each.name for each in part} for part in (planned.stages, planned.packages, planned.tests)
    )
    return msgspec.structs.replace(
        target,
        stages=tuple(each for each in target.stages if each.name in stages),
        packages=tuple(each for each in target.packages if each.name in packages),
        tests=tuple(each for each in target.tests if each.name in tests),
    )


def _twin(stage: PlannedStage, shared: Plan) -> StageId:
    """The stage that stands for this one where sharing is on: the same step of the same variants."""
    variant = stage.variants[0]
    name = (stage.recipe, stage.step.name)
    return next(
        other.id
        for other in shared.stages.values()
        if (other.recipe, other.step.name) == name and variant in other.variants
    )
