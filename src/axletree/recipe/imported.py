"""Imported recipes at the variants of the recipe that is built: which of their targets it needs, and what of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.recipe.axes import Variant, axes_of_package, expand, has_package, matches
from axletree.recipe.faults import Fault, Path
from axletree.recipe.filling import Filler
from axletree.recipe.importing import split_reference
from axletree.recipe.model import Recipe
from axletree.recipe.part import needed_part, used_environments
from axletree.recipe.target import Target, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from axletree.recipe.base import Condition

    Where = Callable[[str, Path], str]
    """Name of a recipe and a key of it -> its file and line, as messages name them."""


class ImportGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with all recipes that it imports, directly or not. Each name is one recipe, and there is no cycle."""

    recipes: dict[str, Recipe]
    """Name -> recipe: the one that is built first, each before those that it imports."""
    links: dict[str, dict[str, str]]
    """Name of a recipe -> name in its table ``recipes`` -> name of the recipe that it imports."""


class ImportedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an imported recipe's target that a variant of the built recipe needs."""

    target: Target
    stages: tuple[str, ...]
    """Stages whose trees are used."""
    packages: tuple[str, ...]
    """Packages whose wheels are used."""


class ImportFault(msgspec.Struct, frozen=True):
    """A fault of one of the recipes."""

    recipe: str
    """Its name."""
    fault: Fault


class _Use(msgspec.Struct, frozen=True):
    """A use of an imported recipe."""

    alias: str
    name: str
    """Stage or package."""
    is_package: bool
    path: Path
    python: str | None = None
    """Version of the environment that the package is installed in."""


class _Wanted(msgspec.Struct, kw_only=True):
    """What several recipes want of one."""

    variant: Variant
    first: tuple[str, Path]
    """The recipe and the key that asked first."""
    stages: dict[str, None]
    packages: dict[str, None]


def import_targets(
    graph: ImportGraph, targets: Iterable[Target], where: Where
) -> tuple[dict[str, tuple[ImportedTarget, ...]], list[ImportFault]]:
    """What each target of the built recipe needs of imported recipes; each after those that it imports itself.

    Returns:
        Variant of the built recipe -> parts of targets; and what is wrong, once for each place.
    """
    index = {
        name: {_values_key(variant.values): variant for variant in expand(recipe)}
        for name, recipe in graph.recipes.items()
    }
    found: dict[str, tuple[ImportedTarget, ...]] = {}
    faults: dict[tuple[str, Path], ImportFault] = {}
    for target in targets:
        resolver = _Resolver(graph, index, where, target)
        found[target.variant] = tuple(reversed(resolver.run()))
        for each in resolver.faults:
            faults.setdefault((each.recipe, each.fault.path), each)
    return found, list(faults.values())


