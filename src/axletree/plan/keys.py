"""Keys that don't lie: what identifies a stage's result, before and after its inputs exist.

The key of a stage is the digest of its *ingredients*: revision of the action's code, declared axes, parameters, passed
variables, tool versions, host facts where they matter, and for each input the digest of its tree. Before an input
exists, its own predicted key stands in for the digest. So a stage that ran again but made the same tree as before
leaves every key behind it as it was: the rebuild stops there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from axletree.core.records import ActionCode, Ingredients, StageRecord
from axletree.core.values import Key, StageId, key_of
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.spec import Facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.plan.actions.spec import ActionSpec
    from axletree.plan.graph import Plan, PlannedStage
    from axletree.plan.step import Step

PYTHON = "python"
"""What the Pythons of an image are called among the tools of a stage."""
Lookup = Callable[[Key, type[Facts]], StageRecord | None]
"""Finds the result for a key, with facts of a type; one whose facts are not of that type is none."""


TOOLKIT_PROGRAMS = frozenset({"nvcc", "hipcc", "hipconfig"})
"""Programs of GPU toolkits. Stages that declare none of them do not see those in the system's folders."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What keys take from outside the recipe."""

    tools: dict[str, dict[str, str]] = {}
    """Tool that some stage declared -> its fingerprint."""
    toolchain: dict[str, dict[str, str]] = {}
    """The compilers that a stage finds whether it declared them or not, as far as they are there."""
    toolkits: dict[str, dict[str, str]] = {}
    """Those of :data:`TOOLKIT_PROGRAMS` that are in the system's folders, where a stage that declares one sees all."""
    portable: dict[str, str] = {}
    """Python version -> identity of the portable Python that is taken into images."""
    environ: dict[str, str] = {}
    """The variables of the user's shell that some stage asked for."""
    host: dict[str, str] = {}
    """Facts of the host, for actions whose result depends on them."""
    passes_gpus: bool = False
    """Whether tests in images see the GPUs of the host."""
    epoch: int = 0
    """``SOURCE_DATE_EPOCH``: the date that goes into archives, seconds."""


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A stage with its key."""

    key: Key
    ingredients: Ingredients
    certain: bool
    """Whether all its inputs exist, so that the key is final."""
    record: StageRecord | None = None
    """Its result, where the store has it."""

    @property
    def identity(self) -> str:
        """What stands for this stage's result in the keys of others."""
        return f"tree:{self.record.tree}" if self.record is not None else f"key:{self.key}"


def resolve_stage(
    stage: PlannedStage,
    spec: ActionSpec,
    surroundings: Surroundings,
    *,
    inputs: Mapping[str, Resolved],
    lookup: Lookup,
) -> Resolved:
    """Compute a stage's key from its inputs, and look its result up once the key is final."""
    step = stage.step
    seen = {tool: surroundings.tools.get(tool, {}) for tool in step.tools}
    if not TOOLKIT_PROGRAMS.isdisjoint(step.tools):
        # Who declares none sees the same on every host, so nothing of them is in its key.
        seen = surroundings.toolkits | seen
    if spec.compiles and not step.own_compilers:
        seen = surroundings.toolchain | seen
    if step.image is not None:  # its own tools are part of it; only the Python comes from here
        seen = _python_of(inputs, surroundings)
    ingredients = Ingredients(
        action=ActionCode(name=step.action, revision=spec.revision, distribution=spec.distribution),
        axes=step.axes if step.axes_in_key else {},
        parameters=step.parameters,
        inputs={name: resolved.identity for name, resolved in inputs.items()},
        tools=seen,
        environ={name: surroundings.environ.get(name) for name in step.pass_env},
        host=_host(step, surroundings) if spec.host else {},
        epoch=surroundings.epoch if spec.compiles or spec.dated else None,
        image=step.image,
    )
    certain = all(resolved.record is not None for resolved in inputs.values())
    key = key_of(ingredients)
    return Resolved(
        key=key, ingredients=ingredients, certain=certain, record=lookup(key, spec.facts) if certain else None
    )


def _python_of(inputs: Mapping[str, Resolved], surroundings: Surroundings) -> dict[str, dict[str, str]]:
    """The portable Python that a stage in an image uses: that of its environment, and none without one."""
    environment = inputs.get("environment")
    parameters = environment.ingredients.parameters if environment is not None else None
    if not isinstance(parameters, EnvironmentParameters) or parameters.version not in surroundings.portable:
        return {}
    return {PYTHON: {parameters.version: surroundings.portable[parameters.version]}}


def _host(step: Step, surroundings: Surroundings) -> dict[str, str]:
    """Facts of the host that a step depends on; in an image its C library is not the host's."""
    if step.image is None:
        return surroundings.host
    gpus = {} if surroundings.passes_gpus else {"gpus": ""}
    return {name: value for name, value in (surroundings.host | gpus).items() if name != "libc"}


def resolve_plan(
    plan: Plan,
    specs: Callable[[str], ActionSpec],
    surroundings: Surroundings,
    lookup: Lookup,
) -> dict[StageId, Resolved]:
    """The keys of all stages of a plan, as far as they are known now."""
    resolved: dict[StageId, Resolved] = {}
    for stage in plan.stages.values():
        resolved[stage.id] = resolve_stage(
            stage,
            specs(stage.action),
            surroundings,
            inputs={name: resolved[needed] for name, needed in stage.needs.items()},
            lookup=lookup,
        )
    return resolved
