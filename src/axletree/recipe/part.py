"""A part of a target: the packages that somebody asks for, what they need, and their tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.utils import canonicalize_name

from axletree.core.errors import UsageError
from axletree.recipe.base import FORMAT_OF
from axletree.recipe.faults import suggestion
from axletree.recipe.importing import split_reference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from axletree.recipe.model import Recipe
    from axletree.recipe.target import Target, TargetPackage, TargetStage, TargetTest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def parts_of(
    recipe: Recipe, targets: Sequence[Target], *, formats: Collection[str], packages: Collection[str]
) -> tuple[Target, ...]:
    """The part of each target that is asked for; targets without any of it are left out.

    Args:
        recipe: what the targets are of.
        targets: its variants.
        formats: which formats of packages; all where there are none.
        packages: which packages, with those that they require; all where there are none.

    Raises:
        UsageError: the recipe has no such package, or no package has the format.
    """
    if not formats and not packages:
        return tuple(targets)
    for name in packages:
        if name not in recipe.packages:
            hint = suggestion(name, recipe.packages, "packages of this recipe") or "the recipe has no packages"
            raise UsageError(f"recipe {recipe.name} has no package {name!r}", hint=hint)
    parts = [_part(target, formats, packages) for target in targets]
    found = tuple(part for part in parts if part.packages)
    if not found:
        what = " ".join([*(f"--format {each}" for each in formats), *(f"--package {each}" for each in packages)])
        made = {form for target in targets for package in target.packages for form in package.formats}
        names = {package.name for target in targets for package in target.packages}
        hint = f"choose from the formats {', '.join(sorted(made))}; available packages: {', '.join(sorted(names))}"
        raise UsageError(f"no package in the selected variants matches {what}", hint=hint)
    return found


def used_environments(target: Target) -> set[str]:
    """Environments that a stage or a test of a target uses."""
    named = {name for stage in target.stages for name in (stage.environment, stage.host)}
    named |= {test.environment for test in target.tests}
    return {name for name in named if name is not None}


def needed_part(target: Target, *, stages: Collection[str], packages: Collection[str]) -> Target:
    """The part of a target that makes some stages' trees and some packages' wheels; nothing of it is tested.

    Other packages of the same trees stay, because what a package takes of a tree depends on them.
    """
    made = [package.stage for package in target.packages if package.name in packages]
    kept = _needed(target.stages, [*stages, *made])
    names = {stage.name for stage in kept}
    wheels = tuple(
        replace(package, formats=tuple(form for form in package.formats if form == "wheel"), conda=None)
        for package in target.packages
        if package.name in packages or package.stage in names
    )
    return replace(target, packages=wheels, stages=kept, tests=())


def _part(target: Target, formats: Collection[str], names: Collection[str]) -> Target:
    wanted = _closure(target.packages, set(names) or {package.name for package in target.packages})
    packages = tuple(
        replace(package, formats=kept, conda=package.conda if "conda" in kept else None)
        for package in wanted
        if (kept := tuple(form for form in package.formats if not formats or form in formats))
    )
    stages = _needed(target.stages, [package.stage for package in packages])
    return replace(target, packages=packages, stages=stages, tests=tuple(_tests(target, packages)))


def _closure(packages: Sequence[TargetPackage], names: set[str]) -> list[TargetPackage]:
    """The packages that are named, those that they require, and those that are cut from the same trees as they."""
    called = {word: package.name for package in packages for word in _called(package)}
    queue, found = [package for package in packages if package.name in names], set[str]()
    by_name = {package.name: package for package in packages}
    while queue:
        package = queue.pop()
        if package.name not in found:
            found.add(package.name)
            queue += [by_name[called[word]] for word in _required(package) if word in called]
            queue += [other for other in packages if _share_tree(package, other)]
    return [package for package in packages if package.name in found]


def _share_tree(package: TargetPackage, other: TargetPackage) -> bool:
    return package.stage is not None and package.stage == other.stage and bool({*package.formats} & {*other.formats})


def _called(package: TargetPackage) -> Iterable[str]:
    yield canonicalize_name(package.name)
    if package.conda is not None and package.conda.name is not None:
        yield canonicalize_name(package.conda.name)


def _required(package: TargetPackage) -> Iterable[str]:
    depends = package.conda.depends if package.conda is not None else ()
    for text in (*package.requires, *depends):
        if match := _NAME.match(text):
            yield canonicalize_name(match.group())


def _needed(stages: Sequence[TargetStage], wanted: Iterable[str | None]) -> tuple[TargetStage, ...]:
    """The stages that are wanted and all whose trees or folders they get."""
    by_name = {stage.name: stage for stage in stages}
    queue, found = [name for name in wanted if name is not None], set[str]()
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            stage = by_name[name]
            needs = [*stage.inputs, *filter(None, (stage.source_from, stage.continues))]
            queue += [each for each in needs if split_reference(each) is None]
    return tuple(stage for stage in stages if stage.name in found)


def _tests(target: Target, packages: Sequence[TargetPackage]) -> Iterable[TargetTest]:
    """Tests, with the clients for which all packages under test are there."""
    made = {package.name: package.formats for package in target.packages}
    here = {package.name: package.formats for package in packages}
    for test in target.tests:
        clients = []
        for client in test.installers:
            installed = [name for name in test.packages if FORMAT_OF[client] in made[name]]
            if installed and all(FORMAT_OF[client] in here.get(name, ()) for name in installed):
                clients.append(client)
        if clients:
            names = tuple(name for name in test.packages if name in here)
            yield replace(test, packages=names, installers=tuple(clients))