def _values_key(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(values.items())


class _Resolver:
    """Follows the imports of one target."""

    def __init__(
        self,
        graph: ImportGraph,
        index: Mapping[str, Mapping[tuple[tuple[str, str], ...], Variant]],
        where: Where,
        root: Target,
    ) -> None:
        self.graph = graph
        self.index = index
        self.where = where
        self.root = root
        self.faults: list[ImportFault] = []
        self._wanted: dict[str, _Wanted] = {}

    def run(self) -> list[ImportedTarget]:
        """The parts, each before those that it imports itself."""
        parts: list[ImportedTarget] = []
        for name, recipe in self.graph.recipes.items():
            if name == self.root.recipe:
                self._follow(name, self.root)
            elif (wanted := self._wanted.get(name)) is not None:
                stages, packages = tuple(wanted.stages), tuple(wanted.packages)
                target = needed_part(resolve(recipe, wanted.variant), stages=stages, packages=packages)
                parts.append(ImportedTarget(target=target, stages=stages, packages=packages))
                self._follow(name, target)
        return parts

    def _follow(self, name: str, target: Target) -> None:
        for use in _uses(target):
            other = self.graph.links[name][use.alias]
            variant = self._variant(name, target, use, other)
            if variant is None or not self._has(name, use, other, variant):
                continue
            wanted = self._wanted.setdefault(
                other, _Wanted(variant=variant, first=(name, ("recipes", use.alias)), stages={}, packages={})
            )
            if wanted.variant != variant:
                self._conflict(name, use, other, wanted, variant)
                continue
            (wanted.packages if use.is_package else wanted.stages)[use.name] = None

    def _fault(self, recipe: str, path: Path, message: str, hint: str | None = None) -> None:
        self.faults.append(ImportFault(recipe, Fault(path=path, message=message, hint=hint)))

    def _variant(self, name: str, target: Target, use: _Use, other: str) -> Variant | None:
        """The variant of the imported recipe that a target uses; says why if there is none."""
        recipe, imported = self.graph.recipes[name], self.graph.recipes[other]
        table = recipe.recipes[use.alias]
        text = Filler(recipe, target.axes, recipe.axes)
        values = {
            axis: text.one(table.axes[axis]) if axis in table.axes else target.axes[axis] for axis in imported.axes
        }
        at: Path = ("recipes", use.alias)
        limit = f"limit it with recipes.{use.alias}.when"
        for axis, value in values.items():
            if value not in imported.axes[axis]:
                path = (*at, "axes", axis) if axis in table.axes else at
                message = f"recipe {other} has no {axis} {value!r}, which variant {target.variant} of {name} asks for"
                hint = f"its values: {', '.join(imported.axes[axis])}; map the axis with recipes.{use.alias}.axes"
                self._fault(name, path, message, f"{hint}, or {limit}")
                return None
        variant = self.index[other].get(_values_key(values))
        if variant is None:
            message = f"recipe {other} excludes {_told(values)}, which variant {target.variant} of {name} asks for"
            self._fault(name, at, message, f"map its axes with recipes.{use.alias}.axes, or {limit}")
        return variant

    def _has(self, name: str, use: _Use, other: str, variant: Variant) -> bool:
        """Whether the imported variant has the stage or package, and for the right Python; says so if not."""
        imported = self.graph.recipes[other]
        if not use.is_package:
            when = imported.stages[use.name].when
            if not matches(when, variant.values):
                self._lacks(name, use, other, variant, when)
            return matches(when, variant.values)
        package = imported.packages[use.name]
        if not has_package(imported, package, variant.values):
            stage = imported.stages.get(package.from_ or "")
            self._lacks(name, use, other, variant, {**(stage.when if stage else {}), **package.when})
            return False
        python = variant.values.get("python")
        if python == use.python or "python" not in axes_of_package(imported, package):
            return True
        message = f"package {use.name!r} of recipe {other} is for Python {python}, but the environment has {use.python}"
        self._fault(name, use.path, message, f"map the axis: recipes.{use.alias}.axes.python")
        return False

    def _lacks(self, name: str, use: _Use, other: str, variant: Variant, when: Condition) -> None:
        kind = "package" if use.is_package else "stage"
        message = f"recipe {other} has no {kind} {use.name!r} for {_told(variant.values, when)}"
        hint = f"its condition is {_condition(when)}; set recipes.{use.alias}.when of {name} to the variants that fit"
        self._fault(name, use.path, message, hint)

    def _conflict(self, name: str, use: _Use, other: str, wanted: _Wanted, variant: Variant) -> None:
        """Two recipes use one recipe at different variants, so two versions of it would meet in one result."""
        differs = [axis for axis, value in variant.values.items() if wanted.variant.values[axis] != value]
        here, there = (_told(each.values, differs) for each in (variant, wanted.variant))
        first = f"{wanted.first[0]} ({self.where(*wanted.first)})"
        message = f"{name} uses recipe {other} for {here}, but {first} uses it for {there}"
        hint = f"a variant can use only one variant of a recipe; map the axes of {other} to the same values in both"
        self._fault(name, ("recipes", use.alias), f"{message} (at {self.root.variant})", hint)


def _uses(target: Target) -> Iterator[_Use]:
    for stage in target.stages:
        for number, name in enumerate(stage.inputs):
            if (reference := split_reference(name)) is not None:
                yield _Use(*reference, is_package=False, path=("stages", stage.name, "inputs", number))
    used = used_environments(target)
    for environment in target.environments:
        for number, name in enumerate(environment.packages if environment.name in used else ()):
            alias, package = split_reference(name) or ("", name)
            path: Path = ("environments", environment.name, "packages", number)
            yield _Use(alias, package, is_package=True, path=path, python=environment.python)


def _told(values: Mapping[str, str], axes: Iterable[str] | None = None) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in values.items() if axes is None or axis in axes)


def _condition(condition: Condition) -> str:
    """A condition in words: ``gpu cu126 or cu128``."""
    return ", ".join(
        f"{axis} {wanted if isinstance(wanted, str) else ' or '.join(wanted)}" for axis, wanted in condition.items()
    )
