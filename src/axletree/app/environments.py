"""Environments of a recipe's variants: made, found, run in, asked what they really do, given to other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.app.conda_channels import channel_addresses, machine_subdir
from axletree.app.dev_setup import choose_variant
from axletree.app.env_names import load_environments
from axletree.app.env_packages import Means, install
from axletree.app.env_place import claimed
from axletree.backends.cuda import cuda_release
from axletree.check.engine import apply_rules
from axletree.check.rules.search_order import ENVIRONMENT_RULES
from axletree.core.errors import HostError, Problem, UsageError
from axletree.environment.apply import ENV, activated, level_of, undoing
from axletree.environment.delta import Activation, Order
from axletree.environment.description import FILE, PREFIX, Description, decode_description
from axletree.environment.export import exported
from axletree.environment.layers import deltas_of, order_of, ordered, with_gcc, with_include
from axletree.host.environment.asking import find_compilers
from axletree.host.environment.headers import copy_headers, moved_folders
from axletree.host.environment.prefixes import conda_layers, gcc_folder, venv_layers
from axletree.host.environment.proof import verify_environment
from axletree.host.environment.toolkits import find_toolkit, toolkit_layer
from axletree.host.files import file_errors, replace_file
from axletree.recipe.axes import expand
from axletree.recipe.faults import suggestion
from axletree.recipe.target import resolve
from axletree.report.environment import Expected, VerifiedEnvironment
from axletree.report.environments import CreatedEnvironment, Deactivation, ExportedEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.environment.export import Format
    from axletree.environment.layers import Layer, World
    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.settings import Settings
    from axletree.recipe.target import Target
    from axletree.store.store import Store

PLACE = Path(".axletree") / "env"
"""Where environments are made if nothing else is said."""


class EnvironmentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which environment of a recipe is meant."""

    recipe: str
    sets: tuple[str, ...] = ()
    """Changes of the recipe, ``KEY=VALUE`` each."""
    variant: str | None = None
    stage: str | None = None
    environment: str | None = None


