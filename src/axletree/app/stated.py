"""What a recipe says of its packages, and where: for stages that compare it with what is built.

None of it can change a result, only refuse one, so it is in no key: a package with another name builds nothing anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.recipes import problem_at
from axletree.core.stated import TAKEN_ALONG, Expected, Stated, Wanted, waiver_key
from axletree.plan.actions.pack import WheelParameters
from axletree.plan.actions.packages import AuditParameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.faults import Path
    from axletree.recipe.target import Target, TargetPackage, TargetStage
    from axletree.recipe.waivers import Waiver

_AUDITS = {"wheel": "audit", "conda": "audit-conda", "zip": "audit-zip"}
"""Format -> the action that audits it."""
_OF_PACKAGE = ("local", "requires-python", "requires")


def stated(loaded: LoadedRecipe, target: Target, stage: PlannedStage) -> Stated:
    """Where a recipe says what of the package that a stage packs or audits; nothing of other stages.

    Args:
        loaded: the recipe.
        target: one of the variants that share the stage.
        stage: of the plan.
    """
    parameters = stage.step.parameters
    if isinstance(parameters, WheelParameters):
        name = parameters.package.name
    elif isinstance(parameters, AuditParameters):
        name = stage.step.name.partition(":")[2]
    else:
        return Stated()
    package = next(each for each in target.packages if each.name == name)
    waivers = [each for each in package.waive if _audit_of(package, each.rule) == stage.action]
    return _stated(loaded, package, waivers=waivers)


def _audit_of(package: TargetPackage, rule: str) -> str:
    """The audit that says whether a waiver is used: what only a wheel has is not unused because an archive lacks it."""
    first = "conda" if rule.startswith("conda/") else min(package.formats, key=tuple(_AUDITS).index)
    return _AUDITS[first]


def expected(loaded: LoadedRecipe, target: Target, stage: PlannedStage) -> tuple[Expected, ...]:
    """What a recipe calls the packages that are made of what a stage builds; nothing of other stages."""
    return expected_of(loaded, target, stage.step.name) if stage.action == "build" else ()


def expected_of(loaded: LoadedRecipe, target: Target, built: str) -> tuple[Expected, ...]:
    """As :func:`expected`, of a build stage by its name."""
    return tuple(
        Expected(wanted=_wanted(package, target), stated=_stated(loaded, package))
        for package in _packages_of(target, built)
    )


def _packages_of(target: Target, built: str) -> Iterator[TargetPackage]:
    """Packages that get the metadata of what a stage builds."""
    stages = {stage.name: stage for stage in target.stages}
    for package in target.packages:
        stage = stages.get(package.stage or "")
        while stage is not None and _keeps_metadata(stage):
            stage = stages.get(stage.inputs[0])
        if stage is not None and stage.name == built and package.formats != ("zip",):
            yield package


def _keeps_metadata(stage: TargetStage) -> bool:
    """Whether the metadata of its first input stays where it is in a stage's tree; certain only where it says so."""
    rules = stage.relocate
    if rules is None or not stage.inputs or "." in rules.place:
        return False
    return not any(pattern.startswith("*") or "-info" in pattern for pattern in rules.drop)


def _wanted(package: TargetPackage, target: Target) -> Wanted:
    wheel = "wheel" in package.formats
    siblings = [other.name for other in target.packages if other.stage == package.stage and "wheel" in other.formats]
    return Wanted(
        name=package.name,
        version=package.version,
        source_version=target.source.version if target.source.version != target.version else None,
        siblings=tuple(siblings) if wheel else None,  # conda calls many distributions otherwise
        labels=wheel,
        relabel=package.relabel,
    )


def _stated(loaded: LoadedRecipe, package: TargetPackage, *, waivers: Sequence[Waiver] = ()) -> Stated:
    table: Path = ("packages", package.name)
    given = loaded.recipe.packages[package.name].waive
    paths: dict[str, Path] = {
        "name": table,
        "version": ("version",),
        **{key: (*table, key) for key in _OF_PACKAGE},
        TAKEN_ALONG: _taking_along(loaded, package),
        **{waiver_key(each.rule, each.where): (*table, "waive", given.index(each)) for each in waivers},
    }
    places = {key: problem_at(loaded, path, "") for key, path in paths.items()}
    return Stated(stage=package.stage, places=places)


def _taking_along(loaded: LoadedRecipe, package: TargetPackage) -> tuple[str, ...]:
    """The key that takes libraries along with a package: that of the relocation that it is packed from, or its own."""
    stage = loaded.recipe.stages.get(package.stage or "")
    if package.stage is not None and stage is not None and stage.action == "relocate":
        return ("stages", package.stage, "relocate", "graft")
    return ("packages", package.name, "bundle")
