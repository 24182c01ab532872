"""What a target asks for, step by step: the stages of the recipe and those that every recipe has.

``fetch -> place -> patch -> environment -> build, run -> install -> pack -> audit -> index -> test``. A step's
``parameters`` are everything of the recipe that can change its result, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import LockError, Problem
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.fetch import FetchParameters, FileSource
from axletree.plan.actions.install import InstallParameters
from axletree.plan.actions.patch import PatchFile, PatchParameters
from axletree.plan.actions.place import PlaceParameters
from axletree.plan.images import image_of
from axletree.plan.packaging import packaging_steps
from axletree.plan.relocation import relocation_step
from axletree.plan.step import Step
from axletree.recipe.locks import REMAKE, without_urls
from axletree.recipe.overlay import written_path
from axletree.recipe.target import TargetResources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.plan.actions.fetch import PinnedSource
    from axletree.plan.inputs import LockedEnvironment, PlanInputs
    from axletree.recipe.target import Target, TargetEnvironment, TargetStage

_PLACE = "place:sources"
_UNPACKED = 5
"""Room that an environment takes, as a multiple of its wheels: they, their content, and a link or copy of it."""


def steps_of(target: Target, inputs: PlanInputs) -> Iterator[Step]:
    """The steps of a target, each after what it needs.

    Raises:
        LockError: an environment has no lock.
    """
    yield from _source_steps(target, inputs)
    used = _used_environments(target)
    environments = {environment.name: environment for environment in target.environments if environment.name in used}
    _require_locks(environments.values(), inputs)
    for environment in environments.values():
        yield _environment_step(environment, inputs.environments[environment.lock])
    source = "patch" if target.source.patches else _placed_by(target)
    built = {stage.name for stage in target.stages if stage.action == "build"}
    for stage in in_order(target.stages):
        if stage.relocate is not None:
            yield relocation_step(stage, stage.relocate, inputs, _tree_inputs(stage, built))
            continue
        yield _stage_step(stage, inputs, source=source, built=built)
        if stage.action == "build":
            yield _install_step(stage)
    yield from packaging_steps(target, inputs, trees=lambda stage: _tree_of(stage, built))


def in_order(stages: tuple[TargetStage, ...]) -> tuple[TargetStage, ...]:
    """Stages, each after its inputs; otherwise in the recipe's order. Cycles were refused with the recipe."""
    by_name = {stage.name: stage for stage in stages}
    ordered: dict[str, TargetStage] = {}

    def visit(stage: TargetStage) -> None:
        for name in needed_stages(stage):
            visit(by_name[name])
        ordered.setdefault(stage.name, stage)

    for stage in stages:
        visit(stage)
    return tuple(ordered.values())


def needed_stages(stage: TargetStage) -> tuple[str, ...]:
    """Stages whose trees a stage gets: as its inputs, as its source."""
    return (*stage.inputs, *([stage.source_from] if stage.source_from is not None else []))


def _used_environments(target: Target) -> set[str]:
    named = {stage.environment for stage in target.stages} | {test.environment for test in target.tests}
    return {name for name in named if name is not None}


def _require_locks(environments: Iterable[TargetEnvironment], inputs: PlanInputs) -> None:
    missing = [environment for environment in environments if environment.lock not in inputs.environments]
    if missing:
        raise LockError(
            *(
                Problem(
                    message=f"environment {environment.name!r} has no lock for this variant ({environment.lock})",
                    hint=REMAKE,
                )
                for environment in missing
            )
        )


def _source_steps(target: Target, inputs: PlanInputs) -> Iterator[Step]:
    source = target.source
    yield Step(name="fetch", action="fetch", axes={}, parameters=FetchParameters(source=inputs.source))
    used = {name for stage in target.stages for name in stage.sources}
    for extra in source.extras:
        if extra.into is not None or extra.name in used:
            parameters = FetchParameters(source=inputs.extras[extra.name])
            yield Step(name=_fetch_of(extra.name), action="fetch", axes={}, parameters=parameters)
    if _placed_by(target) == _PLACE:
        yield _place_step(target, inputs)
    if source.patches:
        yield Step(
            name="patch",
            action="patch",
            axes=source.axes,
            axes_in_key=False,
            parameters=PatchParameters(
                patches=tuple(
                    PatchFile(file=written_path(patch.file), strip=patch.strip, blob=inputs.files[patch.file])
                    for patch in source.patches
                )
            ),
            needs={"source": _placed_by(target)},
        )


def _placed_by(target: Target) -> str:
    """The step that makes the source before its patches."""
    return _PLACE if any(extra.into is not None for extra in target.source.extras) else "fetch"


def _fetch_of(extra: str) -> str:
    return f"fetch:{extra}"


def _place_step(target: Target, inputs: PlanInputs) -> Step:
    places = {extra.name: extra.into for extra in target.source.extras if extra.into is not None}
    files = {name for name in places if _is_plain(inputs.extras[name])}
    return Step(
        name=_PLACE,
        action="place",
        axes=target.source.axes,
        axes_in_key=False,
        parameters=PlaceParameters(
            folders={name: into for name, into in places.items() if name not in files},
            files={name: into for name, into in places.items() if name in files},
        ),
        needs={"source": "fetch", **{f"source:{name}": _fetch_of(name) for name in places}},
    )


def _is_plain(source: PinnedSource) -> bool:
    return isinstance(source, FileSource) and source.plain


def _environment_step(environment: TargetEnvironment, locked: LockedEnvironment) -> Step:
    return Step(
        name=f"environment:{environment.name}",
        action="environment",
        axes=environment.axes,
        parameters=EnvironmentParameters(
            python=locked.python,
            version=environment.python,
            platform=locked.lock.platform,
            wheels=without_urls(locked.lock.wheels),
        ),
        resources=TargetResources(disk=_UNPACKED * locked.lock.size or None),
    )


def _tree_inputs(stage: TargetStage, built: set[str]) -> dict[str, str]:
    return {f"in:{name}": _tree_of(name, built) for name in stage.inputs}


def _tree_of(stage: str, built: set[str]) -> str:
    """The step that makes a stage's tree: that of a PEP 517 build is its wheel, installed."""
    return f"install:{stage}" if stage in built else stage


def _stage_step(stage: TargetStage, inputs: PlanInputs, *, source: str, built: set[str]) -> Step:
    spec = inputs.actions[stage.action]
    assert spec.of_stage is not None  # noqa: S101 (recipes name only actions that stages can have)
    needs = _tree_inputs(stage, built) | {f"source:{name}": _fetch_of(name) for name in stage.sources}
    if stage.source:
        needs["source"] = source if stage.source_from is None else _tree_of(stage.source_from, built)
    if stage.environment is not None:
        needs["environment"] = f"environment:{stage.environment}"
    return Step(
        name=stage.name,
        action=stage.action,
        axes=stage.axes,
        parameters=spec.of_stage(stage),
        needs=needs,
        tools=stage.tools,
        pass_env=stage.pass_env,
        image=image_of(stage.image, inputs),
        resources=stage.resources,
        parallel=stage.parallel,
        workspace=stage.workspace,
        continues=stage.continues,
    )


def _install_step(stage: TargetStage) -> Step:
    return Step(
        name=f"install:{stage.name}",
        action="install",
        axes=stage.axes,
        parameters=InstallParameters(),
        needs={"wheel": stage.name},
    )
