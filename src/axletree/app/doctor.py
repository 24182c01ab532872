"""Examine a host: can it build what a recipe's variants need, and run it; what is to be changed?"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

import msgspec

from axletree.app import planning
from axletree.app.publish import OUT
from axletree.app.recipes import load_whole
from axletree.backends.bounds import TOOLCHAIN_BOUNDS
from axletree.backends.cuda import cuda_release
from axletree.backends.rocm import rocm_release
from axletree.check.engine import apply_rules, worst_first
from axletree.check.host.examined import Examined, Wish
from axletree.check.rules.host.all import HOST_RULES
from axletree.core.errors import AxletreeError, HostError
from axletree.core.findings import Finding
from axletree.host.interpreters import find_interpreter
from axletree.host.shipped_data import read_shipped
from axletree.host.tools import find_programs
from axletree.plan.admission import job_memory
from axletree.recipe.axes import expand, select
from axletree.recipe.target import TargetResources, resolve
from axletree.report.doctor import HostReport, next_step
from axletree.view.doctor import host_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.check.host.facts import HostFacts
    from axletree.core.findings import Finding
    from axletree.recipe.target import Target
    from axletree.store.store import Store

_ARCH_LISTS = ("TORCH_CUDA_ARCH_LIST", "PYTORCH_ROCM_ARCH", "CMAKE_HIP_ARCHITECTURES", "AMDGPU_TARGETS")
_CMAKE = re.compile(r"cmake\b(?![-_.])", re.IGNORECASE)
_PYTORCH = frozenset({"pytorch", "torch", "libtorch"})


def examine(host: HostFacts, recipe: str = "", wishes: Sequence[Wish] = ()) -> HostReport:
    """Apply every rule about hosts, for each wish; for none in particular where there are none.

    Raises:
        HostError: the table of what goes together can't be read.
    """
    bounds = read_shipped(TOOLCHAIN_BOUNDS)
    found: dict[Finding, list[str]] = {}
    for wish in wishes or (Wish(),):
        for finding in apply_rules(HOST_RULES, Examined(host=host, wish=wish, bounds=bounds)):
            found.setdefault(finding, []).append(wish.variant)
    findings = tuple(_of_some(finding, found[finding], len(wishes)) for finding in worst_first(found))
    return HostReport(
        host=host_line(host),
        recipe=recipe,
        variants=tuple(wish.variant for wish in wishes),
        findings=findings,
        next=next_step(findings),
    )


def _of_some(finding: Finding, variants: Sequence[str], examined: int) -> Finding:
    """A finding that names its variants where it does not hold for all."""
    return msgspec.structs.replace(finding, variants=tuple(variants)) if len(variants) < examined else finding


def wishes_of(
    recipe: str,
    patterns: Sequence[str] = (),
    *,
    sets: Sequence[str] = (),
    environ: Mapping[str, str],
    store: Store | None = None,
) -> tuple[str, tuple[Wish, ...]]:
    """What a recipe's variants need of a host. A program that is missing is no error: it is a finding.

    Args:
        recipe: name or path.
        patterns: variants; all where there are none.
        sets: changes of the recipe, ``KEY=VALUE`` each.
        environ: variables that planning reads, and whose PATH has the programs.
        store: where earlier runs on this host are known; what they needed counts beside what the recipe declares.
            ``None`` asks about another host: nothing is looked for on this one.

    Returns:
        The recipe's name, and a wish for each variant.

    Raises:
        RecipeError: the recipe is wrong.
        UsageError: there is no such recipe, or no such variant.
    """
    loaded = load_whole(recipe, sets)
    targets = {each.id: resolve(loaded.recipe, each) for each in select(expand(loaded.recipe), patterns, ())}
    wishes = tuple(_wish(loaded, target, name) for name, target in targets.items())
    if store is None:
        return loaded.recipe.name, wishes
    request = planning.PlanRequest(recipe=recipe, sets=tuple(sets), patterns=tuple(patterns), out=OUT)
    measured = _measured(request, store, environ)
    there = _there(targets.values(), store, environ)
    return loaded.recipe.name, tuple(
        msgspec.structs.replace(
            wish,
            missing=tuple(tool for tool in _tools(targets[wish.variant]) if tool not in there),
            pythons=tuple(python for python in _pythons(targets[wish.variant]) if python not in there),
            memory_per_job=max(wish.memory_per_job or 0, measured.get(wish.variant, 0)) or None,
        )
        for wish in wishes
    )


def _tools(target: Target) -> tuple[str, ...]:
    """Programs of the host that stages declare; a stage in conda environments may have its own."""
    conda = {each.name for each in target.environments if each.provider == "conda"}
    stages = [stage for stage in target.stages if not {stage.environment, stage.host} & conda]
    return tuple(dict.fromkeys(tool for stage in stages for tool in stage.tools))


def _pythons(target: Target) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.python for each in target.environments if each.provider != "conda"))


def _there(targets: Iterable[Target], store: Store, environ: Mapping[str, str]) -> set[str]:
    """Programs and versions of Python that variants need and this machine has."""
    tools = {tool for target in targets for tool in _tools(target)}
    found = set(find_programs(tools, environ.get("PATH", os.defpath)))
    for version in {python for target in targets for python in _pythons(target)}:
        with contextlib.suppress(HostError):
            find_interpreter(version, environ=environ, cache=store.cache / "interpreters.json")
            found.add(version)
    return found


def _measured(request: planning.PlanRequest, store: Store, environ: Mapping[str, str]) -> dict[str, int]:
    """Variant -> bytes that one compile process took in the last run of any of its stages, with some headroom."""
    try:
        prepared = planning.prepare(request, store, environ=environ)
    except AxletreeError:  # no lock, no compiler: what the recipe declares has to do
        return {}
    found: dict[str, int] = {}
    for stage, record in prepared.last.items():
        if prepared.specs[prepared.plan.stages[stage].action].compiles and record.metrics.peak_process:
            per_job = job_memory(TargetResources(), record.metrics)
            found |= {name: max(per_job, found.get(name, 0)) for name in prepared.plan.stages[stage].variants}
    return found


def _wish(loaded: LoadedRecipe, target: Target, variant: str) -> Wish:
    """What the recipe itself says."""
    resources = [stage.resources for stage in target.stages]
    gpu = next((stage.axes["gpu"] for stage in target.stages if "gpu" in stage.axes), "")
    return Wish(
        variant=variant,
        cuda=cuda_release(gpu),
        rocm=rocm_release(gpu),
        archs=_archs(target),
        torch=target.source.version if loaded.recipe.name in _PYTORCH and target.source.kind != "wheel" else None,
        own_cmake=any(_CMAKE.match(text) for each in target.environments for text in each.requires),
        git=target.source.kind == "git",
        memory_per_job=max((each.memory_per_job or 0 for each in resources), default=0) or None,
        memory=max((each.memory or 0 for each in resources), default=0) or None,
        disk=sum(each.disk or 0 for each in resources) or None,
    )


def _archs(target: Target) -> tuple[str, ...]:
    """GPU generations that its stages compile for, as variables and CMake variables say."""
    found: dict[str, None] = {}
    for stage in target.stages:
        settings = {**stage.env, **{name.partition(":")[0]: value for name, value in stage.options.items()}}
        for name in _ARCH_LISTS:
            words = settings.get(name, "").replace(",", ";").replace(" ", ";").split(";")
            found |= dict.fromkeys(word.removesuffix("+PTX") for word in words if word)
    return tuple(found)
