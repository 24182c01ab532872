"""What a recipe says of the recipes that it imports: whether the names, axes and values that it uses are theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.recipe.axes import axes_of_package
from axletree.recipe.checks.axes import twice, unseen
from axletree.recipe.faults import Fault, suggestion
from axletree.recipe.importing import split_reference
from axletree.recipe.placeholders import scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.recipe.faults import Path
    from axletree.recipe.importing import Import
    from axletree.recipe.model import Recipe


def import_faults(recipe: Recipe) -> Iterator[Fault]:
    """Faults of environments that install packages of other recipes, as far as the recipe alone tells them."""
    for name, environment in recipe.environments.items():
        path: Path = ("environments", name)
        yield from twice(environment.packages, (*path, "packages"), "package")
        if environment.packages and environment.provider == "system":
            message = f"provider {environment.provider!r} cannot install packages of other recipes"
            hint = 'set provider = "venv" or "conda", or remove packages'
            yield Fault(path=(*path, "packages"), message=message, hint=hint, needs=((*path, "provider"),))
        seen: dict[str, str] = {}
        for number, needed in enumerate(environment.packages):
            at = (*path, "packages", number)
            yield from import_reference_faults(recipe, needed, "package", at, path, environment.axes)
            package = canonicalize_name((split_reference(needed) or ("", needed))[1])
            other = seen.setdefault(package, needed)
            if other != needed:
                message = f"{other!r} and {needed!r} are packages of the same distribution"
                yield Fault(path=at, message=message, hint="remove one of them")


def import_reference_faults(
    recipe: Recipe, name: str, kind: str, at: Path, owner: Path, axes: Iterable[str]
) -> Iterator[Fault]:
    """Faults of ``magma/compile``, a stage or package of an imported recipe, as far as the recipe alone tells them.

    Args:
        recipe: the recipe that uses it.
        name: the reference.
        kind: ``stage`` or ``package``.
        at: the key that holds the reference.
        owner: the table around it.
        axes: those that this table may use.
    """
    alias, inner = split_reference(name) or ("", name)
    if not alias or not inner:
        message = f"{name!r} is not a {kind} of another recipe"
        hint = f"write RECIPE/{kind.upper()}; RECIPE is a name in recipes"
        yield Fault(path=at, message=message, hint=hint)
        return
    table = recipe.recipes.get(alias)
    if table is None:
        known = suggestion(alias, recipe.recipes, "recipes that this recipe imports")
        hint = known or f"import it: [recipes.{alias}] with recipe = its name or path"
        yield Fault(path=at, message=f"unknown recipe {alias!r}", hint=hint, needs=(("recipes", alias),))
        return
    yield from unseen(recipe, at, f"recipe {alias!r}", table.when, owner, axes)


def imported_faults(recipe: Recipe, imported: Mapping[str, Recipe]) -> Iterator[Fault]:
    """What is wrong between a valid recipe and the valid recipes that it imports.

    Args:
        recipe: the recipe.
        imported: name in its table ``recipes`` -> that recipe.
    """
    for alias, table in recipe.recipes.items():
        yield from _axis_faults(recipe, alias, table, imported[alias])
    for name, stage in recipe.stages.items():
        for number, needed in enumerate(stage.inputs):
            path: Path = ("stages", name)
            yield from _use_faults(recipe, imported, needed, "stage", (*path, "inputs", number), path, stage.axes)
    for name, environment in recipe.environments.items():
        for number, needed in enumerate(environment.packages):
            path = ("environments", name)
            at = (*path, "packages", number)
            yield from _use_faults(recipe, imported, needed, "package", at, path, environment.axes)


def _axis_faults(recipe: Recipe, alias: str, table: Import, imported: Recipe) -> Iterator[Fault]:
    """Axes that are mapped but do not exist, and axes that exist but have no value."""
    for axis in table.axes:
        if axis not in imported.axes:
            hint = suggestion(axis, imported.axes, f"axes of {imported.name}") or f"{imported.name} has no axes"
            yield Fault(path=("recipes", alias, "axes", axis), message=_no_axis(imported, axis), hint=hint)
    for axis, values in imported.axes.items():
        if axis not in table.axes and axis not in recipe.axes:
            message = f"recipe {imported.name} needs a value for its axis {axis!r}, which {recipe.name} does not have"
            hint = f"set recipes.{alias}.axes.{axis}; its values: {', '.join(values)}"
            yield Fault(path=("recipes", alias), message=message, hint=hint)


def _no_axis(imported: Recipe, axis: str) -> str:
    return f"recipe {imported.name} has no axis {axis!r}"


def _use_faults(
    recipe: Recipe, imported: Mapping[str, Recipe], name: str, kind: str, at: Path, owner: Path, axes: Iterable[str]
) -> Iterator[Fault]:
    alias, inner = split_reference(name) or ("", name)
    if not alias:
        return
    other = imported[alias]
    known: Mapping[str, object] = other.stages if kind == "stage" else other.packages
    if inner not in known:
        hint = suggestion(inner, known, f"{kind}s of {other.name}") or f"{other.name} has no {kind}s"
        yield Fault(path=at, message=f"recipe {other.name} has no {kind} {inner!r}", hint=hint)
        return
    if kind == "stage":
        needed = other.stages[inner].axes
    else:
        needed = axes_of_package(other, other.packages[inner])
        if "wheel" not in other.packages[inner].formats:
            message = f"package {inner!r} of recipe {other.name} is not a wheel, so it cannot be installed here"
            yield Fault(path=at, message=message, hint=f'add "wheel" to packages.{inner}.formats of {other.name}')
    read = _read_axes(recipe.recipes[alias], needed)
    yield from unseen(recipe, at, f"{kind} {name!r}", read, owner, axes)


def _read_axes(table: Import, axes: Iterable[str]) -> dict[str, None]:
    """Axes of the importing recipe that decide the values of some axes of the imported one."""
    texts = (table.axes.get(axis, f"{{{axis}}}") for axis in axes)
    return dict.fromkeys(placeholder.name for text in texts for placeholder in scan(text).placeholders)
