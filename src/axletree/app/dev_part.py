"""Which stage an editable tree is built by, with what parameters, and the surroundings that it is built in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree import registry
from axletree.buildsystem.cmake.cache import is_true
from axletree.buildsystem.editable import SPLIT_VARIABLES
from axletree.core.errors import Problem, UsageError
from axletree.core.values import StageId
from axletree.execute.context import ActionContext
from axletree.execute.process import Log, secrets_of
from axletree.plan.actions.compile import CompileParameters
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.project import ProjectParameters
from axletree.plan.graph import PlannedStage
from axletree.recipe.faults import suggestion
from axletree.recipe.target import input_variable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import BinaryIO

    from axletree.app.planning import Prepared
    from axletree.core.records import StageRequest
    from axletree.execute.context import Progress
    from axletree.store.store import Store


class DevPart(msgspec.Struct, frozen=True, kw_only=True):
    """The stage, with what is not a stage of its own in an editable tree."""

    stage: PlannedStage
    parameters: ProjectParameters
    inputs: dict[str, StageId]
    """Name of a stage -> the one whose tree is laid out for this one."""
    sources: dict[str, StageId]
    """``source:NAME`` -> the stage that fetches one more source for this one."""
    hipify: dict[str, str] | None = None
    """Variables of the stage that hipifies the source; ``None`` where there is none."""


def folder_of(name: str) -> str:
    """The folder of an input's tree beside the build folder: of a stage by its name, or ``source:NAME``."""
    return name.replace(":", "-") if name.startswith("source:") else f"in-{name}"


def find_stage(prepared: Prepared, name: str | None) -> PlannedStage:
    """The stage that is built in the tree: the one that is named, else the only build, else the only compile stage."""
    stages = [stage for stage in prepared.plan.stages.values() if not stage.recipe]
    possible = {stage.step.name: stage for stage in stages if stage.action in {"build", "compile"}}
    file = str(prepared.loaded.path)
    if name is not None:
        if name not in possible:
            hint = suggestion(name, possible, "build and compile stages") or "the recipe has no build or compile stage"
            raise UsageError(Problem(file=file, message=f"no build or compile stage is named {name!r}", hint=hint))
        return possible[name]
    for action in ("build", "compile"):
        found = [stage for stage in possible.values() if stage.action == action]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(stage.step.name for stage in found)
            raise UsageError(
                Problem(
                    file=file,
                    message=f"the recipe has several {action} stages: {names}",
                    hint="choose one with --stage",
                )
            )
    raise UsageError(Problem(file=file, message="the recipe has no build or compile stage"))


def part_of(prepared: Prepared, stage: PlannedStage) -> DevPart:
    """The stage's own parameters; where it builds only the part for one Python, also those of what it is built against.

    PyTorch's bindings are such a part: the library is a compile stage of the same source. An editable tree is the
    whole.
    """
    parameters = stage.step.parameters
    assert isinstance(parameters, ProjectParameters)  # noqa: S101 (only such stages are built in a tree)
    inputs = {name.removeprefix("in:"): need for name, need in stage.needs.items() if name.startswith("in:")}
    commands, env = list(parameters.commands), parameters.env
    if is_true(env.get("BUILD_PYTHON_ONLY", "")):
        for name, need in list(inputs.items()):
            library = prepared.plan.stages[need].step.parameters
            if isinstance(library, CompileParameters):
                env = {**library.env, **env}
                commands = [command for command in commands if input_variable(name) not in command]
                commands = [*library.commands, *commands]
                del inputs[name]
    parameters = msgspec.structs.replace(
        parameters,
        env={name: value for name, value in env.items() if name not in SPLIT_VARIABLES},
        commands=tuple(dict.fromkeys(commands)),
    )
    source = prepared.plan.stages.get(stage.needs.get("source", stage.id))
    hipify = source.step.parameters.env if source is not None and source.action == "hipify" else None  # type: ignore[attr-defined]
    sources = {name: need for name, need in stage.needs.items() if name.startswith("source:")}
    return DevPart(stage=stage, parameters=parameters, inputs=inputs, sources=sources, hipify=hipify)


def python_of(stage: PlannedStage) -> str:
    """The Python version of an environment's stage."""
    parameters = stage.step.parameters
    assert isinstance(parameters, EnvironmentParameters)  # noqa: S101 (it is one)
    return parameters.version


def context_of(
    request: StageRequest,
    store: Store,
    work: Path,
    *,
    stream: BinaryIO,
    progress: Progress,
    environ: Mapping[str, str],
) -> ActionContext[ProjectParameters]:
    """The surroundings of a stage that is built in a tree; its log goes to a stream."""
    kind = registry.action_spec(request.action).parameters
    parameters = msgspec.convert(request.ingredients.parameters, kind)
    assert isinstance(parameters, ProjectParameters)  # noqa: S101 (only such stages are built in a tree)
    return ActionContext(
        request=request,
        parameters=parameters,
        store=store,
        work=work,
        log=Log(stream, secrets=secrets_of(environ)),
        progress=progress,
        environ=dict(environ),
    )
