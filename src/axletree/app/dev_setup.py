"""What an editable tree is made of: a stage of a variant as it is planned, its environment, its inputs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree import registry
from axletree.app import planning
from axletree.app.build import find_ccache, run_plan
from axletree.app.dev_conda import BUILD_PREFIX, MARK, has_prefix, have_prefix
from axletree.app.dev_part import find_stage, folder_of, part_of, python_of
from axletree.app.image_inputs import refuse_images
from axletree.app.local_facts import local_facts
from axletree.app.recipes import files_of, load_whole
from axletree.buildsystem.editable import settings_of, way_of
from axletree.buildsystem.era import TELLING_FILES, detect_era
from axletree.core.errors import HostError, Problem, RecipeError, StageError, UsageError
from axletree.core.records import Grant, StageRequest
from axletree.core.units import some_of
from axletree.disk import remove_tree
from axletree.execute.laying import lay_out
from axletree.execute.stage_venvs import UV_CACHE
from axletree.host import machine
from axletree.host.conda_prefix import is_whole
from axletree.host.devtree import FOLDER, DevState, digests, stamps
from axletree.host.files import replace_file
from axletree.host.tools import SYSTEM_PATH, TOOLCHAIN, find_programs
from axletree.host.venvs import add_wheels, create_venv
from axletree.plan.actions.build import BuildParameters
from axletree.plan.actions.compile import cmake_options
from axletree.plan.admission import cost_of
from axletree.recipe.axes import exactly, expand, select
from axletree.recipe.checkouts import repositories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from axletree.app.dev_part import DevPart
    from axletree.app.planning import Prepared
    from axletree.app.recipes import LoadedRecipe
    from axletree.core.events import Event
    from axletree.core.records import Ingredients, Interpreter
    from axletree.core.values import Digest, StageId
    from axletree.plan.actions.project import ProjectParameters
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.settings import Settings
    from axletree.store.store import Store


class DevRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an editable tree is to be."""

    recipe: Path
    sets: tuple[str, ...] = ()
    """Changes of the recipe, ``KEY=VALUE`` each."""
    variant: str
    stage: str | None
    """Name of the stage that is built in it; ``None`` where the recipe has one that it can be."""
    tree: Path
    venv: Path


def choose_variant(loaded: LoadedRecipe, pattern: str | None) -> str:
    """The one variant that is meant.

    Raises:
        UsageError: none or several match.
    """
    found = [variant.id for variant in select(expand(loaded.recipe), [pattern] if pattern is not None else [])]
    if len(found) > 1:
        asked = f"{pattern!r} matches" if pattern is not None else "the recipe has"
        raise UsageError(f"{asked} {len(found)} variants: {some_of(found, 5)}", hint="choose one with -v")
    return found[0]


def default_tree(loaded: LoadedRecipe) -> Path:
    """The recipe's source folder, or its main checkout here.

    Raises:
        UsageError: the recipe has neither.
    """
    source = loaded.recipe.source
    if source.path is not None:
        return loaded.file(source.path)
    found = repositories(loaded.recipe)
    if source.git is None or not found:
        raise UsageError(
            Problem(file=str(loaded.path), message="the source is neither a folder nor a repository"),
            hint="specify the tree with --source",
        )
    return Path(found[0].folder)


def read_of(recipe: Path, sets: Sequence[str]) -> dict[str, str]:
    """Digests of all files that a plan of a recipe is made from."""
    return digests(files_of(recipe, sets))


def set_up(
    wanted: DevRequest,
    before: DevState | None,
    store: Store,
    *,
    settings: Settings,
    environ: Mapping[str, str],
    emit: Callable[[Event], None],
) -> DevState:
    """Plan the stage, run what it needs, and have its environment in place.

    Raises:
        UsageError: the recipe has no such stage, or the environment's folder is somebody else's.
        RecipeError: the recipe or a lock is wrong.
        HostError: the machine lacks something.
        StageError: something that the stage needs fails.
    """
    prepared, part = _plan(wanted, store, environ)
    parts = [need for name in ("environment", "host") if (need := part.stage.needs.get(name)) is not None]
    conda = any(has_prefix(prepared.plan.stages[each]) for each in parts)
    tests = () if conda else tuple(_test_environments(prepared, parts))
    fresh = False
    trees = _run(
        prepared,
        {*parts, *tests, *part.inputs.values(), *part.sources.values()},
        store,
        settings=settings,
        environ=environ,
        emit=emit,
    )
    environments = tuple(dict.fromkeys(trees[stage] for stage in (*tests, *parts)))
    # In our folder nobody else has one; it is without a mark where making it was interrupted.
    ours = wanted.venv.is_relative_to(wanted.tree / FOLDER) or (before is not None and before.venv == str(wanted.venv))
    if conda:  # the last one is what is linked against, where there are two
        fresh = have_prefix(wanted.venv, trees[parts[-1]], store, ours=ours)
        if len(parts) > 1:
            have_prefix(wanted.tree / BUILD_PREFIX, trees[parts[0]], store, ours=True)
    elif parts:
        version = python_of(prepared.plan.stages[parts[0]])
        fresh = _have_venv(wanted.venv, prepared.interpreters[version], environments, store, ours=ours)
    inputs = {name: trees[stage] for name, stage in (part.inputs | part.sources).items()}
    _lay_out(wanted.tree, inputs, store)
    state = _state(wanted, before, prepared, part, environments=environments if parts else (), inputs=inputs)
    if "host" in part.stage.needs:
        state = msgspec.structs.replace(state, build_prefix=str(wanted.tree / BUILD_PREFIX))
    return msgspec.structs.replace(state, project={}) if fresh else state


