"""What a plan needs that is not installed here: Pythons of environments, clients of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.app.conda_inputs import INSTALL_RATTLER
from axletree.check.engine import apply_rules
from axletree.check.rules.plan import PLAN_RULES, Part
from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.actions.test import ClientTestParameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.app.planning import Prepared
    from axletree.core.findings import Finding
    from axletree.core.records import Interpreter
    from axletree.core.values import StageId
    from axletree.plan.graph import Plan, PlannedStage


def lacking_parts(
    plan: Plan, interpreters: Mapping[str, Interpreter], clients: Mapping[str, str]
) -> dict[StageId, Part]:
    """Stages that need a Python or a client that is not installed, and what."""
    found = {stage.id: _part(stage, interpreters, clients) for stage in plan.stages.values()}
    return {stage: part for stage, part in found.items() if part is not None and not part.installed}


def _part(stage: PlannedStage, interpreters: Mapping[str, Interpreter], clients: Mapping[str, str]) -> Part | None:
    match stage.step.parameters:
        case EnvironmentParameters(version=version):
            return Part(
                name=f"Python {version}",
                command=f"uv python install {version}",
                installed=bool(interpreters[version].path),
            )
        case ClientTestParameters(installer="conda"):
            return Part(name="py-rattler", command=INSTALL_RATTLER, installed=bool(clients["conda"]))
        case _:
            return None


def lacking_findings(prepared: Prepared) -> tuple[Finding, ...]:
    """What is not installed, each once, with the variants that need it."""
    variants: dict[Part, dict[str, None]] = {}
    for stage, part in prepared.lacking.items():
        variants.setdefault(part, {}).update(dict.fromkeys(prepared.plan.stages[stage].variants))
    return tuple(
        msgspec.structs.replace(finding, variants=tuple(named))
        for part, named in variants.items()
        for finding in apply_rules(PLAN_RULES, part)
    )