def create(
    wanted: EnvironmentRequest,
    folder: Path | None,
    *,
    store: Store,
    settings: Settings,
    environ: Mapping[str, str],
    toolkit: str | None = None,
    upgrade: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> CreatedEnvironment:
    """Make an environment: install what its recipe asks for, find the GPU toolkit, compose the search orders.

    Args:
        wanted: which.
        folder: where; default is :func:`place_of`.
        store: has wheels and caches.
        settings: say where wheels come from.
        environ: the user's variables.
        toolkit: root of the GPU toolkit instead of the recipe's.
        upgrade: choose conda packages anew instead of keeping the lock.
        say: told what is being done.

    Raises:
        UsageError: there is no such variant or environment, or the folder holds something else.
        RecipeError: a lock is missing or wrong, or what is required can't be had together.
        HostError: a toolkit, an interpreter, a file or the room for it is missing.
        StageError: an installer fails.
    """
    loaded, target, environment = _choose(wanted)
    if toolkit is not None and _world(target) == "cpu":
        raise UsageError(f"--toolkit needs a GPU variant, but variant {target.variant} is not for a GPU")
    place = (folder or place_of(environment, target)).absolute()
    with claimed(place):
        prefix = place / PREFIX
        say(f"creating {environment.name} for {target.variant} in {place}")
        means = Means(store=store, settings=settings, environ=environ, say=say)
        content = install(loaded, target, environment, prefix, means, upgrade=upgrade)
        layers = _layers(environment, prefix, place)
        world, layer, root = _toolkit(target, environment, layers, given=toolkit, environ=environ)
        layers, notes = _worked_around(ordered(layers, _with_gcc(layer, prefix, target), world), place, environ)
        order = order_of(layers)
        description = Description(
            folder=str(place),
            recipe=wanted.recipe,
            variant=target.variant,
            name=environment.name,
            provider=environment.provider,
            python=environment.python,
            requires=environment.requires,
            channels=channel_addresses(environment, loaded),
            wheels=environment.wheels,
            toolkit=root,
            packages=content,
            order=order,
            deltas=deltas_of(layers, order),
            notes=notes,
        )
        replace_file(place / FILE, msgspec.json.format(msgspec.json.encode(description), indent=1))
        return CreatedEnvironment(file=str(place / FILE), description=description)


def _layers(environment: TargetEnvironment, prefix: Path, place: Path) -> tuple[Layer, ...]:
    match environment.provider:
        case "venv":
            return venv_layers(prefix, place / "links")
        case "conda":
            return conda_layers(prefix)
        case "system":
            return ()


def place_of(environment: TargetEnvironment, target: Target) -> Path:
    """The folder of an environment where none is named."""
    return PLACE / f"{environment.name}-{target.variant}"


def _choose(wanted: EnvironmentRequest) -> tuple[LoadedRecipe, Target, TargetEnvironment]:
    loaded = load_environments(wanted.recipe, wanted.sets)
    variant = choose_variant(loaded, wanted.variant)
    target = resolve(loaded.recipe, next(each for each in expand(loaded.recipe) if each.id == variant))
    environments = {each.name: each for each in target.environments}
    file = str(loaded.path)
    name = wanted.environment
    if wanted.stage is not None:
        stages = {each.name: each for each in target.stages}
        if wanted.stage not in stages:
            hint = suggestion(wanted.stage, stages, "its stages") or "the recipe has no stage for this variant"
            raise UsageError(Problem(file=file, message=f"stage {wanted.stage!r} does not exist", hint=hint))
        name = stages[wanted.stage].environment
        if name is None:
            raise UsageError(Problem(file=file, message=f"stage {wanted.stage!r} has no environment"))
    if name is None:
        name = _default(target, file)
    if name not in environments:
        hint = suggestion(name, environments, "its environments") or "the recipe has no environment"
        raise UsageError(Problem(file=file, message=f"environment {name!r} does not exist", hint=hint))
    return loaded, target, environments[name]


def _default(target: Target, file: str) -> str:
    """The only environment, else that of the only build stage, else that of the only compile stage."""
    if len(target.environments) == 1:
        return target.environments[0].name
    for action in ("build", "compile"):
        found = {stage.environment for stage in target.stages if stage.action == action and stage.environment}
        if len(found) == 1:
            return found.pop()
    names = ", ".join(each.name for each in target.environments) or "none"
    raise UsageError(
        Problem(
            file=file, message=f"the recipe has several environments: {names}", hint="choose one with --environment"
        )
    )


def _world(target: Target) -> World:
    gpu = target.axes.get("gpu", "")
    return "rocm" if gpu.startswith("rocm") else "cuda" if cuda_release(gpu) else "cpu"


def _toolkit(
    target: Target,
    environment: TargetEnvironment,
    layers: Sequence[Layer],
    *,
    given: str | None,
    environ: Mapping[str, str],
) -> tuple[World, Layer | None, str | None]:
    """The GPU world of a variant, its toolkit outside of the environment, and where that is."""
    gpu, world = target.axes.get("gpu", ""), _world(target)
    named = given or environment.toolkit
    if world == "cpu":
        return world, None, None
    inside = next(
        (delta.value for layer in layers for delta in layer.settings if delta.variable in {"CUDA_HOME", "ROCM_PATH"}),
        None,
    )
    if inside is not None and named is None:
        return world, None, inside
    release = cuda_release(gpu) if world == "cuda" else gpu.removeprefix("rocm")
    root = find_toolkit(world, release, environ=environ, given=named)
    program = "nvcc" if world == "cuda" else "hipcc"
    layer = toolkit_layer(world, root, f"{world.upper() if world == 'cuda' else 'ROCm'} at {root}") if root else None
    if root is None or layer is None:
        where = (
            f"{root}/bin does not contain {program}"
            if root
            else f"{program} is not on PATH, in the usual places or in the environment"
        )
        hint = "install the toolkit, or specify its folder with --toolkit"
        raise HostError(f"variant {target.variant} needs a GPU toolkit, but {where}", hint=hint)
    return world, layer, str(root)


def _with_gcc(layer: Layer | None, prefix: Path, target: Target) -> Layer | None:
    """A toolkit's layer; ROCm's clang is told of the GCC in the environment, if it understands that: from ROCm 6 on."""
    release = target.axes.get("gpu", "").removeprefix("rocm").partition(".")[0]
    gcc = gcc_folder(prefix) if _world(target) == "rocm" and release.isdigit() and int(release) >= 6 else None
    return layer if layer is None or gcc is None else with_gcc(layer, gcc)


def _worked_around(
    layers: Sequence[Layer], place: Path, environ: Mapping[str, str]
) -> tuple[tuple[Layer, ...], tuple[str, ...]]:
    """Put a copy in the place of each folder of headers that hipcc does not leave where it is asked to be."""
    order = order_of(layers)
    deltas = deltas_of(layers, order)
    active = activated(without_activation(environ), Activation(folder=str(place), deltas=deltas))
    notes = []
    for folder in moved_folders([entry.path for entry in order.include], active):
        copy = place / "headers" / Path(folder).parent.name
        count = copy_headers(Path(folder), copy)
        layers = [with_include(layer, folder, str(copy)) for layer in layers]
        notes.append(f"hipcc always searches {folder} last, so the copy in {copy} ({count:,} files) is used instead")
    return tuple(layers), tuple(notes)


def without_activation(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables as they were before any activation."""
    result = dict(environ)
    while level_of(result):
        for change in undoing(result):
            if change.value is None:
                result.pop(change.variable, None)
            else:
                result[change.variable] = change.value
    return result


def find(place: str | None, wanted: EnvironmentRequest | None, environ: Mapping[str, str]) -> Description:
    """The environment that is meant: a folder, a recipe's, the active one, or the only one here.

    Raises:
        UsageError: there is none, or several.
        IntegrityError: its description is damaged, or it was moved.
    """
    if place is not None and (Path(place) / FILE).is_file():
        return read(Path(place).absolute())
    if place is not None and Path(place).is_dir():
        hint = "run `axletree env create RECIPE` to create one"
        raise UsageError(Problem(file=place, message="the folder is not an environment created by Axletree", hint=hint))
    if place is not None and not place.endswith(".toml") and "/" in place:
        hint = "run `axletree env create RECIPE` to create one"
        raise UsageError(
            Problem(file=place, message="the path is neither an environment folder nor a recipe", hint=hint)
        )
    if place is not None:
        _, target, environment = _choose(
            msgspec.structs.replace(wanted or EnvironmentRequest(recipe=place), recipe=place)
        )
        folder = place_of(environment, target)
        if not (folder / FILE).is_file():
            hint = f"create it: axletree env create {place} -v {target.variant}"
            raise UsageError(
                Problem(file=str(folder), message="the environment for this variant does not exist yet", hint=hint)
            )
        return read(folder.absolute())
    if environ.get(ENV) and level_of(environ):
        return read(Path(environ[ENV]))
    found = sorted(PLACE.glob(f"*/{FILE}"))
    if len(found) == 1:
        return read(found[0].parent.absolute())
    if found:
        names = ", ".join(str(path.parent) for path in found)
        raise UsageError(f"this folder has several environments: {names}", hint="specify one of them")
    raise UsageError(
        "no environment exists in this folder, and none is active",
        hint="run `axletree env create RECIPE -v VARIANT` to create one",
    )


def read(folder: Path) -> Description:
    """The description in a folder.

    Raises:
        HostError: it can't be read.
        IntegrityError: it is damaged, or the environment was moved.
    """
    with file_errors(folder / FILE):
        data = (folder / FILE).read_bytes()
    return decode_description(data, folder)


def deactivate(environ: Mapping[str, str]) -> Deactivation:
    """What undoes the last activation.

    Raises:
        UsageError: none is in effect.
    """
    if not level_of(environ):
        raise UsageError("no Axletree environment is active in this shell")
    return Deactivation(changes=undoing(environ))


def variables(description: Description, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a command in the environment."""
    return activated(environ, description.activation)


def verify(
    description: Description | None,
    environ: Mapping[str, str],
    *,
    compilers: Sequence[str] = (),
    note: Callable[[str], None] = lambda _: None,
) -> VerifiedEnvironment:
    """Prove what compilers, linkers and the loader take: in an environment, or as the shell is where there is none.

    Raises:
        UsageError: a compiler that is named is not there.
        HostError: there is no compiler at all.
    """
    active = variables(description, environ) if description is not None else dict(environ)
    order = description.order if description is not None else Order()
    name = description.folder if description is not None else "system"
    absent = [each for each in dict.fromkeys(compilers) if not find_compilers(active, only=[each])]
    if absent:
        raise UsageError(f"compilers not found on the PATH of {name}: {', '.join(absent)}")
    seen = verify_environment(name, order, active, compilers=compilers, note=note)
    if not seen.proofs:
        raise HostError("no compiler found on PATH", hint="install one (Debian and Ubuntu: apt-get install g++)")
    return VerifiedEnvironment(
        environment=name,
        expected=Expected(include=seen.include, link=seen.link, run=seen.run),
        compilers=seen.proofs,
        findings=apply_rules(ENVIRONMENT_RULES, seen),
    )


def export(description: Description, form: Format, *, locked: bool) -> ExportedEnvironment:
    """The environment as a file of another tool."""
    text = exported(description, form, platform=machine_subdir(), locked=locked)
    return ExportedEnvironment(format=form, text=text)