def plan_changed(state: DevState, environ: Mapping[str, str]) -> bool:
    """Whether anything differs that the plan was made from: recipe, data, locks, variables, tools."""
    recipe = Path(state.recipe)
    if not recipe.exists():
        raise UsageError(Problem(file=state.recipe, message="the recipe no longer exists"), hint="restore the recipe")
    venv_there = state.venv is None or (Path(state.venv) / "bin" / "python").exists() or is_whole(Path(state.venv))
    return not (
        venv_there
        and state.read == read_of(recipe, state.sets)
        and state.passed == {name: environ.get(name) for name in state.passed}
        and state.programs == stamps(state.programs)
    )


def _plan(wanted: DevRequest, store: Store, environ: Mapping[str, str]) -> tuple[Prepared, DevPart]:
    """The plan; the source is in it only where another stage than this one is made of it: it may be large."""
    with tempfile.TemporaryDirectory(prefix="axletree-dev-") as nothing:
        prepared, part = _plan_with(Path(nothing), wanted, store, environ)
    return _plan_with(wanted.tree, wanted, store, environ) if part.inputs else (prepared, part)


def _plan_with(source: Path, wanted: DevRequest, store: Store, environ: Mapping[str, str]) -> tuple[Prepared, DevPart]:
    request = planning.PlanRequest(
        recipe=str(wanted.recipe),
        sets=wanted.sets,
        patterns=(exactly(wanted.variant),),
        out=wanted.tree / FOLDER,
        source=source,
    )
    prepared = planning.prepare(request, store, environ=environ)
    refuse_images(prepared, "axletree dev")
    return prepared, part_of(prepared, find_stage(prepared, wanted.stage))


def _test_environments(prepared: Prepared, parts: list[StageId]) -> Iterator[StageId]:
    """Environments of the variant's tests, for the same Python: what is built wants something to be imported with."""
    stages = prepared.plan.stages
    versions = {python_of(stages[part]) for part in parts}
    needs = (stage.needs.get("environment") for stage in stages.values() if stage.action == "test")
    for need in dict.fromkeys(needs):
        if need is None or need in parts or stages[need].action != "environment":
            continue
        if python_of(stages[need]) in versions:
            yield need


def _run(
    prepared: Prepared,
    wanted: set[StageId],
    store: Store,
    *,
    settings: Settings,
    environ: Mapping[str, str],
    emit: Callable[[Event], None],
) -> dict[StageId, Digest]:
    """Run stages with what they need, and give their trees."""
    upstream = prepared.plan.upstream(wanted)
    stages = {name: stage for name, stage in prepared.plan.stages.items() if name in upstream}
    few = msgspec.structs.replace(prepared, plan=msgspec.structs.replace(prepared.plan, stages=stages))
    budget = machine.budget(store.root, jobs=settings.jobs)
    result = run_plan(
        few, store, budget, keep_going=False, settings=settings, environ=environ, tell=emit, tick=lambda: None
    )
    if result.status == "cancelled":
        raise KeyboardInterrupt
    if result.status == "failed":
        kind = {2: RecipeError, 3: HostError}.get(result.exit_code, StageError)
        raise kind(*(f"stage {failure.stage} failed: {failure.message}" for failure in result.failures))
    records = {name: result.resolved[name].record for name in wanted}
    return {name: record.tree for name, record in records.items() if record is not None}


def _have_venv(
    venv: Path, interpreter: Interpreter, environments: tuple[Digest, ...], store: Store, *, ours: bool
) -> bool:
    """Have the locked wheels in an environment; what somebody else installed in it stays.

    Returns:
        Whether it was made now: then nothing else is installed in it.

    Raises:
        UsageError: the folder holds something else.
    """
    mark = venv / MARK
    held = {"python": f"{interpreter.path} {interpreter.version}", "environments": list(environments)}
    if venv.exists() and any(venv.iterdir()):
        if not (ours or mark.exists()):
            hint = "choose a different folder with --venv, or remove this folder"
            raise UsageError(Problem(file=str(venv), message="the folder was not created by `axletree dev`", hint=hint))
        now = _read_mark(mark)
        works = (venv / "bin" / "python").exists()
        if now == held and works:
            return False
        if not works or (now is not None and now["python"] != held["python"]):
            venv.rename(venv.with_name(f"{venv.name}-{time.strftime('%Y%m%dT%H%M%S')}"))
    elif venv.exists():
        venv.rmdir()
    known = _read_mark(mark)
    fresh = known is None or not known["environments"]  # killed before that was noted: nothing else is in it either
    with store.lease("dev") as scratch:
        environ = {"PATH": ":".join(SYSTEM_PATH), "HOME": str(scratch), "LC_ALL": "C.UTF-8"}
        cache = store.cache / UV_CACHE
        for number, digest in enumerate(environments):
            wheels = scratch / str(number)
            store.materialise(digest, wheels, link=True, writable=False)
            if venv.exists():
                add_wheels(venv, wheels, uv_cache=cache, environ=environ)
            else:
                create_venv(venv, interpreter=interpreter, lock_folder=wheels, uv_cache=cache, environ=environ)
                replace_file(mark, msgspec.json.encode({**held, "environments": []}))
            remove_tree(wheels)
    replace_file(mark, msgspec.json.encode(held))
    return fresh


