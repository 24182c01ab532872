"""From a recipe's name to a plan whose keys are known: everything that is read before anything runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree import registry
from axletree.app.carried import carried_files
from axletree.app.conda_inputs import client_versions, conda_inputs
from axletree.app.epoch import source_date_epoch
from axletree.app.host_libraries import host_libraries
from axletree.app.image_inputs import ImageInputs, image_inputs, image_name, portable_interpreters
from axletree.app.lacking import lacking_parts, unlocked_stages
from axletree.app.recipes import LoadedRecipe, load_whole, problem_at, with_source
from axletree.app.releases import release_version
from axletree.app.setting import setting_of
from axletree.app.sources import extra_inputs, lock_command, locked_environments, naming, source_inputs
from axletree.app.stage_reasons import own_reasons, reasons, source_changes
from axletree.app.stated import expected, stated
from axletree.binary.zip.deflate import COMPRESSOR
from axletree.check.rules.plan import Part
from axletree.core.errors import HostError, Problem, RecipeError
from axletree.core.events import Download, StagePlanned
from axletree.core.records import Interpreter, LocalFacts, StageRecord
from axletree.core.secrets import looks_secret
from axletree.core.values import Digest, StageId
from axletree.host import machine
from axletree.host.interpreters import look_for_interpreters, stand_in
from axletree.host.shipped_data import shipped_digest
from axletree.host.tools import Tool, find_toolchain, find_tools
from axletree.package.libraries.build_paths import interpreter_folders
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.package.wheel.info import GENERATOR
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.fetch import FetchParameters, FileSource
from axletree.plan.actions.spec import ActionSpec
from axletree.plan.graph import Plan, PlannedStage, build_plan
from axletree.plan.inputs import PlanInputs
from axletree.plan.keys import TOOLKIT_PROGRAMS, Resolved, Surroundings, resolve_plan
from axletree.plan.relocation import graft_key
from axletree.recipe.axes import expand, select, variant_id
from axletree.recipe.defaults import DERIVED
from axletree.recipe.part import parts_of
from axletree.recipe.sharing import unshared
from axletree.recipe.target import Target, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.recipe.locks import LockedWheel
    from axletree.store.store import Store


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with all that is known before it runs."""

    loaded: LoadedRecipe
    targets: tuple[Target, ...]
    plan: Plan
    specs: dict[str, ActionSpec]
    surroundings: Surroundings
    resolved: dict[StageId, Resolved]
    last: dict[StageId, StageRecord]
    unread: frozenset[StageId] = frozenset()
    """Stages whose last record is of another version of Axletree."""
    interpreters: dict[str, Interpreter]
    lacking: dict[StageId, tuple[Part, ...]]
    """Stages that need something that is not installed, and what; only a plan that nobody runs has any."""
    unlocked: frozenset[StageId] = frozenset()
    """Stages of what is not locked yet; only a plan that nobody runs has any."""
    relock: str
    """Hint: the command that locks what this plan is for."""
    tools: dict[str, Tool]
    inputs: PlanInputs
    out: Path
    """Where the results go."""
    replace: bool = False
    """Whether packages there with the same names and other content are replaced."""
    no_share: tuple[str, ...] = ()
    """Axes across which nothing is shared."""
    images: ImageInputs = ImageInputs()
    """What is known of the images of its stages."""
    changes: tuple[str, ...] = ()
    """Options that make it another build than the recipe's own, as words of a command line."""
    source_changes: tuple[list[Any], list[Any]] | None = None
    """What differs in a source folder, last time and now: the digest of a folder tells people nothing."""


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be planned, as a user asks for it."""

    recipe: str
    """Name or path."""
    out: Path
    """Where the results go: no part of the source, even if it lies in there."""
    patterns: tuple[str, ...] = ()
    """Which variants; none means all."""
    skip: tuple[str, ...] = ()
    """Which of them not."""
    no_share: tuple[str, ...] = ()
    """Axes across which nothing is shared."""
    source: Path | None = None
    """Folder that is built instead of the recipe's source."""
    sets: tuple[str, ...] = ()
    """Changes of the recipe for this call, ``KEY=VALUE`` each."""
    formats: tuple[str, ...] = ()
    """Which formats of packages; none means all."""
    packages: tuple[str, ...] = ()
    """Which packages, with what they need; none means all."""
    release: str | None = None
    """What packages are called instead of the recipe's version, in the words of ``--release``."""
    gpus: bool = False
    """Whether tests in images see the GPUs of this machine."""
    replace: bool = False
    """Whether packages in ``out`` with the same names and other content are replaced."""


