"""What a plan needs that is not there: Pythons of environments, clients of tests, locks."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import msgspec

from axletree.app.planned_recipes import recipe_of
from axletree.check.engine import apply_rules
from axletree.check.rules.plan import LOCK_RULES, PLAN_RULES, Part, Unlocked
from axletree.host.conda_install import INSTALL_RATTLER
from axletree.host.tools import how_to_install
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.fetch import CommitSource, FetchParameters
from axletree.plan.actions.test import ClientTestParameters
from axletree.plan.inputs import NO_COMMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.app.planning import Prepared
    from axletree.core.findings import Finding
    from axletree.core.records import Interpreter
    from axletree.core.values import StageId
    from axletree.host.tools import Tool
    from axletree.plan.graph import Plan, PlannedStage


def lacking_parts(
    plan: Plan, interpreters: Mapping[str, Interpreter], clients: Mapping[str, str], tools: Mapping[str, Tool]
) -> dict[StageId, tuple[Part, ...]]:
    """Stages that need a Python, a client or a program that is not installed, and which."""
    found = {stage.id: tuple(_parts(stage, interpreters, clients, tools)) for stage in plan.stages.values()}
    return {stage: parts for stage, parts in found.items() if parts}


def _parts(
    stage: PlannedStage,
    interpreters: Mapping[str, Interpreter],
    clients: Mapping[str, str],
    tools: Mapping[str, Tool],
) -> Iterator[Part]:
    match stage.step.parameters:
        case EnvironmentParameters(conda=packages) if packages:
            if importlib.util.find_spec("rattler") is None:
                yield Part(name="py-rattler", fix=f"$ {INSTALL_RATTLER}", installed=False)
        case EnvironmentParameters(version=version) if version in interpreters and not interpreters[version].path:
            yield Part(name=f"Python {version}", fix=f"$ uv python install {version}", installed=False)
        case ClientTestParameters(installer="conda") if not clients["conda"]:
            yield Part(name="py-rattler", fix=f"$ {INSTALL_RATTLER}", installed=False)
        case _:
            pass
    for name in stage.step.tools if stage.step.image is None else ():
        if not tools[name].path:
            yield Part(name=name, fix=how_to_install(name), installed=False)


def unlocked_stages(plan: Plan) -> frozenset[StageId]:
    """Stages whose content is not known, because it is not locked."""
    return frozenset(stage.id for stage in plan.stages.values() if _is_unlocked(stage))


def _is_unlocked(stage: PlannedStage) -> bool:
    match stage.step.parameters:
        case EnvironmentParameters(platform=platform):
            return not platform
        case FetchParameters(source=CommitSource(commit=commit)):
            return commit == NO_COMMIT
        case _:
            return False


def lacking_findings(prepared: Prepared) -> tuple[Finding, ...]:
    """What is not installed, each once, with the variants that need it; and what is not locked."""
    variants: dict[Part, dict[str, None]] = {}
    for stage, parts in prepared.lacking.items():
        for part in parts:
            variants.setdefault(part, {}).update(dict.fromkeys(prepared.plan.stages[stage].variants))
    installing = tuple(
        msgspec.structs.replace(finding, variants=tuple(named))
        for part, named in variants.items()
        for finding in apply_rules(PLAN_RULES, part)
    )
    return (*installing, *_unlocked_findings(prepared))


def _unlocked_findings(prepared: Prepared) -> Iterator[Finding]:
    """What is not locked of each recipe, with the command that locks it."""
    unlocked = [stage for stage in prepared.plan.stages.values() if stage.id in prepared.unlocked]
    for recipe in dict.fromkeys(stage.recipe for stage in unlocked):
        stages = [stage for stage in unlocked if stage.recipe == recipe]
        sources = sum(stage.action == "fetch" for stage in stages)
        fix = f"run `{recipe_of(prepared, stages[0]).relock}`"
        facts = Unlocked(source=bool(sources), environments=len(stages) - sources, fix=fix)
        yield from apply_rules(LOCK_RULES, facts)
