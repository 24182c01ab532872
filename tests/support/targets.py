"""Plans of small recipes, a store that is a dictionary, and recipes at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import tomli_w
from hypothesis import strategies as st

from axletree.core.records import Metrics, StageRecord
from axletree.core.values import Digest, Key, StageId, digest_of
from axletree.plan.actions.fetch import FolderSource
from axletree.plan.actions.spec import Parameters
from axletree.plan.actions.table import ACTIONS
from axletree.plan.graph import Plan, build_plan
from axletree.plan.inputs import LockedEnvironment, PlanInputs
from axletree.plan.keys import Resolved, Surroundings, resolve_stage
from axletree.recipe.axes import expand, variant_id
from axletree.recipe.locks import LockedWheel, make_lock
from axletree.recipe.target import Target, resolve
from support.recipes import SMALL, recipe_of
from support.requests import lookup_in

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from axletree.recipe.environments import TargetEnvironment

MANY = SMALL.replace('python = ["3.11", "3.12"]', 'python = ["3.11", "3.12", "3.13"]')
"""Two GPUs and three Pythons: one source, two libraries, six bindings."""

SURROUNDINGS = Surroundings(host={"machine": "x86_64"}, epoch=315532800)


def targets_at(text: str, only: Container[str] | None = None) -> tuple[Target, ...]:
    """The targets of a recipe's text, of all variants or of some."""
    recipe = recipe_of(text)
    return tuple(resolve(recipe, each) for each in expand(recipe) if only is None or each.id in only)


def locked(environment: TargetEnvironment, *, wheels: Iterable[LockedWheel] = ()) -> LockedEnvironment:
    lock = make_lock(environment.requires, python=environment.python, platform="linux-x86_64", wheels=wheels)
    return LockedEnvironment(python={"version": environment.python, "abi": "cp"}, lock=lock)


def inputs_of(targets: Iterable[Target], **changes: Any) -> PlanInputs:
    """What planning reads beforehand, as if every lock, patch and test file were there."""
    targets = tuple(targets)
    files = {patch.file for target in targets for patch in target.source.patches}
    files |= {path for target in targets for test in target.tests for path in test.files}
    given: dict[str, Any] = {
        "source": FolderSource(tree=digest_of(b"source")),
        "environments": {each.lock: locked(each) for target in targets for each in target.environments},
        "files": {path: digest_of(path.encode()) for path in files},
        "compressor": "zlib 1.3",
        "policy": digest_of(b"policy"),
        "clients": {"pip": "26.0", "uv": "0.9"},
    }
    return PlanInputs(**{**given, **changes})


def plan_of(text: str, only: Container[str] | None = None, **changes: Any) -> Plan:
    """The plan of a recipe's text; ``changes`` replace fields of the inputs."""
    recipe = recipe_of(text)
    targets = targets_at(text, only)
    return build_plan(targets, inputs_of(targets, **changes), label=lambda values: variant_id(values, recipe.axes))


_P = TypeVar("_P", bound=Parameters)


def parameters_of(plan: Plan, stage: str, kind: type[_P]) -> _P:
    """What a plan asks of a stage, which is of this type."""
    found = plan.stages[StageId(stage)].step.parameters
    assert type(found) is kind
    return found


def ids(plan: Plan, prefix: str = "") -> list[str]:
    return [stage for stage in plan.stages if stage.startswith(prefix)]


class Run(NamedTuple):
    """What a made-up run came to."""

    resolved: dict[StageId, Resolved]
    ran: list[StageId]


def run(
    plan: Plan,
    store: dict[Key, StageRecord],
    surroundings: Surroundings = SURROUNDINGS,
    *,
    trees: Mapping[str, str] | None = None,
    makes: Callable[[Resolved], str] | None = None,
) -> Run:
    """Run every stage that the store has no result of, as the driver does.

    The tree of a stage follows from its key, unless ``trees`` has the stage or ``makes`` says what it makes.
    """
    resolved: dict[StageId, Resolved] = {}
    ran: list[StageId] = []
    for stage in plan.stages.values():
        inputs = {name: resolved[needed] for name, needed in stage.needs.items()}
        now = resolve_stage(stage, ACTIONS[stage.action], surroundings, inputs=inputs, lookup=lookup_in(store))
        assert now.certain
        if now.record is None:
            ran.append(stage.id)
            content = (trees or {}).get(stage.id) or (makes(now) if makes else f"{now.key}")
            store[now.key] = record(stage.id, now, digest_of(content.encode()))
            now = resolve_stage(stage, ACTIONS[stage.action], surroundings, inputs=inputs, lookup=lookup_in(store))
        resolved[stage.id] = now
    return Run(resolved, ran)