def changes(loaded: LoadedRecipe, request: PlanRequest) -> tuple[str, ...]:
    """Options of a request that make other packages than the recipe's own, as words, the same for the same build."""
    given = (
        ("--set", loaded.sets),
        ("--format", sorted({*request.formats})),
        ("--package", sorted({*request.packages})),
    )
    return tuple(word for option, values in given for value in values for word in (option, value))


def prepare(request: PlanRequest, store: Store, *, environ: Mapping[str, str], only_plan: bool = False) -> Prepared:
    """Read a recipe, choose its variants, and plan them.

    With ``only_plan``, locks, interpreters, tools and the conda client may be missing.

    Raises:
        UsageError: the recipe has no such axis, a pattern matches no variant, or there is no such release.
        RecipeError: the recipe or a lock is wrong.
        LockError: a lock is missing or out of date.
        HostError: an interpreter or a tool that a stage needs is not on this machine.
    """
    loaded = load_whole(request.recipe, request.sets)
    if request.source is not None:
        loaded = with_source(loaded, request.source)
    recipe = unshared(loaded.recipe, request.no_share)
    _refuse_nothing(loaded)
    variants = select(expand(recipe), request.patterns, request.skip)
    version = release_version(recipe, request.release) if request.release else None
    targets = tuple(resolve(recipe, variant, version=version) for variant in variants)
    targets = parts_of(recipe, targets, formats=request.formats, packages=request.packages)
    _refuse_secrets(targets, loaded)
    interpreters = _interpreters(loaded, targets, store, environ, only_plan=only_plan)
    relock = lock_command(loaded, [*_options("-v", request.patterns), *_options("--skip", request.skip)])
    with naming(loaded, relock):
        clients = client_versions(targets, only_plan=only_plan)
        images = image_inputs(loaded, targets, interpreters, environ=environ, gpus=request.gpus)
        inputs = _inputs(loaded, targets, store, interpreters, clients, images, request.out, only_plan=only_plan)
        plan = build_plan(targets, inputs, label=lambda values: variant_id(values, recipe.axes))
    specs = {action: registry.action_spec(action) for action in {stage.action for stage in plan.stages.values()}}
    wanted = [tool for stage in plan.stages.values() if stage.step.image is None for tool in stage.step.tools]
    tools = find_tools(wanted, environ=environ, cache=store.cache / "tools.json", only_plan=only_plan)
    compiling = any(spec.compiles for spec in specs.values())
    toolchain = find_toolchain(cache=store.cache / "tools.json") if compiling else {}
    toolkit = not TOOLKIT_PROGRAMS.isdisjoint(wanted)
    toolkits = find_toolchain(sorted(TOOLKIT_PROGRAMS), cache=store.cache / "tools.json") if toolkit else {}
    surroundings = _surroundings(plan, tools, toolchain, toolkits, images, environ)
    last = {stage: record for stage in plan.stages if (record := store.last_record(stage, plan.recipe)) is not None}
    unread = {stage for stage in plan.stages.keys() - last if store.last_path(stage, plan.recipe).exists()}
    return Prepared(
        loaded=loaded,
        targets=targets,
        plan=plan,
        specs=specs,
        surroundings=surroundings,
        resolved=resolve_plan(plan, specs.__getitem__, surroundings, store.get_record),
        last=last,
        unread=frozenset(unread),
        interpreters=interpreters,
        lacking=lacking_parts(plan, interpreters, clients, tools),
        unlocked=unlocked_stages(plan),
        relock=relock,
        tools=tools,
        inputs=inputs,
        images=images,
        out=request.out,
        replace=request.replace,
        no_share=request.no_share,
        changes=changes(loaded, request),
        source_changes=source_changes(plan, last, store),
    )


