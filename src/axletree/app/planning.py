"""From a recipe's name to a plan whose keys are known: everything that is read before anything runs."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree import registry
from axletree.app.conda_inputs import client_versions, conda_inputs
from axletree.app.epoch import source_date_epoch
from axletree.app.lacking import lacking_parts
from axletree.app.recipes import LoadedRecipe, load_recipe, problem_at, with_source
from axletree.app.releases import release_version
from axletree.app.setting import setting_of
from axletree.app.sources import locked_environments, remake, source_inputs
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
from axletree.host.grafts import graft_folders, libraries_digest, list_libraries
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
from axletree.plan.keys import Resolved, Surroundings, resolve_plan
from axletree.plan.relocation import graft_key
from axletree.recipe.axes import expand, select, variant_id
from axletree.recipe.locks import REMAKE
from axletree.recipe.sharing import unshared
from axletree.recipe.target import Target, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    lacking: dict[StageId, Part]
    """Stages that need something that is not installed, and what; only a plan that nobody runs has any."""
    tools: dict[str, Tool]
    inputs: PlanInputs
    out: Path
    """Where the results go."""
    no_share: tuple[str, ...] = ()
    """Axes across which nothing is shared."""
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
    release: str | None = None
    """What packages are called instead of the recipe's version, in the words of ``--release``."""


def prepare(request: PlanRequest, store: Store, *, environ: Mapping[str, str], only_plan: bool = False) -> Prepared:
    """Read a recipe, choose its variants, and plan them; ``only_plan`` needs no interpreters and no conda client.

    Raises:
        UsageError: the recipe has no such axis, a pattern matches no variant, or there is no such release.
        RecipeError: the recipe or a lock is wrong or missing.
        HostError: an interpreter or a tool that a stage needs is not on this machine.
    """
    loaded = load_recipe(request.recipe)
    if request.source is not None:
        loaded = with_source(loaded, request.source)
    recipe = unshared(loaded.recipe, request.no_share)
    variants = select(expand(recipe), request.patterns, request.skip)
    version = release_version(recipe, request.release) if request.release else None
    targets = tuple(resolve(recipe, variant, version=version) for variant in variants)
    _refuse_secrets(targets, loaded)
    interpreters = _interpreters(loaded, targets, store, environ, only_plan=only_plan)
    with _naming(loaded, [*_options("-v", request.patterns), *_options("--skip", request.skip)]):
        clients = client_versions(targets, only_plan=only_plan)
        inputs = _inputs(loaded, targets, store, interpreters, clients, request.out)
        plan = build_plan(targets, inputs, label=lambda values: variant_id(values, recipe.axes))
    specs = {action: registry.action_spec(action) for action in {stage.action for stage in plan.stages.values()}}
    wanted = [tool for stage in plan.stages.values() for tool in stage.step.tools]
    tools = find_tools(wanted, environ=environ, cache=store.cache / "tools.json")
    compiling = any(spec.compiles for spec in specs.values())
    toolchain = find_toolchain(cache=store.cache / "tools.json") if compiling else {}
    surroundings = _surroundings(plan, tools, toolchain, environ)
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
        lacking=lacking_parts(plan, interpreters, clients),
        tools=tools,
        inputs=inputs,
        out=request.out,
        no_share=request.no_share,
        source_changes=source_changes(plan, last, store),
    )


@contextmanager
def _naming(loaded: LoadedRecipe, selection: Sequence[str]) -> Iterator[None]:
    """Give problems the recipe's file where they name none, and a command that can be pasted, for the same variants."""
    try:
        yield
    except RecipeError as error:
        path = str(loaded.path)
        raise RecipeError(
            *(
                msgspec.structs.replace(
                    problem,
                    file=problem.file or path,
                    hint=problem.hint and problem.hint.replace(REMAKE, remake(loaded, selection)),
                )
                for problem in error.problems
            )
        ) from error


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
        interpreters=prepared.interpreters,
        tools={tool: prepared.tools[tool].path for tool in step.tools},
        ccache=ccache if prepared.specs[stage.action].compiles else None,
        workspace=_workspace(prepared, stage) if step.workspace else None,
        continues=None if continued is None else _workspace(prepared, continued),
        extra_indexes=() if backend is None else (backend.torch_index(step.axes["gpu"]),),
        stated=stated(prepared.loaded, targets[0], stage),
        expected=expected(prepared.loaded, targets[0], stage),
        setting=setting_of(prepared.loaded, targets, stage),
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
    plan: Plan, tools: Mapping[str, Tool], toolchain: Mapping[str, Tool], environ: Mapping[str, str]
) -> Surroundings:
    passed = {name for stage in plan.stages.values() for name in stage.step.pass_env}
    return Surroundings(
        tools={name: tool.fingerprint for name, tool in tools.items()},
        toolchain={name: tool.fingerprint for name, tool in toolchain.items()},
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
    out: Path,
) -> PlanInputs:
    paths = {patch.file for target in targets for patch in target.source.patches}
    paths |= {path for target in targets for test in target.tests for path in test.files}
    stages = [stage for target in targets for stage in target.stages]
    relocations = {graft_key(stage.relocate): stage.relocate for stage in stages if stage.relocate is not None}
    source = source_inputs(loaded, targets, store, out)
    return PlanInputs(
        source=source,
        environments=locked_environments(loaded, targets, interpreters),
        interpreters={
            version: interpreter_folders([interpreter.path, os.path.realpath(interpreter.path)])
            for version, interpreter in interpreters.items()
        },
        files=_files(loaded, sorted(paths), store),
        compressor=COMPRESSOR,
        generator=GENERATOR,
        driver_libraries=registry.driver_libraries(),
        policy=shipped_digest(PLATFORM_POLICIES),
        providers=shipped_digest(LIBRARY_PROVIDERS),
        libraries={
            key: list_libraries(rules.graft, graft_folders(rules.graft_from)) for key, rules in relocations.items()
        },
        host_libraries=_host_libraries(targets),
        clients=clients,
        **conda_inputs(targets),
    )


def _host_libraries(targets: Iterable[Target]) -> str:
    bundled = any(package.bundle for target in targets for package in target.packages)
    return libraries_digest(graft_folders()) if bundled else ""


def _files(loaded: LoadedRecipe, paths: Iterable[str], store: Store) -> dict[str, Digest]:
    """Put patches and test files into the store, where stages find them by digest."""
    found: dict[str, Digest] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            found[path] = store.put_bytes((loaded.path.parent / path).read_bytes())
        except OSError as error:
            hint = f"paths are relative to the recipe: {(loaded.path.parent / path).absolute()}"
            problems.append(
                problem_at(loaded, _named_in(loaded, path), f"cannot read {path}: {error.strerror}", hint=hint)
            )
    if problems:
        raise RecipeError(*problems)
    return found


def _named_in(loaded: LoadedRecipe, file: str) -> tuple[str | int, ...]:
    """The key that names a patch or a test's file."""
    for number, patch in enumerate(loaded.recipe.patches):
        if patch.file == file:
            return ("patches", number, "file")
    for name, test in loaded.recipe.tests.items():
        if file in test.files:
            return ("tests", name, "files", test.files.index(file))
    return ()
