"""What the actions of a plan's stages need to know of this machine and of their recipes; no key has any of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree import registry
from axletree.app.conda_channels import addresses
from axletree.app.image_inputs import image_name, portable_interpreters
from axletree.app.planned_recipes import recipe_of, targets_of
from axletree.app.setting import setting_of
from axletree.app.stated import expected, stated
from axletree.core.records import LocalFacts
from axletree.plan.actions.environment import EnvironmentParameters

if TYPE_CHECKING:
    from axletree.app.planning import Prepared
    from axletree.core.values import StageId
    from axletree.plan.graph import Plan, PlannedStage


def local_facts(prepared: Prepared, stage: PlannedStage, *, ccache: str | None) -> LocalFacts:
    """What a stage's action needs to know of this machine; none of it can change a result."""
    step = stage.step
    continued = None if step.continues is None else _maker(prepared.plan, stage.needs[f"in:{step.continues}"])
    planned = recipe_of(prepared, stage)
    targets = targets_of(planned, stage)
    return LocalFacts(
        interpreters=prepared.interpreters if step.image is None else portable_interpreters(prepared),
        tools={tool: prepared.tools[tool].path for tool in step.tools if step.image is None},
        image=image_name(prepared, stage),
        refused=prepared.images.refused if step.image is not None else None,
        gpus=prepared.images.gpus and step.image is not None and prepared.specs[stage.action].host,
        here=prepared.images.here and step.image is not None,
        unproved=prepared.images.unproved.get(image_name(prepared, stage) or "", ()),
        ccache=ccache if prepared.specs[stage.action].compiles and step.image is None else None,
        workspace=_workspace(prepared, stage) if step.workspace else None,
        continues=None if continued is None else _workspace(prepared, continued),
        addresses=_addresses(prepared, stage),
        extra_indexes=registry.torch_indexes(step.axes),
        stated=stated(planned.loaded, targets[0], stage),
        expected=expected(planned.loaded, targets[0], stage),
        setting=setting_of(planned.loaded, targets, stage, lock=planned.relock),
    )


def _addresses(prepared: Prepared, stage: PlannedStage) -> dict[str, str]:
    """Where the packages of a conda environment are."""
    match stage.step.parameters:
        case EnvironmentParameters(conda=packages) if packages:
            planned = recipe_of(prepared, stage)
            known = addresses(planned.loaded, planned.conda)
            return {package.sha256: known[package.sha256] for package in packages}
        case _:
            return {}


def _workspace(prepared: Prepared, stage: PlannedStage) -> str:
    """Name of the folder that a stage keeps: the same recipe file finds it again, whatever changed in it."""
    return f"{recipe_of(prepared, stage).loaded.path.absolute()} {stage.own_id}"


def _maker(plan: Plan, needed: StageId) -> PlannedStage:
    """The stage that made a tree; where that is an installed wheel, the one that built it."""
    stage = plan.stages[needed]
    return plan.stages[stage.needs["wheel"]] if stage.action == "install" else stage