def _refuse_nothing(loaded: LoadedRecipe) -> None:
    """Refuse a recipe without stages and packages: its build would succeed without a result.

    Raises:
        RecipeError: it is one.
    """
    recipe = loaded.recipe
    if recipe.stages or recipe.packages:
        return
    if loaded.only_environments:
        message = "the file has only environments, so there is nothing to build"
        hint = f"create one: axletree env create {loaded.asked}; to build a project, set source"
        raise RecipeError(Problem(file=str(loaded.path), message=message, hint=hint))
    message = "the recipe has no stages and no packages, so there is nothing to build"
    if "python" not in recipe.axes:
        hint = 'to build the project, set axes.python, such as python = ["3.12"]; its stages are then derived from it'
        raise RecipeError(Problem(file=str(loaded.path), message=message, hint=hint))
    other = next((name for name in recipe.environments if name not in DERIVED), None)
    if other is None:
        raise RecipeError(Problem(file=str(loaded.path), message=message, hint="add a stage and a package"))
    hint = "stages are derived from the project only if its environments are called build and test; rename this one"
    raise RecipeError(problem_at(loaded, ("environments", other), message, hint=hint))


def planned_stages(prepared: Prepared) -> tuple[StagePlanned, ...]:
    """The stages as people and programs see them, with the reasons why they run."""
    return tuple(_planned(prepared, stage) for stage in prepared.plan.stages.values())


def perhaps(prepared: Prepared) -> frozenset[StageId]:
    """Stages that run only if something that they need really changes: all else of them is as it was."""
    return frozenset(
        stage
        for stage, resolved in prepared.resolved.items()
        if not resolved.certain and stage in prepared.last and not own_reasons(prepared, stage)
    )


def downloads(prepared: Prepared, store: Store) -> tuple[Download, ...]:
    """Files that the run will fetch, largest first."""
    found: dict[str, Download] = {}
    for stage in prepared.plan.stages.values():
        if prepared.resolved[stage.id].record is not None:
            continue
        files: Sequence[LockedWheel | FileSource] = ()
        match stage.step.parameters:
            case EnvironmentParameters(wheels=wheels):
                files = wheels
            case FetchParameters(source=FileSource() as source):
                files = (source,)
            case _:
                continue
        for file in files:
            if not store.has_blob(Digest(file.sha256)):
                found[file.filename] = Download(filename=file.filename, size=file.size)
    return tuple(sorted(found.values(), key=lambda item: (-(item.size or 0), item.filename)))


def local_facts(prepared: Prepared, stage: PlannedStage, *, ccache: str | None) -> LocalFacts:
    """What a stage's action needs to know of this machine; none of it can change a result."""
    step = stage.step
    continued = None if step.continues is None else _maker(prepared.plan, stage.needs[f"in:{step.continues}"])
    backend = registry.backend_of(step.axes.get("gpu", ""))
    targets = [target for target in prepared.targets if target.variant in stage.variants]
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
        extra_indexes=() if backend is None else (backend.torch_index(step.axes["gpu"]),),
        stated=stated(prepared.loaded, targets[0], stage),
        expected=expected(prepared.loaded, targets[0], stage),
        setting=setting_of(prepared.loaded, targets, stage, lock=prepared.relock),
    )


def _workspace(prepared: Prepared, stage: PlannedStage) -> str:
    """Name of the folder that a stage keeps: the same recipe file finds it again, whatever changed in it."""
    return f"{prepared.loaded.path.absolute()} {stage.id}"


def _maker(plan: Plan, needed: StageId) -> PlannedStage:
    """The stage that made a tree; where that is an installed wheel, the one that built it."""
    stage = plan.stages[needed]
    return plan.stages[stage.needs["wheel"]] if stage.action == "install" else stage


