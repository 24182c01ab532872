"""Audit a conda package: whether it is what it says, and how its machine code is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.conda_audit import audit_conda
from axletree.execute.auditing import judged
from axletree.host.conda_code import read_conda_code
from axletree.host.conda_owners import library_owners
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import PLATFORM_POLICIES

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext, Outcome
    from axletree.plan.actions.audit_conda import CondaAuditParameters


def run(context: ActionContext[CondaAuditParameters]) -> Outcome:
    """Read the package as a stranger would, apply every rule, and keep the report.

    Raises:
        StageError: the audit has errors; its findings come with it.
        IntegrityError: it can't be read as a package.
    """
    entry = next(entry for entry in context.tree("package").entries if entry.path.endswith(".conda"))
    assert entry.blob is not None  # noqa: S101 (a package is a file)
    filename = entry.path.rpartition("/")[2]
    facts, code = read_conda_code(context.store.blob_path(entry.blob), filename=filename)
    report = audit_conda(
        facts,
        code,
        policies=read_shipped(PLATFORM_POLICIES),
        owners=library_owners(),
        glibc=context.parameters.glibc,
    )
    return judged(context, report)
