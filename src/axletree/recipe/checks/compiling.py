"""The keys of stages that only some actions have a use for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.recipe.checks.axes import twice
from axletree.recipe.faults import Fault, glob_faults, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe, Stage

_USERS: dict[str, tuple[str, ...]] = {
    "sha256": ("download",),
    "config": ("build",),
    "driver": ("compile",),
    "targets": ("compile",),
    "options": ("compile",),
    "expect": ("build", "compile"),
    "prefix": ("compile",),
    "files": ("compile",),
    "continues": ("build", "compile"),
}
"""Key of a stage -> the actions that have a use for it. A relocation says of itself what it has no use for."""
_GIVEN = ("CMAKE_INSTALL_PREFIX", "CMAKE_GENERATOR")
"""CMake variables that a driver sets."""


def compile_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of keys that say how a stage compiles."""
    for name, stage in recipe.stages.items():
        path: Path = ("stages", name)
        needs: tuple[Path, ...] = ((*path, "action"),)
        for key, actions in _USERS.items():
            value = getattr(stage, key)
            if stage.action not in actions and value and value != "auto":
                message = (
                    f"{key} is only for {' and '.join(actions)} stages; the action of this stage is {stage.action!r}"
                )
                yield Fault(path=(*path, key), message=message, needs=needs)
        if stage.action == "compile":
            yield from _compile_faults(stage, path)
        if stage.continues is not None and stage.action in _USERS["continues"]:
            yield from _continues_faults(recipe, stage, stage.continues, path)


def _compile_faults(stage: Stage, path: Path) -> Iterator[Fault]:
    if not stage.source:
        yield Fault(path=(*path, "source"), message="a compile stage needs the source, so remove source = false")
    yield from twice(stage.targets, (*path, "targets"), "target")
    yield from twice(stage.files, (*path, "files"), "pattern")
    yield from glob_faults(stage.files, (*path, "files"))
    if stage.prefix and stage.driver not in {"auto", "cmake"}:
        message = f"prefix is only for the cmake driver; {stage.driver} decides where the project is installed"
        yield Fault(path=(*path, "prefix"), message=message, needs=((*path, "driver"),))
    if stage.driver in {"setup.py", "scikit-build-core"} and stage.environment is None:
        message = f"the driver {stage.driver} needs an environment to run in"
        yield Fault(path=(*path, "environment"), message=message, needs=((*path, "driver"),))
    seen: set[str] = set()
    for option in stage.options:
        plain = option.partition(":")[0]
        if plain in _GIVEN:
            hint = "use `prefix` to set the folder in the result" if plain == _GIVEN[0] else "set it in `env`"
            yield Fault(
                path=(*path, "options", option),
                message=f"the option {plain} cannot be set here, because the driver sets it",
                hint=hint,
            )
        if plain in seen:
            yield Fault(path=(*path, "options", option), message=f"{plain} is set twice, with and without a type")
        seen.add(plain)


def _continues_faults(recipe: Recipe, stage: Stage, owner: str, path: Path) -> Iterator[Fault]:
    at = (*path, "continues")
    if owner not in stage.inputs:
        hint = suggestion(owner, stage.inputs, "inputs of this stage") or "add it to `inputs`"
        message = f"{owner!r} is not an input of the stage, so it may not be built first"
        yield Fault(path=at, message=message, hint=hint, needs=((*path, "inputs"),))
        return
    continued = recipe.stages.get(owner)
    if continued is None:
        return  # told with the inputs
    kept = continued.action == "compile" if continued.workspace is None else continued.workspace
    if continued.action not in _USERS["continues"] or not kept:
        hint = 'in that stage, set action = "compile", or action = "build" and workspace = true'
        yield Fault(path=at, message=f"stage {owner!r} does not keep a build folder to reuse", hint=hint)