def _planned(prepared: Prepared, stage: PlannedStage) -> StagePlanned:
    resolved = prepared.resolved[stage.id]
    last = prepared.last.get(stage.id)
    return StagePlanned(
        stage=stage.id,
        action=stage.action,
        needs=tuple(dict.fromkeys(stage.needs.values())),
        variants=stage.variants,
        cached=resolved.record is not None,
        why=() if resolved.record is not None else reasons(prepared, stage.id),
        estimate=last.metrics.wall if last is not None else None,
    )


def _refuse_secrets(targets: Iterable[Target], loaded: LoadedRecipe) -> None:
    """A passed variable's value lies in records and reports, so it must not be a secret."""
    hint = (
        "the store keeps the values of variables passed to builds; fetch anything that needs a secret before the build"
    )
    problems = {
        (stage.name, number): problem_at(
            loaded, ("stages", stage.name, "pass-env", number), f"{name} looks like a secret", hint=hint
        )
        for target in targets
        for stage in target.stages
        for number, name in enumerate(stage.pass_env)
        if looks_secret(name)
    }
    if problems:
        raise RecipeError(*problems.values())


def _interpreters(
    loaded: LoadedRecipe, targets: Sequence[Target], store: Store, environ: Mapping[str, str], *, only_plan: bool
) -> dict[str, Interpreter]:
    """The Pythons of all environments; one that is missing is told with the recipe that asks for it."""
    environments = [each for target in targets for each in target.environments if each.provider == "venv"]
    versions = dict.fromkeys(environment.python for environment in environments)
    found, error = look_for_interpreters(versions, environ=environ, cache=store.cache / "interpreters.json")
    if error is None:
        return found
    if only_plan:
        return {version: found.get(version) or stand_in(version) for version in versions}
    further = "; or build only other variants with -v or --skip" if len(targets) > 1 else ""
    raise HostError(
        *(
            msgspec.structs.replace(problem, file=str(loaded.path), hint=f"{problem.hint}{further}")
            for problem in error.problems
        )
    )


def _options(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _surroundings(
    plan: Plan,
    tools: Mapping[str, Tool],
    toolchain: Mapping[str, Tool],
    toolkits: Mapping[str, Tool],
    images: ImageInputs,
    environ: Mapping[str, str],
) -> Surroundings:
    passed = {name for stage in plan.stages.values() for name in stage.step.pass_env}
    return Surroundings(
        tools={name: tool.fingerprint for name, tool in tools.items()},
        toolchain={name: tool.fingerprint for name, tool in toolchain.items()},
        toolkits={name: tool.fingerprint for name, tool in toolkits.items()},
        portable=images.portable,
        passes_gpus=images.gpus,
        environ={name: environ[name] for name in sorted(passed) if name in environ},
        host=machine.test_facts(),
        epoch=source_date_epoch(environ),
    )


def _inputs(
    loaded: LoadedRecipe,
    targets: Sequence[Target],
    store: Store,
    interpreters: Mapping[str, Interpreter],
    clients: dict[str, str],
    images: ImageInputs,
    out: Path,
    *,
    only_plan: bool,
) -> PlanInputs:
    paths = {patch.file for target in targets for patch in target.source.patches}
    paths |= {path for target in targets for test in target.tests for path in test.files}
    stages = [stage for target in targets for stage in target.stages]
    relocations = {graft_key(stage.relocate): stage.relocate for stage in stages if stage.relocate is not None}
    source = source_inputs(loaded, targets, store, out, only_plan=only_plan)
    return PlanInputs(
        source=source,
        extras=extra_inputs(loaded, targets, store, only_plan=only_plan),
        images=images.in_keys,
        environments=locked_environments(loaded, targets, interpreters, only_plan=only_plan),
        interpreters={
            version: interpreter_folders([interpreter.path, os.path.realpath(interpreter.path)])
            for version, interpreter in interpreters.items()
        },
        files=carried_files(loaded, sorted(paths), store),
        compressor=COMPRESSOR,
        generator=GENERATOR,
        driver_libraries=registry.driver_libraries(),
        policy=shipped_digest(PLATFORM_POLICIES),
        providers=shipped_digest(LIBRARY_PROVIDERS),
        **host_libraries(targets, relocations),
        clients=clients,
        **conda_inputs(targets),
    )
