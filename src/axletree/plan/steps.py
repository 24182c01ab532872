"""What a target asks for, step by step: the stages of the recipe and those that every recipe has.

``fetch -> place -> patch -> environment -> build, run -> install -> pack -> audit -> index -> test``. A step's
``parameters`` are everything of the recipe that can change its result, and nothing else.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from axletree.core.errors import LockError, Problem
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.fetch import FetchParameters, FileSource
from axletree.plan.actions.install import InstallParameters
from axletree.plan.actions.patch import PatchFile, PatchParameters
from axletree.plan.actions.place import PlaceParameters
from axletree.plan.conda import brought_by, conda_step
from axletree.plan.images import image_of
from axletree.plan.imports import input_name, tree_of, wheel_needs
from axletree.plan.packaging import packaging_steps
from axletree.plan.relocation import relocation_step
from axletree.plan.step import Step
from axletree.recipe.locks import REMAKE, without_urls
from axletree.recipe.overlay import written_path
from axletree.recipe.part import used_environments
from axletree.recipe.target import TargetResources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from axletree.plan.actions.fetch import PinnedSource
    from axletree.plan.conda import Brought
    from axletree.plan.imports import ImportedPart
    from axletree.plan.inputs import PlanInputs
    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.target import Target, TargetStage

_PLACE = "place:sources"
_UNPACKED = 5
"""Room that an environment takes, as a multiple of its wheels: they, their content, and a link or copy of it."""


def steps_of(
    target: Target, inputs: PlanInputs, links: Mapping[str, ImportedPart] = MappingProxyType({})
) -> Iterator[Step]:
    """The steps of a target, each after what it needs.

    Args:
        target: the recipe at a variant.
        inputs: what was read beforehand.
        links: name in the recipe's table ``recipes`` -> the imported recipe at this variant.

    Raises:
        LockError: an environment has no lock.
    """
    yield from _source_steps(target, inputs)
    require_locks(target, inputs)
    used = used_environments(target)
    environments = {environment.name: environment for environment in target.environments if environment.name in used}
    for environment in environments.values():
        yield _environment_step(environment, inputs, links)
    source = "patch" if target.source.patches else _placed_by(target)
    built = {stage.name for stage in target.stages if stage.action == "build"}

    def trees(name: str) -> str:
        return tree_of(name, built, links)

    for stage in in_order(target.stages):
        if stage.relocate is not None:
            yield relocation_step(stage, stage.relocate, inputs, _tree_inputs(stage, trees))
            continue
        brought = brought_by(stage, environments, inputs.conda)
        yield _stage_step(stage, inputs, source=source, trees=trees, brought=brought)
        if stage.action == "build":
            yield _install_step(stage)
    yield from packaging_steps(target, inputs, trees=trees)


def in_order(stages: tuple[TargetStage, ...]) -> tuple[TargetStage, ...]:
    """Stages, each after its inputs; otherwise in the recipe's order. Cycles were refused with the recipe."""
    by_name = {stage.name: stage for stage in stages}
    ordered: dict[str, TargetStage] = {}

    def visit(stage: TargetStage) -> None:
        for name in needed_stages(stage):
            if name in by_name:  # else it is of an imported recipe
                visit(by_name[name])
        ordered.setdefault(stage.name, stage)

    for stage in stages:
        visit(stage)
    return tuple(ordered.values())


def needed_stages(stage: TargetStage) -> tuple[str, ...]:
    """Stages whose trees a stage gets: as its inputs, as its source."""
    return (*stage.inputs, *([stage.source_from] if stage.source_from is not None else []))


def require_locks(target: Target, inputs: PlanInputs) -> None:
    """Refuse a target with an environment that is used and has no lock.

    Raises:
        LockError: there is one.
    """
    used = used_environments(target)
    locks = inputs.environments.keys() | inputs.conda.keys()
    missing = [each for each in target.environments if each.name in used and each.lock not in locks]
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


def _environment_step(environment: TargetEnvironment, inputs: PlanInputs, links: Mapping[str, ImportedPart]) -> Step:
    needs = {name: step for each in environment.packages for name, step in wheel_needs(each, links).items()}
    if environment.provider == "conda":
        return conda_step(environment, inputs.conda[environment.lock], needs)
    locked = inputs.environments[environment.lock]
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
        needs=needs,
        resources=TargetResources(disk=_UNPACKED * locked.lock.size or None),
    )


def _tree_inputs(stage: TargetStage, trees: Callable[[str], str]) -> dict[str, str]:
    return {f"in:{input_name(name)}": trees(name) for name in stage.inputs}


def _stage_step(
    stage: TargetStage, inputs: PlanInputs, *, source: str, trees: Callable[[str], str], brought: Brought | None
) -> Step:
    spec = inputs.actions[stage.action]
    assert spec.of_stage is not None  # noqa: S101 (recipes name only actions that stages can have)
    needs = _tree_inputs(stage, trees) | {f"source:{name}": _fetch_of(name) for name in stage.sources}
    if stage.source:
        needs["source"] = source if stage.source_from is None else trees(stage.source_from)
    if stage.environment is not None:
        needs["environment"] = f"environment:{stage.environment}"
    if stage.host is not None:
        needs["host"] = f"environment:{stage.host}"
    return Step(
        name=stage.name,
        action=stage.action,
        axes=stage.axes,
        parameters=spec.of_stage(stage),
        needs=needs,
        tools=stage.tools if brought is None else tuple(tool for tool in stage.tools if not brought.has(tool)),
        own_compilers=brought is not None and brought.compilers,
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
