"""Packages: what they are made of, who sees what, and names that meet, for wheels as for conda packages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.core.errors import RecipeError
from axletree.core.near import nearest
from axletree.recipe.axes import axes_of_package, conditions_of, has_package, project
from axletree.recipe.base import FORMAT_OF
from axletree.recipe.checks.axes import add_hint, missing_axes, twice
from axletree.recipe.checks.texts import has_values, values_at
from axletree.recipe.conda import CondaTable
from axletree.recipe.faults import Fault, glob_faults
from axletree.recipe.model import Package
from axletree.recipe.placeholders import fill, scan
from axletree.recipe.properties import properties_at
from axletree.recipe.waivers import waiver_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.recipe.axes import Variant
    from axletree.recipe.faults import Path
    from axletree.recipe.model import Recipe, Test

_TOLD_BY_TAG = ("python", "platform")
"""Axes that a wheel's file name tells apart by its tags, without a label."""
_ALIKE = 0.8
"""How similar the name of a package is to the one that was meant: packages of a family have similar names."""
_OF_FILES = ("files", "exclude", "prefix", "glibc", "provided_by", "relabel", "bundle")
"""Keys that say something of files, which a metapackage has none of."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def package_faults(recipe: Recipe) -> Iterator[Fault]:
    """All faults of packages and of who installs them that hold whatever the variant is."""
    for name, package in recipe.packages.items():
        path: Path = ("packages", name)
        others = [each for each, other in recipe.packages.items() if other.from_ is not None]
        yield from twice(package.formats, (*path, "formats"), "format")
        yield from glob_faults(package.files, (*path, "files"))
        yield from glob_faults(package.exclude, (*path, "exclude"))
        yield from _waiver_faults(recipe, package, path)
        if package.from_ is None:
            yield from _metapackage_faults(package, path, others)
        else:
            yield from _seen_faults(recipe, package, path)
            yield from _bundle_faults(recipe, package, path)
        yield from _variable_faults(package.conda, (*path, "conda"))
        if package.conda != CondaTable() and "conda" not in package.formats:
            yield Fault(
                path=(*path, "conda"), message='formats does not include "conda", so no conda package is built',
                hint='set formats = ["wheel", "conda"], or remove the table',
            )  # fmt: skip
    for number, override in enumerate(recipe.override):
        yield from _variable_faults(override.conda or CondaTable(), ("override", number, "conda"))
    yield from _same_files(recipe)
    yield from _same_conda_names(recipe)
    for name, test in recipe.tests.items():
        yield from _installer_faults(recipe, test, ("tests", name))


def _variable_faults(table: CondaTable, path: Path) -> Iterator[Fault]:
    for name in table.activate:
        if _VARIABLE.fullmatch(name) is None:
            message = f"{name!r} is not a valid variable name: use letters, digits and '_'"
            yield Fault(path=(*path, "activate", name), message=message)


def _waiver_faults(recipe: Recipe, package: Package, path: Path) -> Iterator[Fault]:
    """What is wrong with a waiver itself, and conditions that the package does not see."""
    yield from waiver_faults(package.waive, (*path, "waive"))
    for number, waiver in enumerate(package.waive):
        for axis in missing_axes(waiver.when, axes_of_package(recipe, package), recipe):
            at: Path = (*path, "waive", number, "when", axis)
            hint = add_hint([axis], (*path, "axes"))
            yield Fault(path=at, message=f"the package does not use axis {axis!r}", hint=hint)


def _metapackage_faults(package: Package, path: Path, others: Sequence[str]) -> Iterator[Fault]:
    """A package without a stage has no files, so it must require something; ``others`` have a stage."""
    default = Package()
    for key in _OF_FILES:
        if getattr(package, key) != getattr(default, key):
            yield Fault(
                path=(*path, key.replace("_", "-")), message="a package without `from` has no files",
                hint="set `from` to the stage that provides the files, or remove this key",
            )  # fmt: skip
    if "zip" in package.formats:
        at = (*path, "formats", package.formats.index("zip"))
        yield Fault(path=at, message="a package without `from` has no files to archive")
    wanted = package.requires
    kinds = (("wheel", "wheel", wanted), ("conda", "conda package", (*wanted, *package.conda.depends)))
    for form, kind, given in kinds:
        if form in package.formats and not given:
            key = "`requires`" if form == "wheel" else "`requires` nor `conda.depends`"
            meant = nearest(str(path[-1]), others, cutoff=_ALIKE)
            hint = "set `from` to the stage to package, or list requirements in `requires`"
            hint = f"did you mean {meant!r}? if it is a package of its own, {hint}" if meant is not None else hint
            yield Fault(
                path=path, message=f"the package has neither `from` nor {key}: the {kind} would be empty", hint=hint
            )


def _bundle_faults(recipe: Recipe, package: Package, path: Path) -> Iterator[Fault]:
    """Only wheels take libraries along, and only where no relocation decides about them already."""
    if not package.bundle:
        return
    at: Path = (*path, "bundle")
    if "wheel" not in package.formats:
        message = 'bundle = true applies only to wheels, but formats does not include "wheel"'
        hint = 'list the conda packages of the libraries in conda.depends, or add "wheel" to formats'
        yield Fault(path=at, message=message, hint=hint)
    stage = recipe.stages.get(package.from_ or "")
    if stage is not None and stage.action == "relocate":
        message = f"the relocate stage {package.from_!r} already decides which libraries the package includes"
        hint = f"remove bundle, and list the libraries in stages.{package.from_}.relocate.graft"
        yield Fault(path=at, message=message, hint=hint, needs=(("stages", str(package.from_), "action"),))


def _seen_faults(recipe: Recipe, package: Package, path: Path) -> Iterator[Fault]:
    """A package differs wherever its stage does, and its siblings divide a tree that is the same for all of them."""
    stage = recipe.stages.get(package.from_ or "")
    if stage is None:
        return
    missing = missing_axes(stage.axes, axes_of_package(recipe, package), recipe)
    if missing:
        axes = " and ".join(map(repr, missing))
        message = f"stage {package.from_!r} differs by axis {axes}, which the package does not use"
        at = (*path, "axes")
        yield Fault(path=at, message=message, hint=add_hint(missing, at))
    declared_at: Path = ("stages", str(package.from_), "axes")
    for axis in missing_axes(package.when, stage.axes, recipe):
        message = (
            f"stage {package.from_!r} does not use axis {axis!r}, so its tree must be split the same way for all values"
        )
        hint = add_hint([axis], declared_at)
        yield Fault(path=(*path, "when", axis), message=message, hint=hint, needs=(declared_at,))


def _same_files(recipe: Recipe) -> Iterator[Fault]:
    """Two packages of one stage and format that claim the same pattern, and neither leaves anything of it out.

    Patterns that overlap otherwise are seen once there is a tree.
    """
    names = list(recipe.packages)
    for number, name in enumerate(names):
        package = recipe.packages[name]
        rivals = [other for other in names[:number] if _divide_a_tree(package, recipe.packages[other])]
        for place, pattern in enumerate(package.files):
            rival = next((other for other in rivals if _also_takes(recipe.packages[other], package, pattern)), None)
            if rival is not None:
                message = f"packages {rival!r} and {name!r} both claim {pattern!r} from stage {package.from_!r}"
                at: Path = ("packages", name, "files", *([place] if package.files != ("**",) else []))
                yield Fault(
                    path=at, message=message, hint="set files or exclude so that each file belongs to only one package"
                )


def _same_conda_names(recipe: Recipe) -> Iterator[Fault]:
    """Two packages that are one for conda clients, in one channel of one variant."""
    called = {
        name: package.conda.name or name for name, package in recipe.packages.items() if "conda" in package.formats
    }
    for number, (name, conda) in enumerate(called.items()):
        package = recipe.packages[name]
        for other, taken in list(called.items())[:number]:
            rival = recipe.packages[other]
            if taken == conda and rival.index == package.index and not _never_meet(package, rival):
                at: Path = ("packages", name, "conda", "name") if package.conda.name else ("packages", name)
                message = f"packages {other!r} and {name!r} have the same name in the channel: {conda!r}"
                yield Fault(path=at, message=message, hint="set a different conda.name for one of them")


def _divide_a_tree(one: Package, other: Package) -> bool:
    """Whether some variant has both packages in one format, from the tree of one stage."""
    same = one.from_ is not None and one.from_ == other.from_ and not set(one.formats).isdisjoint(other.formats)
    return same and not _never_meet(one, other)


def _also_takes(other: Package, package: Package, pattern: str) -> bool:
    return pattern in other.files and not package.exclude and not other.exclude


def _never_meet(one: Package, other: Package) -> bool:
    """Whether no variant has both packages."""
    return any(
        axis in other.when and set(_values_of(one, axis)).isdisjoint(_values_of(other, axis)) for axis in one.when
    )


def _values_of(package: Package, axis: str) -> tuple[str, ...]:
    wanted = package.when[axis]
    return (wanted,) if isinstance(wanted, str) else wanted


def _installer_faults(recipe: Recipe, test: Test, path: Path) -> Iterator[Fault]:
    packages = [recipe.packages[name] for name in test.packages if name in recipe.packages]
    if len(packages) < len(test.packages):
        return  # said where they are named
    for number, installer in enumerate(test.installers):
        wanted = FORMAT_OF[installer]
        if any(wanted in package.formats for package in packages):
            continue
        message = f"{installer} installs {wanted}s, but no package in the test has that format"
        if wanted == "conda":
            message = "conda installs conda packages, but no package in the test has that format"
        hint = f'add "{wanted}" to the formats of a package, or remove "{installer}" from installers'
        at: Path = (*path, "installers", number) if test.installers != ("pip", "uv") else path
        yield Fault(path=at, message=message, hint=hint)


def package_faults_at(recipe: Recipe, name: str, package: Package, variants: Sequence[Variant]) -> Iterator[Fault]:
    """Variants of a package must not meet in one index under one name: clients could not tell them apart."""
    made = [variant for variant in variants if has_package(recipe, package, variant.values)]
    if not made:
        message = "the condition matches no variant"
        absent = tuple((axis, "*") for axis in conditions_of(recipe, package))
        yield Fault(path=("packages", name, "when"), message=message, absent=absent)
    axes = axes_of_package(recipe, package)
    take = f"remove {{axis}} from the axes of {'the package' if package.from_ is None else f'stage {package.from_!r}'}"
    if "wheel" in package.formats or "zip" in package.formats:
        told = [axis for axis in axes if axis not in _TOLD_BY_TAG]
        texts: tuple[str, ...] = (package.index, package.local or "")
        hint = f"put {{{{{{axis}}}}}} into local or index, or {take}"
        yield from _meeting(recipe, ("packages", name), texts, made, told, hint, "version")
    build = package.conda.build
    if "conda" in package.formats and build is not None and "{hash}" not in build:
        told = [axis for axis in axes if axis != "platform"]
        hint = f"put {{{{hash}}}} or {{{{{{axis}}}}}} into build, or {take}"
        given = {"hash": "", "number": ""}
        texts = (package.index, package.conda.name or "", build)
        yield from _meeting(recipe, ("packages", name, "conda", "build"), texts, made, told, hint, "build", given)


def _meeting(
    recipe: Recipe,
    path: Path,
    texts: Sequence[str],
    variants: Sequence[Variant],
    axes: Sequence[str],
    hint: str,
    what: str,
    given: dict[str, str] | None = None,
) -> Iterator[Fault]:
    """The first two variants that differ by an axis which none of the texts tells."""
    given = given or {}
    templates = [scan(text) for text in texts]
    if not all(has_values(recipe, template, given) for template in templates):
        return
    seen: dict[tuple[str, ...], tuple[dict[str, str], Variant]] = {}
    for variant in variants:
        values, properties = values_at(recipe, variant.values) | given, properties_at(recipe, variant.values)
        try:
            place = tuple(fill(template, values, properties) for template in templates)
        except RecipeError:
            return  # said where the text stands
        mine = project(variant.values, axes)
        other, first = seen.setdefault(place, (mine, variant))
        if other != mine:
            axis = next(axis for axis in axes if other[axis] != mine[axis])
            message = f"variants {first.id} and {variant.id} would have the same {what} in the same index"
            yield Fault(path=path, message=message, hint=hint.format(axis=axis))
            return
