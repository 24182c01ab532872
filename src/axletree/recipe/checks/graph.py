"""What refers to what: stages, environments, packages, tests, overrides; no circles; axes only flow downwards."""

from __future__ import annotations

import graphlib
from typing import TYPE_CHECKING, Literal

from axletree.recipe.axes import axes_of_package, axes_of_test, conditions_of
from axletree.recipe.checks.axes import add_hint, missing_axes, twice, unseen
from axletree.recipe.checks.importing import import_reference_faults
from axletree.recipe.faults import Fault, suggestion
from axletree.recipe.importing import split_reference
from axletree.recipe.target import input_variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe, Stage, Test
    from axletree.recipe.override import Override

_OF_EVERY_RECIPE = frozenset({"fetch", "patch"})
"""Names that stages of a recipe cannot have. Those of all other steps hold a colon, which no stage's name does."""
_CYCLES_SHOWN = 5
_UNUSED = {
    "build": ("options",),
    "compile": ("config",),
    "run": ("config", "options", "expect"),
    "download": ("config", "options", "expect"),
    "relocate": ("commands", "config", "options", "expect", "env", "tools", "pass_env"),
    "hipify": ("commands", "config", "options", "expect"),
}
"""What stages of an action have no use for, of what an override may change."""
_DOES = {"build": "build", "hipify": "run"}
_CHANGES = {
    "stage": ("env", "commands", "config", "options", "expect", "tools", "pass_env", "resources"),
    "environment": ("requires",),
    "package": ("requires", "conda"),
}
"""What an override may change of what."""


def graph_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of references between the parts of a recipe."""
    for name, stage in recipe.stages.items():
        yield from _stage_faults(recipe, name, stage)
    yield from _cycle_faults(recipe)
    for name, package in recipe.packages.items():
        if package.from_ is not None:
            yield from _reference(package.from_, "stage", recipe, ("packages", name, "from"))
    yield from _package_name_faults(recipe)
    for name, test in recipe.tests.items():
        yield from _test_faults(recipe, name, test)
    for number, override in enumerate(recipe.override):
        yield from _override_faults(recipe, ("override", number), override)


def _reference(name: str, kind: str, recipe: Recipe, path: Path) -> Iterator[Fault]:
    known: Iterable[str] = getattr(recipe, f"{kind}s")
    if name not in known:
        hint = suggestion(name, known, f"{kind}s of this recipe") or f"the recipe has no {kind}s"
        yield Fault(path=path, message=f"unknown {kind} {name!r}", hint=hint, needs=((f"{kind}s", name),))


def _stage_faults(recipe: Recipe, name: str, stage: Stage) -> Iterator[Fault]:
    path: Path = ("stages", name)
    if name in _OF_EVERY_RECIPE:
        yield Fault(path=path, message=f"{name!r} is the name of a built-in step", hint="rename the stage")
    if stage.source_from is not None:
        yield from _source_from_faults(recipe, stage, stage.source_from, path)
    elif stage.source and stage.action != "relocate":
        placed = [extra.when for extra in recipe.sources.values() if extra.into is not None]
        followed = dict.fromkeys(axis for when in (*(patch.when for patch in recipe.patches), *placed) for axis in when)
        yield from unseen(recipe, path, "its patched source", followed, path, stage.axes)
    for key, named in (("environment", stage.environment), ("host", stage.host)):
        if named is None:
            continue
        yield from _reference(named, "environment", recipe, (*path, key))
        environment = recipe.environments.get(named)
        if environment is not None:
            yield from unseen(recipe, (*path, key), f"environment {named!r}", environment.axes, path, stage.axes)
    yield from twice(stage.inputs, (*path, "inputs"), "stage")
    for number, needed in enumerate(stage.inputs):
        at = (*path, "inputs", number)
        if split_reference(needed) is not None:
            yield from import_reference_faults(recipe, needed, "stage", at, path, stage.axes)
            continue
        yield from _reference(needed, "stage", recipe, at)
        if needed in recipe.stages:
            yield from unseen(recipe, at, f"stage {needed!r}", _differs_by(recipe.stages[needed]), path, stage.axes)
    yield from twice(stage.sources, (*path, "sources"), "source")
    for number, name_of_source in enumerate(stage.sources):
        at = (*path, "sources", number)
        yield from _reference(name_of_source, "source", recipe, at)
        if name_of_source in recipe.sources:
            when = recipe.sources[name_of_source].when
            yield from unseen(recipe, at, f"source {name_of_source!r}", when, path, stage.axes)
    yield from _variable_faults(stage.inputs, "IN", (*path, "inputs"), "stages")
    yield from _variable_faults(stage.sources, "SOURCE", (*path, "sources"), "sources")
    needs: tuple[Path, ...] = ((*path, "action"),)
    for key, message in _shape_messages(stage):
        yield Fault(path=(*path, key), message=message, needs=needs)


def _source_from_faults(recipe: Recipe, stage: Stage, maker: str, path: Path) -> Iterator[Fault]:
    """What is wrong with taking another stage's tree for a source."""
    at = (*path, "source-from")
    if not stage.source:
        yield Fault(
            path=at,
            message="source = false contradicts source-from",
            hint="remove either source = false or source-from",
        )
        return
    yield from _reference(maker, "stage", recipe, at)
    if maker in recipe.stages:
        yield from unseen(recipe, at, f"stage {maker!r}", _differs_by(recipe.stages[maker]), path, stage.axes)


