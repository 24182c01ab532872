"""Descriptors of artifacts: TOML files that say which files of the stage folders of a build are which component.

Format: TheRock, ``docs/development/artifacts.md``. A stage folder stands below ``[components.COMPONENT."FOLDER"]``.
Components are worked through so that each comes after those that it extends, and takes nothing that these have taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import IntegrityError, Problem, RecipeError
from axletree.core.globs import glob_fault, glob_matcher
from axletree.core.trees import is_safe_path
from axletree.core.units import some_of
from axletree.package.sdk.artifact_name import COMPONENTS
from axletree.package.sdk.components import DEFAULT_INCLUDES
from axletree.package.sdk.entries import Component
from axletree.recipe.faults import Fault, suggestion
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.recipe.faults import Path

_SHOWN = 8
_ROOT_KEYS = ("components", "options")
_PLATFORMS = ("linux", "windows", "darwin")


class FileSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which files of a stage folder a component takes: what is forced, else what is included and not excluded."""

    include: tuple[str, ...] = ()
    """Empty: everything."""
    exclude: tuple[str, ...] = ()
    force_include: tuple[str, ...] = ()
    optional: bool = False
    """Whether the folder may be missing."""


class ComponentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A component of a descriptor."""

    stages: dict[str, FileSelection]
    extends: tuple[Component, ...]


class Descriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What a descriptor says."""

    filename: str
    components: dict[Component, ComponentPlan]
    """In the order in which they take files; also those that it does not name, without any stage folder."""
    unmatched_include: tuple[str, ...] = ()
    """Which files of no component are an error; empty: all."""
    unmatched_exclude: tuple[str, ...] = ()

    @property
    def stages(self) -> dict[str, bool]:
        """Stage folders, and whether each may be missing: only where every component says so."""
        found: dict[str, bool] = {}
        for component in self.components.values():
            for stage, selection in component.stages.items():
                found[stage] = found.get(stage, True) and selection.optional
        return dict(sorted(found.items()))


class _Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    include: str | tuple[str, ...] = ()
    exclude: str | tuple[str, ...] = ()
    force_include: str | tuple[str, ...] = ()
    default_patterns: bool = True


class _Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    unmatched_include: str | tuple[str, ...] = ()
    unmatched_exclude: str | tuple[str, ...] = ()


def parse_descriptor(text: str, *, filename: str, artifact: str, platform: str = "linux") -> Descriptor:
    """Read a descriptor.

    Args:
        text: TOML.
        filename: what errors call it.
        artifact: name of the artifact; its archives of GPU code, ``.kpack/ARTIFACT_COMPONENT.kpm``, are always taken.
        platform: that the stage folders were built for; where ``optional`` names it they may be missing.

    Raises:
        RecipeError: with everything that is wrong with it, each with its line: unknown keys and components, wrong
            types, broken globs, components that extend each other in a circle.
    """
    values = decode_toml(text, filename)
    faults = [
        Fault(path=(key,), message="unknown key", hint=suggestion(key, _ROOT_KEYS, "valid keys"))
        for key in values
        if key not in _ROOT_KEYS
    ]
    options = _read_options(values.get("options", {}), faults)
    tables = values.get("components", {})
    if not isinstance(tables, dict) or not tables:
        faults.append(
            Fault(path=("components",), message="the file defines no components", hint='add [components.lib."FOLDER"]')
        )
        tables = {}
    plans: dict[Component, ComponentPlan] = {}
    for name, table in tables.items():
        known = next((component for component in COMPONENTS if component == name), None)
        if known is None:
            hint = suggestion(name, COMPONENTS, "components")
            faults.append(Fault(path=("components", name), message="unknown component", hint=hint))
        elif not isinstance(table, dict):
            message = f'expected a table for each stage folder, such as [components.{name}."FOLDER"]'
            faults.append(Fault(path=("components", name), message=message))
        else:
            plans[known] = _read_component(known, table, faults, artifact=artifact, platform=platform)
    for number, component in enumerate(COMPONENTS):
        plans.setdefault(component, ComponentPlan(stages={}, extends=COMPONENTS[max(0, number - 1) : number]))
    ordered = _in_order(plans, faults)
    if faults:
        raise RecipeError(*locate_faults(faults, text, filename))
    return Descriptor(
        filename=filename,
        components={component: plans[component] for component in ordered},
        unmatched_include=_globs(options.unmatched_include),
        unmatched_exclude=_globs(options.unmatched_exclude),
    )


