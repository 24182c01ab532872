"""The steps that relocate a tree: of a stage that says how, of a package that takes in what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.plan.actions.relocate import Bundled, RelocateParameters
from axletree.plan.step import Step
from axletree.recipe.relocation import Relocate, RelocateTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.plan.actions.packages import TreePart
    from axletree.plan.inputs import PlanInputs
    from axletree.recipe.target import TargetPackage, TargetStage


def relocation_step(stage: TargetStage, table: RelocateTable, inputs: PlanInputs, needs: Mapping[str, str]) -> Step:
    """The step: what it does, the libraries of this machine that it may take in, and the data that it goes by.

    Args:
        stage: the stage.
        table: its table.
        inputs: what was read beforehand.
        needs: name of an input -> step that makes it, the tree that is relocated first.
    """
    return Step(
        name=stage.name,
        action="relocate",
        axes=stage.axes,
        parameters=RelocateParameters(
            tree=next(iter(needs)),
            relocate=table.rules,
            link=table.link,
            drop_needed=table.drop_needed,
            libraries=inputs.libraries.get(graft_key(table), {}),
            policy=inputs.policy,
            providers=inputs.providers,
        ),
        needs=dict(needs),
        resources=stage.resources,
    )


def bundling_step(package: TargetPackage, part: TreePart, inputs: PlanInputs, needs: Mapping[str, str]) -> Step:
    """The step of a package with ``bundle = true``: its files, and in ``NAME.libs`` what they need of this machine.

    Args:
        package: the package.
        part: what it takes of its tree.
        inputs: what was read beforehand.
        needs: the step that makes the tree.
    """
    folder = f"{canonicalize_name(package.name).replace('-', '_')}.libs"
    return Step(
        name=f"bundle:{package.name}",
        action="relocate",
        axes=package.axes,
        parameters=RelocateParameters(
            tree=next(iter(needs)),
            relocate=Relocate(graft_to=folder),
            bundled=Bundled(
                part=part,
                requires=package.requires,
                provided_by=package.provided_by,
                libraries=inputs.host_libraries,
            ),
            policy=inputs.policy,
            providers=inputs.providers,
        ),
        needs=dict(needs),
    )


def graft_key(rules: Relocate) -> tuple[str, ...]:
    """What decides which libraries of this machine a relocation may take in: patterns, and folders behind a mark."""
    return (*rules.graft, "in", *rules.graft_from)