def _differs_by(stage: Stage) -> tuple[str, ...]:
    """Axes by which a stage differs, or is not there at all."""
    return tuple(dict.fromkeys((*stage.axes, *stage.when)))


def _variable_faults(names: Sequence[str], kind: Literal["IN", "SOURCE"], path: Path, what: str) -> Iterator[Fault]:
    """Two inputs of one stage whose folders its commands would find in the same variable."""
    seen: dict[str, str] = {}
    for number, needed in enumerate(names):
        variable = input_variable(needed, kind)
        other = seen.setdefault(variable, needed)
        if other != needed:
            message = f"{path[-1]} {other!r} and {needed!r} would share the variable {variable}"
            yield Fault(path=(*path, number), message=message, hint=f"rename one of the {what}")


def _shape_messages(stage: Stage) -> Iterator[tuple[str, str]]:
    """What does not fit the stage's action: key and message."""
    if stage.action in {"run", "download"} and not stage.commands:
        yield "commands", f"a {stage.action} stage needs commands"
    if stage.action == "download" and stage.workspace:
        yield "workspace", "a download stage keeps no folder"
    if stage.action in {"build", "hipify"} and stage.environment is None:
        yield "environment", f"a {stage.action} stage needs an environment to {_DOES[stage.action]} in"
    if stage.action in {"build", "hipify"} and not stage.source:
        yield "source", f"a {stage.action} stage needs the source, so remove source = false"
    if stage.sources and stage.action in {"relocate", "hipify"}:
        yield "sources", f"a {stage.action} stage runs no commands, so it has no use for sources"
    if stage.image is not None and stage.action in {"relocate", "hipify"}:
        yield "image", f"a {stage.action} stage cannot use an image"
    if stage.action == "hipify" and stage.commands:
        yield "commands", "a hipify stage runs tools/amd_build/build_amd.py from the source; it takes no commands"


def _cycle_faults(recipe: Recipe) -> Iterator[Fault]:
    inputs = {
        name: [each for each in (*stage.inputs, stage.source_from or "") if each in recipe.stages]
        for name, stage in recipe.stages.items()
    }
    order = list(inputs)
    for _ in range(_CYCLES_SHOWN):
        try:
            graphlib.TopologicalSorter(inputs).prepare()
        except graphlib.CycleError as error:
            circle = error.args[1][:0:-1]  # given as "is needed by", once around; wanted as "needs"
            start = circle.index(min(circle, key=order.index))
            circle = [*circle[start:], *circle[:start]]
        else:
            return
        first, last = circle[0], circle[-1]
        given = recipe.stages[last].inputs
        where: Path = ("inputs", given.index(first)) if first in given else ("source-from",)
        yield Fault(
            path=("stages", last, *where),
            message=f"stages depend on each other in a cycle: {' -> '.join([*circle, first])}",
        )
        inputs[last] = [each for each in inputs[last] if each != first]


def _package_name_faults(recipe: Recipe) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for name in recipe.packages:
        # PEP 503: an index knows names by this form only.
        normal = "-".join(part for part in name.replace("_", "-").replace(".", "-").split("-") if part)
        if normal in seen:
            message = f"packages {seen[normal]!r} and {name!r} have the same normalized name: {normal!r}"
            yield Fault(path=("packages", name), message=message)
        seen.setdefault(normal, name)


