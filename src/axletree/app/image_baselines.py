"""What packages and their torch need, compared with the image that they are compiled in, before anything compiles."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from axletree.app.recipes import problem_at
from axletree.check.engine import apply_rules
from axletree.check.image import Baseline, baseline_problems, promised_glibcxx, torch_needs
from axletree.check.rules.image import IMAGE_RULES
from axletree.core.errors import RecipeError
from axletree.host.image_facts import read_image_facts
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import PLATFORM_POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from axletree.app.planning import Prepared
    from axletree.check.image import ImageFacts
    from axletree.core.errors import Problem
    from axletree.core.findings import Finding
    from axletree.core.values import StageId
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.locks import LockedWheel
    from axletree.recipe.target import Target, TargetStage

_ZIG = "ziglang"
"""What links for the glibc that it is told, whatever the system has."""


def check_baselines(prepared: Prepared, roots: Mapping[str, Path], stages: frozenset[StageId]) -> tuple[Finding, ...]:
    """Compare the packages that are made from some stages with the images of those; what is to say beside errors.

    Args:
        prepared: the plan.
        roots: name of an image -> its files.
        stages: the stages.

    Raises:
        RecipeError: a package could not be what the recipe asks for.
    """
    facts: dict[str, ImageFacts] = {}
    found: dict[Finding, None] = {}
    problems: list[Problem] = []
    for baseline in _baselines(prepared, roots, stages, facts):
        findings = apply_rules(IMAGE_RULES, baseline)
        problems += baseline_problems(baseline, findings)
        found |= dict.fromkeys(each for each in findings if each.severity != "error")
    if problems:
        raise RecipeError(*dict.fromkeys(problems))
    return tuple(found)


def _baselines(
    prepared: Prepared, roots: Mapping[str, Path], stages: frozenset[StageId], facts: dict[str, ImageFacts]
) -> Iterator[Baseline]:
    policies, machine = read_shipped(PLATFORM_POLICIES), platform.machine()
    running = {(variant, each.step.name) for each in _chosen(prepared, stages) for variant in each.variants}
    for target in prepared.targets:
        made = {stage.name: stage for stage in target.stages if stage.image is not None}
        for package in target.packages:
            stage = made.get(package.stage or "")
            if stage is None or stage.image is None or (target.variant, stage.name) not in running:
                continue
            if stage.image not in facts:
                image = prepared.inputs.images[stage.image]
                facts[stage.image] = read_image_facts(roots[stage.image], name=stage.image, variables=image.variables)
            wheels = _wheels(prepared, target, stage)
            torch = wheels.get("torch")
            place = problem_at(prepared.loaded, ("packages", package.name, "glibc"), "")
            yield Baseline(
                image=facts[stage.image],
                package=package.name,
                glibc=package.glibc,
                promised=package.glibc and promised_glibcxx(package.glibc, policies, machine),
                own_glibc=_ZIG in wheels,
                torch=None if torch is None else torch_needs(torch.version, torch.filename, policies, machine),
                python=_python(prepared, target, stage),
                file=place.file or str(prepared.loaded.path),
                line=place.line,
            )


def _chosen(prepared: Prepared, stages: frozenset[StageId]) -> list[PlannedStage]:
    return [stage for stage in prepared.plan.stages.values() if stage.id in stages and not stage.recipe]


def _wheels(prepared: Prepared, target: Target, stage: TargetStage) -> dict[str, LockedWheel]:
    """What is locked for the environment of a stage, by name."""
    locks = [each.lock for each in target.environments if each.name == stage.environment]
    locked = [prepared.inputs.environments[lock].lock for lock in locks if lock in prepared.inputs.environments]
    return {wheel.name: wheel for lock in locked for wheel in lock.wheels}


def _python(prepared: Prepared, target: Target, stage: TargetStage) -> str | None:
    """The glibc of the Python that a stage uses in its image."""
    versions = [each.python for each in target.environments if each.name == stage.environment]
    found = [prepared.images.pythons[version].glibc for version in versions if version in prepared.images.pythons]
    return found[0] if found else None