def _read_mark(mark: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(mark.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return None


def _lay_out(tree: Path, inputs: Mapping[str, Digest], store: Store) -> None:
    """Lay the trees of other stages out beside the build folder."""
    for name, digest in inputs.items():
        lay_out(store, digest, tree / FOLDER / folder_of(name), scratch=tree / FOLDER / f"changed-{folder_of(name)}")


def _state(
    wanted: DevRequest,
    before: DevState | None,
    prepared: Prepared,
    part: DevPart,
    *,
    environments: tuple[Digest, ...],
    inputs: dict[str, Digest],
) -> DevState:
    stage, resolved = part.stage, prepared.resolved[part.stage.id]
    ingredients = msgspec.structs.replace(resolved.ingredients, parameters=msgspec.to_builtins(part.parameters))
    local = local_facts(prepared, stage, ccache=find_ccache())
    source = wanted.tree / part.parameters.directory
    texts = _texts(source)
    era = detect_era(texts)
    way = way_of(era, texts)
    in_source = way in {"setup.py", "setuptools"}
    build = Path(part.parameters.directory) / "build" if in_source else Path(FOLDER) / "build"
    request = StageRequest(
        stage=stage.id,
        action=stage.action,
        key=resolved.key,
        ingredients=ingredients,
        inputs={},
        local=local,
        grant=_grant(prepared, stage),
    )
    # Linked names: what has no stamp yet, such as a compiler that is not there, is none that was used.
    programs = stamps([*local.tools.values(), *find_programs(TOOLCHAIN, ":".join(SYSTEM_PATH)).values()])
    fresh = DevState(
        tree=str(wanted.tree),
        recipe=str(wanted.recipe),
        sets=wanted.sets,
        variant=wanted.variant,
        stage=stage.step.name,
        venv=str(wanted.venv) if environments else None,
        environments=environments,
        inputs=inputs,
        way=way,
        pytorch=era.pytorch,
        rules=era.rules,
        build=build.as_posix(),
        request=request,
        settings=_settings(ingredients, part.parameters, environments, inputs),
        read=read_of(wanted.recipe, wanted.sets),
        passed=ingredients.environ,
        programs=programs,
        hipify=part.hipify,
        hipified=before is not None and before.hipified and part.hipify is not None,
    )
    if before is None:
        return fresh
    return msgspec.structs.replace(
        fresh,
        project=before.project if before.venv == fresh.venv else {},
        prepared=before.prepared,
        distribution=before.distribution,
        modules=before.modules,
        steps=before.steps,
    )


def _settings(
    ingredients: Ingredients,
    parameters: ProjectParameters,
    environments: tuple[Digest, ...],
    inputs: Mapping[str, Digest],
) -> dict[str, str]:
    settings = settings_of(
        environ={**ingredients.environ, **parameters.env},
        config=parameters.config if isinstance(parameters, BuildParameters) else {},
        options=cmake_options(parameters),
        tools=ingredients.tools,
    )
    settings |= {f"environment {number}": digest for number, digest in enumerate(environments)}
    return settings | {f"input {name}": digest for name, digest in inputs.items()}


def _texts(source: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in TELLING_FILES:
        path = source / name
        if path.is_file():
            found[name] = path.read_text(encoding="utf-8", errors="replace")
    return found


def _grant(prepared: Prepared, stage: PlannedStage) -> Grant:
    """As many jobs as a build would get on this machine, alone."""
    budget = machine.budget(Path.cwd())
    last = prepared.last.get(stage.id)
    cost = cost_of(
        stage.step.resources,
        compiles=registry.action_spec(stage.action).compiles,
        last=last.metrics if last is not None else None,
        machine=budget,
        free=budget,
    )
    return Grant(jobs=cost.jobs, memory=cost.memory, parallel=stage.step.parallel)


def load(recipe: str, sets: Sequence[str]) -> tuple[LoadedRecipe, Path]:
    """A recipe and the absolute path of its file."""
    loaded = load_whole(recipe, sets)
    return loaded, loaded.path.resolve()