def assign_files(
    descriptor: Descriptor, files: Mapping[str, Iterable[str]], *, folders: Mapping[str, Iterable[str]] | None = None
) -> dict[tuple[str, str], Component]:
    """(Stage folder, path in it) -> its component.

    Args:
        descriptor: what says so.
        files: stage folder -> paths of the files and links in it; folders that are missing are not in it.
        folders: stage folder -> empty folders in it. One that nobody takes is left out.

    Raises:
        IntegrityError: a stage folder is missing that may not be; a file belongs to no component, or to two of which
            none extends the other. Names all of them.
    """
    problems = [
        Problem(
            file=descriptor.filename,
            message=f"the stage folder {stage} does not exist",
            hint="create the folder, or set optional = true",
        )
        for stage, optional in descriptor.stages.items()
        if stage not in files and not optional
    ]
    taken: dict[tuple[str, str], Component] = {}
    disputed: dict[tuple[Component, Component], list[str]] = {}
    linted = descriptor.unmatched_include, descriptor.unmatched_exclude
    for stage in descriptor.stages:
        paths = sorted(files.get(stage, ()))
        for path in (*paths, *sorted((folders or {}).get(stage, ()))):
            claims = _claims(descriptor, stage, path)
            if claims:
                taken[stage, path] = claims[0]
            for other in claims[1:]:
                disputed.setdefault((claims[0], other), []).append(f"{stage}/{path}")
        if unmatched := [path for path in paths if (stage, path) not in taken and _selected(*linted, path)]:
            message = f"{stage}: no component includes {some_of(unmatched, _SHOWN)}"
            hint = "include it in a component, or list it in unmatched_exclude under [options]"
            problems.append(Problem(file=descriptor.filename, message=message, hint=hint))
    problems += [
        Problem(
            file=descriptor.filename,
            message=f"both {one} and {other} include {some_of(paths, _SHOWN)}, and neither extends the other",
        )
        for (one, other), paths in sorted(disputed.items())
    ]
    if problems:
        raise IntegrityError(*problems)
    return taken


def _claims(descriptor: Descriptor, stage: str, path: str) -> list[Component]:
    """Components that take a path, less those that extend, over however many others, one that takes it."""
    claims: list[Component] = []
    covered: set[Component] = set()  # components that take it, and those that extend these
    for name, plan in descriptor.components.items():
        if any(other in covered for other in plan.extends):
            covered.add(name)
            continue
        selection = plan.stages.get(stage)
        if selection is not None and _takes(selection, path):
            claims.append(name)
            covered.add(name)
    return claims


def _takes(selection: FileSelection, path: str) -> bool:
    if glob_matcher(selection.force_include)(path):
        return True
    return _selected(selection.include, selection.exclude, path)


def _selected(include: tuple[str, ...], exclude: tuple[str, ...], path: str) -> bool:
    return (not include or glob_matcher(include)(path)) and not glob_matcher(exclude)(path)


def _read_options(value: object, faults: list[Fault]) -> _Options:
    if not isinstance(value, dict):
        faults.append(Fault(path=("options",), message="expected a table of options, such as unmatched_exclude"))
        return _Options()
    found, repaired = check_structure(value, _Options)
    faults += _below(("options",), found)
    options = msgspec.convert(repaired, _Options)
    for key in ("unmatched_include", "unmatched_exclude"):
        faults += _glob_faults(("options", key), repaired.get(key, ()))
    return options