def record(stage: StageId, resolved: Resolved, tree: Digest) -> StageRecord:
    return StageRecord(
        stage=stage, key=resolved.key, tree=tree, ingredients=resolved.ingredients, metrics=Metrics(wall=1.0)
    )


_AXES = {"python": ("3.11", "3.12", "3.13t"), "gpu": ("cpu", "cu130", "rocm7.1"), "blas": ("mkl", "openblas")}
_AXIS_SETS = st.sets(st.sampled_from(sorted(_AXES)))


def _seen(draw: st.DrawFn, axes: Mapping[str, list[str]], least: set[str]) -> list[str]:
    """Some of the axes that exist, at least those needed, in the recipe's order."""
    wanted = draw(_AXIS_SETS) | least
    return [axis for axis in axes if axis in wanted]


@st.composite
def recipe_texts(draw: st.DrawFn) -> str:
    """Valid recipes: up to three axes, four stages that need each other, patches, overrides, packages and tests."""
    axes = {
        name: list(values[: draw(st.integers(1, len(values)))])
        for name, values in _AXES.items()
        if name == "python" or draw(st.booleans())
    }
    tables: dict[str, Any] = {"axes": axes}
    seen = _seen(draw, axes, {"python"} if draw(st.booleans()) else set())
    python = "{python}" if "python" in seen else "3.11"
    tables["environments"] = {"env": {"axes": seen, "python": python, "requires": ["setuptools"]}}
    patched = [axis for axis in axes if axis == draw(st.sampled_from(sorted(_AXES)))]
    patches: list[dict[str, Any]] = [{"file": "all.patch"}] if draw(st.booleans()) else []
    patches += [{"file": f"{axis}.patch", "when": {axis: axes[axis][0]}} for axis in patched]
    stages: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 4))):
        stages[f"s{number}"] = _stage(draw, axes, stages, environment=seen, patched=patched)
    local = {name: "{" + "}.{".join(stage["axes"]) + "}" for name, stage in stages.items() if stage["axes"]}
    packages = {
        f"p-{name}": {"from": name, "index": draw(st.sampled_from([".", "other"])), **_local(local.get(name))}
        for name in stages
        if draw(st.booleans())
    }
    overrides = [
        {"when": {axis: axes[axis][-1]}, "stage": name, "env": {"EXTRA": "1"}}
        for name, stage in stages.items()
        for axis in stage["axes"][:1]
        if draw(st.booleans())
    ]
    tested = sorted(packages)[: draw(st.integers(0, 2))]
    tables |= {"stages": stages, "patches": patches, "override": overrides, "packages": packages}
    tables["tests"] = {"t": {"packages": tested, "environment": "env", "imports": ["m"]}} if tested else {}
    return tomli_w.dumps({"name": "r", "version": "1", "source": {"path": "src"}, **tables})


def _local(label: str | None) -> dict[str, str]:
    return {} if label is None else {"local": label}


def _stage(
    draw: st.DrawFn,
    axes: Mapping[str, list[str]],
    before: dict[str, Any],
    *,
    environment: list[str],
    patched: list[str],
) -> dict[str, Any]:
    builds = draw(st.booleans())
    inputs = [name for name in before if draw(st.booleans())]
    uses_source = builds or draw(st.booleans())
    in_environment = builds or draw(st.booleans())
    least = {axis for name in inputs for axis in before[name]["axes"]}
    least |= set(environment) if in_environment else set()
    least |= set(patched) if uses_source else set()
    stage: dict[str, Any] = {
        "action": "build" if builds else "run",
        "axes": _seen(draw, axes, least),
        "inputs": inputs,
        "source": uses_source,
    }
    if in_environment:
        stage["environment"] = "env"
    if not builds:
        stage["commands"] = ["make"]
    return stage
