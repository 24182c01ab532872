"""What the actions that audit share: a report becomes a stage's result, or its failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import StageError
from axletree.core.stated import TAKEN_ALONG, Stated
from axletree.core.trees import Entry, make_tree
from axletree.core.values import canonical_json
from axletree.execute.context import Outcome
from axletree.view.findings import finding_lines

if TYPE_CHECKING:
    from axletree.check.audit import AuditReport
    from axletree.core.errors import Problem
    from axletree.core.findings import Finding
    from axletree.execute.context import Context


def with_recipe_keys(context: Context, report: AuditReport) -> AuditReport:
    """The same report, whose fixes are lines of the recipe that the wheel was built by."""
    place = (context.request.local.stated or Stated()).places.get(TAKEN_ALONG)
    if place is None or place.key is None:
        return report
    findings = tuple(_with_key(each, place, place.key) for each in report.findings)
    return msgspec.structs.replace(report, findings=findings)


def _with_key(finding: Finding, place: Problem, key: str) -> Finding:
    if finding.rule != "dist/needed-unresolved":
        return finding
    at = f"{place.file}:{place.line}" if place.line is not None else place.file
    asked = f"set {key} = true" if key.endswith(".bundle") else f"add the library to {key}"
    fix = f"{asked} ({at}), or name the distribution that provides it in provided-by and require it"
    return msgspec.structs.replace(finding, fix=fix)


def judged(context: Context, report: AuditReport) -> Outcome:
    """Keep a report.

    Raises:
        StageError: it has errors; its findings come with it.
    """
    for finding in report.findings:
        for line in finding_lines(finding, brief=True):
            context.log.say(line)
    if report.failed:
        errors = [finding for finding in report.findings if finding.severity == "error"]
        raise StageError(
            f"the audit of {report.file} found {len(errors)} error{'s' if len(errors) > 1 else ''}",
            findings=report.findings,
        )
    data = canonical_json(report)
    entry = Entry(path="audit.json", blob=context.store.put_bytes(data), size=len(data))
    return Outcome(tree=context.store.put_tree(make_tree([entry])), findings=report.findings)
