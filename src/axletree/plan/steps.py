"""What a target asks for, step by step: the stages of the recipe and those that every recipe has.

``fetch -> patch -> environment -> build, run -> install -> pack -> audit -> index -> test``. A step's ``parameters``
are everything of the recipe that can change its result, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from axletree.core.errors import Problem, RecipeError
from axletree.recipe.locks import REMAKE
from axletree.recipe.target import AxisValues, TargetResources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.plan.inputs import LockedEnvironment, PlanInputs
    from axletree.recipe.target import Target, TargetEnvironment, TargetPackage, TargetStage, TargetTest

DEFLATE_LEVEL = 5
_UNPACKED = 5
"""Room that an environment takes, as a multiple of its wheels: they, their content, and a link or copy of it."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one target."""

    name: str
    """Unique in the target: ``build``, ``pack:torch-scatter``, ``test:operators:pip``."""
    action: str
    axes: AxisValues
    parameters: dict[str, Any]
    axes_in_key: bool = True
    """Not where the axes only choose parameters: a patch for other variants changes nothing here."""
    needs: dict[str, str] = {}
    """Name of an input -> name of the step that makes it."""
    tools: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    resources: TargetResources = TargetResources()
    parallel: Literal["auto", "jobs", "tokens", "setuptools"] = "auto"
    workspace: bool = False


def steps_of(target: Target, inputs: PlanInputs) -> Iterator[Step]:
    """The steps of a target, each after what it needs.

    Raises:
        RecipeError: an environment has no lock.
    """
    yield from _source_steps(target, inputs)
    used = _used_environments(target)
    environments = {environment.name: environment for environment in target.environments if environment.name in used}
    _require_locks(environments.values(), inputs)
    for environment in environments.values():
        yield _environment_step(environment, inputs.environments[environment.lock])
    source = "patch" if target.source.patches else "fetch"
    built = {stage.name for stage in target.stages if stage.action == "build"}
    for stage in in_order(target.stages):
        yield _stage_step(stage, source=source, built=built)
        if stage.action == "build":
            yield _install_step(stage)
    for package in target.packages:
        siblings = [other for other in target.packages if other.stage == package.stage]
        yield from _package_steps(package, siblings, inputs, built=built)
    yield from _index_steps(target)
    for test in target.tests:
        yield from _test_steps(test, target, inputs)


def in_order(stages: tuple[TargetStage, ...]) -> tuple[TargetStage, ...]:
    """Stages, each after its inputs; otherwise in the recipe's order. Cycles were refused with the recipe."""
    by_name = {stage.name: stage for stage in stages}
    ordered: dict[str, TargetStage] = {}

    def visit(stage: TargetStage) -> None:
        for name in stage.inputs:
            visit(by_name[name])
        ordered.setdefault(stage.name, stage)

    for stage in stages:
        visit(stage)
    return tuple(ordered.values())


def _used_environments(target: Target) -> set[str]:
    named = {stage.environment for stage in target.stages} | {test.environment for test in target.tests}
    return {name for name in named if name is not None}