def _test_faults(recipe: Recipe, name: str, test: Test) -> Iterator[Fault]:
    path: Path = ("tests", name)
    seen = axes_of_test(recipe, test)
    yield from twice(test.packages, (*path, "packages"), "package")
    for number, package in enumerate(test.packages):
        at = (*path, "packages", number)
        yield from _reference(package, "package", recipe, at)
        if package in recipe.packages:
            made = recipe.packages[package]
            axes = (*axes_of_package(recipe, made), *conditions_of(recipe, made))
            yield from unseen(recipe, at, f"package {package!r}", axes, path, seen)
    at = (*path, "environment")
    yield from _reference(test.environment, "environment", recipe, at)
    environment = recipe.environments.get(test.environment)
    if environment is not None:
        yield from unseen(recipe, at, f"environment {test.environment!r}", environment.axes, path, seen)
    if not test.imports and not test.commands:
        yield Fault(path=path, message="the test does not test anything", hint="set imports, commands or both")
    yield from twice(test.installers, (*path, "installers"), "installer")


def _override_faults(recipe: Recipe, path: Path, override: Override) -> Iterator[Fault]:
    given = [kind for kind, names in changed_by(override).items() if names]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        message = f"exactly one of stage, environment and package is required, found {found}"
        yield Fault(path=path, message=message)
        return
    kind = given[0]
    names = changed_by(override)[kind]
    yield from twice(names, (*path, kind), kind)
    for number, name in enumerate(names):
        yield from _reference(name, kind, recipe, (*path, kind, number) if len(names) > 1 else (*path, kind))
    keys = ("env", "commands", "config", "options", "expect", "requires", "conda", "tools", "pass_env", "resources")
    changes = [key for key in keys if getattr(override, key)]
    if not changes:
        yield Fault(path=path, message="the override changes nothing", hint=f"set {' or '.join(_CHANGES[kind])}")
    for key in changes:
        if key not in _CHANGES[kind]:
            hint = f"{'an' if kind == 'environment' else 'a'} {kind} override can change: {', '.join(_CHANGES[kind])}"
            yield Fault(
                path=(*path, _key(key)),
                message=f"an override cannot change {_key(key)} of {kind} {names[0]!r}",
                hint=hint,
            )
    for name in names:
        yield from _change_faults(recipe, path, override, kind, name, changes)


def _change_faults(
    recipe: Recipe, path: Path, override: Override, kind: str, name: str, changes: Sequence[str]
) -> Iterator[Fault]:
    """What is wrong with changing one table."""
    stage = recipe.stages.get(name) if kind == "stage" else None
    if stage is not None:
        for key in _UNUSED[stage.action]:
            if key in changes:
                message = f"stage {name!r} cannot have {_key(key)}: it is a {stage.action} stage"
                yield Fault(path=(*path, _key(key)), message=message)
        for number, variable in enumerate(override.pass_env):
            if variable in (*stage.env, *override.env):
                message = f"env already sets {variable}, so it cannot also be passed from the shell"
                yield Fault(path=(*path, "pass-env", number), message=message)
    seen, declared_at = seen_by(recipe, kind, name)
    for axis in missing_axes(override.when, seen, recipe) if name in getattr(recipe, f"{kind}s") else ():
        message = f"{kind} {name!r} does not use axis {axis!r}"
        at: Path = (*path, "when", axis)
        yield Fault(path=at, message=message, hint=add_hint([axis], declared_at), needs=(declared_at,))


def _key(field: str) -> str:
    return field.replace("_", "-")


def changed_by(override: Override) -> dict[str, tuple[str, ...]]:
    """Kind of table -> the names of those that an override changes."""
    environment = () if override.environment is None else (override.environment,)
    return {"stage": override.stages, "environment": environment, "package": override.packages}


def seen_by_all(recipe: Recipe, kind: str, names: Sequence[str]) -> tuple[tuple[str, ...], Path]:
    """Axes that all of some tables see, and the key that declares them for the one that sees fewest."""
    found = [seen_by(recipe, kind, name) for name in names]
    common = tuple(axis for axis in found[0][0] if all(axis in axes for axes, _ in found))
    return common, min(found, key=lambda each: len(each[0]))[1]


def seen_by(recipe: Recipe, kind: str, name: str) -> tuple[tuple[str, ...], Path]:
    """Axes that a stage, environment or package sees, and the key that declares them.

    What does not exist is taken to see all: that it is missing is told elsewhere, and enough.
    """
    if kind == "package" and name in recipe.packages:
        package = recipe.packages[name]
        if package.axes is not None or package.from_ is None:
            return package.axes or (), ("packages", name, "axes")
        kind, name = "stage", package.from_
    owner = (recipe.stages if kind == "stage" else recipe.environments).get(name)
    return owner.axes if owner is not None else tuple(recipe.axes), (f"{kind}s", name, "axes")
