"""What the actions that audit share: a report becomes a stage's result, or its failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.waiving import waive
from axletree.core.errors import StageError
from axletree.core.stated import TAKEN_ALONG, Stated, waiver_key
from axletree.core.trees import Entry, make_tree
from axletree.core.values import canonical_json
from axletree.execute.context import Outcome
from axletree.view.findings import finding_lines

if TYPE_CHECKING:
    from axletree.check.audit import AuditReport
    from axletree.core.errors import Problem
    from axletree.core.findings import Finding
    from axletree.execute.context import ActionContext, Context
    from axletree.plan.actions.packages import AuditParameters


def with_recipe_keys(context: Context, report: AuditReport) -> AuditReport:
    """The same report, whose fixes are lines of the recipe that the wheel was built by."""
    place = (context.request.local.stated or Stated()).places.get(TAKEN_ALONG)
    if place is None or place.key is None:
        return report
    findings = tuple(_with_key(each, place, place.key) for each in report.findings)
    return msgspec.structs.replace(report, findings=findings)


def _shown(place: Problem | None) -> str:
    """``FILE:LINE`` of a place in a recipe; empty where there is none."""
    if place is None:
        return ""
    return f"{place.file}:{place.line}" if place.line is not None else place.file or ""


def _with_key(finding: Finding, place: Problem, key: str) -> Finding:
    if finding.rule != "dist/needed-unresolved":
        return finding
    at = _shown(place)
    asked = f"set {key} = true" if key.endswith(".bundle") else f"add the library to {key}"
    fix = f"{asked} ({at}), or add its distribution to provided-by and require that distribution"
    return msgspec.structs.replace(finding, fix=fix)


def judged(context: ActionContext[AuditParameters], report: AuditReport) -> Outcome:
    """Keep a report, with what the recipe accepts marked as such.

    Raises:
        StageError: it has errors; its findings come with it.
    """
    waivers = context.parameters.waive
    known = (context.request.local.stated or Stated()).places
    places = [_shown(known.get(waiver_key(each.rule, each.where))) for each in waivers]
    findings, unused = waive(report.findings, waivers, places)
    report = msgspec.structs.replace(report, findings=(*findings, *unused))
    for finding in report.findings:
        for line in finding_lines(finding, brief=True):
            context.log.say(line)
    if report.failed:
        errors = [finding for finding in report.findings if finding.severity == "error" and not finding.waived]
        raise StageError(
            f"the audit of {report.file} found {len(errors)} error{'s' if len(errors) > 1 else ''}",
            findings=report.findings,
        )
    data = canonical_json(report)
    entry = Entry(path="audit.json", blob=context.store.put_bytes(data), size=len(data))
    return Outcome(tree=context.store.put_tree(make_tree([entry])), findings=report.findings)
