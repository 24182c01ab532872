"""What the actions that audit share: a report becomes a stage's result, or its failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import StageError
from axletree.core.trees import Entry, make_tree
from axletree.core.values import canonical_json
from axletree.execute.context import Outcome
from axletree.view.findings import finding_lines

if TYPE_CHECKING:
    from axletree.check.audit import AuditReport
    from axletree.execute.context import Context


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