def _require_locks(environments: Iterable[TargetEnvironment], inputs: PlanInputs) -> None:
    missing = [environment for environment in environments if environment.lock not in inputs.environments]
    if missing:
        raise RecipeError(
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
    yield Step(name="fetch", action="fetch", axes={}, parameters={"kind": source.kind, **inputs.source})
    if source.patches:
        patches = [
            {"file": patch.file, "strip": patch.strip, "blob": inputs.files[patch.file]} for patch in source.patches
        ]
        yield Step(
            name="patch",
            action="patch",
            axes=source.axes,
            axes_in_key=False,
            parameters={"patches": patches},
            needs={"source": "fetch"},
        )


def _environment_step(environment: TargetEnvironment, locked: LockedEnvironment) -> Step:
    return Step(
        name=f"environment:{environment.name}",
        action="environment",
        axes=environment.axes,
        parameters={
            "python": locked.python,
            "version": environment.python,
            "platform": locked.lock.platform,
            "wheels": [msgspec.structs.asdict(wheel) for wheel in locked.lock.wheels],
        },
        resources=TargetResources(disk=_UNPACKED * locked.lock.size or None),
    )


def _stage_step(stage: TargetStage, *, source: str, built: set[str]) -> Step:
    needs = {f"in:{name}": f"install:{name}" if name in built else name for name in stage.inputs}
    if stage.source:
        needs["source"] = source
    if stage.environment is not None:
        needs["environment"] = f"environment:{stage.environment}"
    parameters: dict[str, Any] = {"directory": stage.directory, "env": stage.env}
    if stage.action == "build":
        parameters["config"] = stage.config
    else:
        parameters["commands"] = list(stage.commands)
    return Step(
        name=stage.name,
        action=stage.action,
        axes=stage.axes,
        parameters=parameters,
        needs=needs,
        tools=stage.tools,
        pass_env=stage.pass_env,
        resources=stage.resources,
        parallel=stage.parallel,
        workspace=stage.workspace,
    )


def _install_step(stage: TargetStage) -> Step:
    return Step(
        name=f"install:{stage.name}", action="install", axes=stage.axes, parameters={}, needs={"wheel": stage.name}
    )


def _package_steps(
    package: TargetPackage, siblings: Iterable[TargetPackage], inputs: PlanInputs, *, built: set[str]
) -> Iterator[Step]:
    tree = f"install:{package.stage}" if package.stage in built else package.stage
    described = {
        "name": package.name,
        "version": package.version,
        "summary": package.summary,
        "license": package.license,
        "prefix": package.prefix,
        "build_tag": package.build_tag,
        "requires": list(package.requires),
        "requires_python": package.requires_python,
    }
    yield Step(
        name=f"pack:{package.name}",
        action="pack",
        axes=package.axes,
        parameters={
            "package": described,
            "siblings": {
                other.name: {"files": list(other.files), "exclude": list(other.exclude)} for other in siblings
            },
            "compressor": inputs.compressor,
            "generator": inputs.generator,
            "level": DEFLATE_LEVEL,
            "policy": inputs.policy,
        },
        needs={"tree": tree},
    )
    yield Step(
        name=f"audit:{package.name}",
        action="audit",
        axes=package.axes,
        parameters={
            "glibc": package.glibc,
            "provided_by": {name: list(patterns) for name, patterns in package.provided_by.items()},
            "driver": list(inputs.driver_libraries),
            "policy": inputs.policy,
            "providers": inputs.providers,
        },
        needs={"wheel": f"pack:{package.name}"},
    )


def _index_steps(target: Target) -> Iterator[Step]:
    roots: dict[str, list[TargetPackage]] = {}
    for package in target.packages:
        roots.setdefault(package.index, []).append(package)
    for root, packages in roots.items():
        axes = {axis: value for package in packages for axis, value in package.axes.items()}
        needs = {f"wheel:{package.name}": f"pack:{package.name}" for package in packages}
        needs |= {f"audit:{package.name}": f"audit:{package.name}" for package in packages}
        yield Step(
            name=f"index:{root}",
            action="index",
            axes=_in_target_order(axes, target),
            parameters={"root": root},
            needs=needs,
        )


def _test_steps(test: TargetTest, target: Target, inputs: PlanInputs) -> Iterator[Step]:
    packages = sorted((package for package in target.packages if package.name in test.packages), key=_name_of)
    roots = list(dict.fromkeys(package.index for package in packages))
    axes = dict(test.axes)
    for package in target.packages:
        if package.index in roots:  # the index that it installs from differs by the axes of all that is in there
            axes |= package.axes
    # By number: a root that is called otherwise is still the same index, and tests nothing new.
    needs = {f"index:{number}": f"index:{root}" for number, root in enumerate(roots)}
    needs["environment"] = f"environment:{test.environment}"
    for installer in test.installers:
        yield Step(
            name=f"test:{test.name}:{installer}",
            action="test",
            axes=_in_target_order(axes, target),
            parameters={
                "installer": installer,
                "client": inputs.clients.get(installer, ""),
                "packages": [{"name": package.name, "version": package.version} for package in packages],
                "imports": list(test.imports),
                "commands": list(test.commands),
                "files": [{"path": path, "blob": inputs.files[path]} for path in test.files],
            },
            needs=needs,
            resources=test.resources,
        )


def _name_of(package: TargetPackage) -> str:
    return package.name


def _in_target_order(axes: AxisValues, target: Target) -> AxisValues:
    return {axis: axes[axis] for axis in target.axes if axis in axes}
