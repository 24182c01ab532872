"""What is to be said of a plan before anything runs, among it what publishing will refuse after hours of work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.app.lacking import lacking_findings
from axletree.app.link_guard import link_findings
from axletree.app.listings import listed
from axletree.app.stage_reasons import changes
from axletree.check.engine import apply_rules
from axletree.check.rules.plan import REPUBLISHING_RULES, Republished
from axletree.core.errors import AxletreeError
from axletree.plan.actions.listing import ListingFacts
from axletree.plan.actions.spec import facts_of
from axletree.plan.packaging import LISTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from axletree.app.planning import Prepared
    from axletree.core.findings import Finding
    from axletree.core.records import Ingredients
    from axletree.core.values import StageId
    from axletree.plan.graph import PlannedStage


def plan_findings(prepared: Prepared) -> tuple[Finding, ...]:
    """What is to be said of a plan.

    Raises:
        HostError: the table of measured sizes can't be read.
    """
    republishing = () if prepared.replace else _republishing(prepared)
    return (*lacking_findings(prepared), *republishing, *link_findings(prepared))


def _republishing(prepared: Prepared) -> Iterator[Finding]:
    """Packages that are published under the names that the plan would give to what it makes of changed inputs."""
    for stage in prepared.plan.stages.values():
        last = prepared.last.get(stage.id)
        if stage.action not in LISTINGS or last is None or prepared.resolved[stage.id].record is not None:
            continue
        facts = facts_of(last, ListingFacts)
        there = _listed(facts.kind, prepared.out / facts.root)
        for name, needed in stage.needs.items():
            packed = prepared.last.get(needed)
            reasons = () if packed is None or name.startswith("audit:") else _reasons(prepared, needed)
            if packed is None or not reasons or not _same_release(prepared.plan.stages[needed], packed.ingredients):
                continue
            filename = packed.facts["filename"]
            path = next((path for path in there if path.rpartition("/")[2] == filename), None)
            made = prepared.resolved[needed].record
            if path is not None and (made is None or made.facts["sha256"] != there[path]):
                place = str(prepared.out / facts.root / path)
                yield from apply_rules(REPUBLISHING_RULES, Republished(path=place, reasons=reasons))


def _listed(kind: str, root: Path) -> Mapping[str, str]:
    try:
        return listed(kind, root)
    except AxletreeError:  # publishing says what is wrong with the pages
        return {}


def _reasons(prepared: Prepared, stage: StageId) -> tuple[str, ...]:
    """What changed of a stage and of all before it, since it last ran."""
    before = prepared.plan.upstream([stage])
    ordered = [each for each in prepared.plan.stages if each in before]
    return tuple(f"{each}: {reason}" for each in ordered for reason in changes(prepared, each))


def _same_release(stage: PlannedStage, last: Ingredients) -> bool:
    """Whether a package will be called as it was: of one version, local label and build number."""
    return _release(msgspec.to_builtins(stage.step.parameters)) == _release(last.parameters)


def _release(parameters: Mapping[str, Any]) -> list[Any]:
    described, conda = parameters.get("package", {}), parameters.get("conda") or {}
    return [
        parameters.get("version"),
        *(described.get(key) for key in ("version", "build_tag")),
        *(conda.get(key) for key in ("version", "build")),
    ]
