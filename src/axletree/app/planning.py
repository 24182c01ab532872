"""From a recipe's name to a plan whose keys are known: everything that is read before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from axletree import registry
from axletree.app.conda_inputs import client_versions
from axletree.app.epoch import source_date_epoch
from axletree.app.image_inputs import ImageInputs, image_inputs
from axletree.app.imports import load_imports, plan_imports, refuse_doubles
from axletree.app.lacking import lacking_parts, unlocked_stages
from axletree.app.plan_inputs import find_pythons, plan_inputs
from axletree.app.planned_recipes import PlannedRecipe
from axletree.app.recipes import LoadedRecipe, load_whole, with_source
from axletree.app.refusals import refuse_nothing, refuse_secrets
from axletree.app.releases import release_version
from axletree.app.sources import lock_command, naming
from axletree.app.stage_reasons import own_reasons, reasons, source_changes
from axletree.check.rules.plan import Part
from axletree.core.events import Download, StagePlanned
from axletree.core.records import Interpreter, StageRecord
from axletree.core.values import Digest, StageId
from axletree.host import machine
from axletree.host.tools import Tool, find_toolchain, find_tools
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.fetch import FetchParameters, FileSource
from axletree.plan.actions.spec import ActionSpec
from axletree.plan.graph import Plan, PlannedStage, build_plan
from axletree.plan.imports import NO_IMPORTS, PlanImports
from axletree.plan.inputs import PlanInputs
from axletree.plan.keys import TOOLKIT_PROGRAMS, Resolved, Surroundings, resolve_plan
from axletree.recipe.axes import expand, select, variant_id
from axletree.recipe.part import parts_of
from axletree.recipe.sharing import unshared
from axletree.recipe.target import Target, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.recipe.conda_locks import LockedPackage
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
    imported: dict[str, PlannedRecipe] = {}
    """Recipes that the recipe imports, by name, with what of them is planned."""
    imports: PlanImports = NO_IMPORTS
    """What the plan takes of them."""
    images: ImageInputs = ImageInputs()
    """What is known of the images of its stages."""
    changes: tuple[str, ...] = ()
    """Options that make it another build than the recipe's own, as words of a command line."""
    source_changes: dict[StageId, tuple[list[Any], list[Any]]] = {}
    """What differs in source folders, last time and now: the digest of a folder tells people nothing."""


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
    import_sources: dict[str, Path] = {}
    """Name of an imported recipe -> folder that is built instead of its source."""
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
    imports = load_imports(loaded, request.import_sources)
    recipe = unshared(loaded.recipe, request.no_share)
    refuse_nothing(loaded)
    variants = select(expand(recipe), request.patterns, request.skip)
    version = release_version(recipe, request.release) if request.release else None
    targets = tuple(resolve(recipe, variant, version=version) for variant in variants)
    targets = parts_of(recipe, targets, formats=request.formats, packages=request.packages)
    refuse_secrets(targets, loaded)
    pythons = find_pythons(loaded, targets, store, environ, only_plan=only_plan)
    imported = plan_imports(imports, targets, store, request.out, environ=environ, only_plan=only_plan)
    relock = lock_command(loaded, [*_options("-v", request.patterns), *_options("--skip", request.skip)])
    with naming(loaded, relock):
        clients = client_versions(targets, only_plan=only_plan)
        images = image_inputs(loaded, targets, pythons, environ=environ, gpus=request.gpus)
        inputs = plan_inputs(loaded, targets, store, pythons, clients, images, request.out, only_plan=only_plan)
        refuse_doubles(loaded, targets, inputs)
        plan = build_plan(targets, inputs, label=lambda values: variant_id(values, recipe.axes), imports=imported.plan)
    specs = {action: registry.action_spec(action) for action in {stage.action for stage in plan.stages.values()}}
    wanted = [tool for stage in plan.stages.values() if stage.step.image is None for tool in stage.step.tools]
    tools = find_tools(wanted, environ=environ, cache=store.cache / "tools.json", only_plan=only_plan)
    surroundings = _surroundings(plan, specs, tools, images, environ, cache=store.cache / "tools.json")
    last = {stage: record for stage in plan.stages if (record := store.last_record(stage, plan.recipe)) is not None}
    return Prepared(
        loaded=loaded,
        targets=targets,
        plan=plan,
        specs=specs,
        surroundings=surroundings,
        resolved=resolve_plan(plan, specs.__getitem__, surroundings, store.get_record),
        last=last,
        unread=frozenset(each for each in plan.stages.keys() - last if store.last_path(each, plan.recipe).exists()),
        interpreters=imported.interpreters | pythons,
        lacking=lacking_parts(plan, imported.interpreters | pythons, clients, tools),
        unlocked=unlocked_stages(plan),
        relock=relock,
        tools=tools,
        inputs=inputs,
        imported=imported.recipes,
        imports=imported.plan,
        images=images,
        out=request.out,
        replace=request.replace,
        no_share=request.no_share,
        changes=changes(loaded, request),
        source_changes=source_changes(plan, last, store),
    )


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
        files: Sequence[LockedWheel | LockedPackage | FileSource] = ()
        match stage.step.parameters:
            case EnvironmentParameters(wheels=wheels, conda=packages):
                files = (*wheels, *packages)
            case FetchParameters(source=FileSource() as source):
                files = (source,)
            case _:
                continue
        for file in files:
            if not store.has_blob(Digest(file.sha256)):
                found[file.filename] = Download(filename=file.filename, size=file.size)
    return tuple(sorted(found.values(), key=lambda item: (-(item.size or 0), item.filename)))


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


def _options(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _surroundings(
    plan: Plan,
    specs: Mapping[str, ActionSpec],
    tools: Mapping[str, Tool],
    images: ImageInputs,
    environ: Mapping[str, str],
    *,
    cache: Path,
) -> Surroundings:
    """What keys take from outside; ``tools`` are those that stages declare, ``cache`` remembers what they are."""
    compiling = any(spec.compiles for spec in specs.values())
    toolchain = find_toolchain(cache=cache) if compiling else {}
    toolkit = not TOOLKIT_PROGRAMS.isdisjoint(tools)
    toolkits = find_toolchain(sorted(TOOLKIT_PROGRAMS), cache=cache) if toolkit else {}
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
