"""Audit a packed wheel. A finding of severity error fails the stage: nothing unsound reaches an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.audit import audit_buffer
from axletree.core.errors import StageError
from axletree.core.trees import Entry, make_tree
from axletree.core.values import canonical_json
from axletree.execute.context import Outcome
from axletree.host.archive import map_file
from axletree.host.policies import read_all_policies
from axletree.host.providers import read_providers

if TYPE_CHECKING:
    from axletree.execute.context import Context


def run(context: Context) -> Outcome:
    """Apply every rule to the wheel and keep the report.

    Raises:
        StageError: the audit has errors; its findings come with it.
    """
    wheel = next(entry for entry in context.tree("wheel").entries if entry.path.endswith(".whl"))
    assert wheel.blob is not None  # noqa: S101 (a wheel is a file)
    parameters = context.parameters
    with map_file(context.store.blob_path(wheel.blob)) as view:
        report = audit_buffer(
            view,
            filename=wheel.path,
            policies=read_all_policies(),
            providers=read_providers(),
            driver=parameters["driver"],
            provided_by=parameters["provided_by"],
            glibc=parameters["glibc"],
            hashes="all",
        )
    for finding in report.findings:
        context.log.say(f"{finding.severity}: {finding.where}: {finding.message} [{finding.rule}]")
    if report.failed:
        errors = [finding for finding in report.findings if finding.severity == "error"]
        raise StageError(
            f"the audit of {wheel.path} found {len(errors)} error{'s' if len(errors) > 1 else ''}",
            findings=report.findings,
        )
    data = canonical_json(report)
    entry = Entry(path="audit.json", blob=context.store.put_bytes(data), size=len(data))
    facts = {
        "floors": report.floors,
        "glibc": report.glibc,
        "verdict": report.verdict,
        "needs": msgspec.to_builtins(report.needs),
    }
    return Outcome(tree=context.store.put_tree(make_tree([entry])), findings=report.findings, facts=facts)