def _read_component(
    component: Component, table: dict[str, Any], faults: list[Fault], *, artifact: str, platform: str
) -> ComponentPlan:
    at: Path = ("components", component)
    number = COMPONENTS.index(component)
    extends = COMPONENTS[max(0, number - 1) : number]
    stages: dict[str, FileSelection] = {}
    for key, value in table.items():
        if key == "extends":
            extends = tuple(_extends((*at, key), value, faults))
        elif not isinstance(value, dict):
            hint = "the only key that is not a stage folder is extends"
            message = "expected a table with the keys of a stage folder, such as include and exclude"
            faults.append(Fault(path=(*at, key), message=message, hint=hint))
        elif not is_safe_path(key.rstrip("/") or "/"):
            message = "the folder must be below the build root: its path cannot start with '/' or contain '..'"
            faults.append(Fault(path=(*at, key), message=message))
        else:
            kpack = (f".kpack/{artifact}_{component}.kpm", f".kpack/{artifact}_{component}_*.kpack")
            stages[key.rstrip("/")] = _read_stage((*at, key), value, faults, component, kpack=kpack, platform=platform)
    return ComponentPlan(stages=stages, extends=extends)


def _read_stage(
    at: Path, table: dict[str, Any], faults: list[Fault], component: Component, *, kpack: tuple[str, ...], platform: str
) -> FileSelection:
    optional = _optional((*at, "optional"), table.get("optional", False), faults, platform)
    found, repaired = check_structure({key: value for key, value in table.items() if key != "optional"}, _Stage)
    faults += _below(at, found)
    stage = msgspec.convert(repaired, _Stage)
    for key in ("include", "exclude", "force_include"):
        faults += _glob_faults((*at, key), repaired.get(key, ()))
    include = _globs(stage.include)
    return FileSelection(
        include=(*DEFAULT_INCLUDES[component], *include) if stage.default_patterns else include,
        exclude=_globs(stage.exclude),
        force_include=(*_globs(stage.force_include), *kpack),
        optional=optional,
    )


def _optional(at: Path, value: object, faults: list[Fault], platform: str) -> bool:
    """True, or the platforms on which a folder may be missing."""
    if isinstance(value, bool):
        return value
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        faults.append(Fault(path=at, message="expected true, false or a list of platform names"))
        return False
    unknown = [name for name in names if name not in _PLATFORMS]
    if unknown:
        hint = f"valid platforms: {', '.join(_PLATFORMS)}"
        faults.append(Fault(path=at, message=f"unknown platform {unknown[0]!r}", hint=hint))
    return platform in names


def _extends(at: Path, value: object, faults: list[Fault]) -> Iterator[Component]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        faults.append(Fault(path=at, message="expected a list of component names"))
        return
    for name in names:
        known = next((component for component in COMPONENTS if component == name), None)
        if known is None:
            hint = f"valid components: {', '.join(COMPONENTS)}"
            faults.append(
                Fault(path=at, message=f"the component extends {name!r}, which is not a component", hint=hint)
            )
        else:
            yield known


def _in_order(plans: Mapping[Component, ComponentPlan], faults: list[Fault]) -> list[Component]:
    """Components after those that they extend; otherwise in the order of the chain."""
    ordered: list[Component] = []
    waiting = [component for component in COMPONENTS if component in plans]
    while waiting:
        ready = next((name for name in waiting if all(other in ordered for other in plans[name].extends)), None)
        if ready is None:
            circle = _circle(plans, waiting)
            named = next((name for name in circle if plans[name].stages), circle[0])
            message = f"components extend each other in a cycle: {' -> '.join((*circle, circle[0]))}"
            faults.append(Fault(path=("components", named, "extends"), message=message))
            return ordered
        waiting.remove(ready)
        ordered.append(ready)
    return ordered


def _circle(plans: Mapping[Component, ComponentPlan], waiting: list[Component]) -> list[Component]:
    """A circle among components each of which extends another of them."""
    way: list[Component] = [waiting[0]]
    while True:
        following = next(other for other in plans[way[-1]].extends if other in waiting)
        if following in way:
            return way[way.index(following) :]
        way.append(following)


def _below(at: Path, faults: Iterable[Fault]) -> list[Fault]:
    return [msgspec.structs.replace(fault, path=(*at, *fault.path)) for fault in faults]


def _globs(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _glob_faults(at: Path, value: str | list[str] | tuple[str, ...]) -> Iterator[Fault]:
    for number, glob in enumerate([value] if isinstance(value, str) else value):
        if (fault := glob_fault(glob)) is not None:
            yield Fault(path=at if isinstance(value, str) else (*at, number), message=f"{glob!r} {fault}")
