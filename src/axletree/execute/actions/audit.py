"""Audit a packed wheel. A finding of severity error fails the stage: nothing unsound reaches an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.audit import audit_buffer
from axletree.execute.auditing import judged, with_recipe_keys
from axletree.host.archive import map_file
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext, Outcome
    from axletree.plan.actions.audit import WheelAuditParameters


def run(context: ActionContext[WheelAuditParameters]) -> Outcome:
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
            policies=read_shipped(PLATFORM_POLICIES),
            providers=read_shipped(LIBRARY_PROVIDERS),
            driver=parameters.driver,
            provided_by=parameters.provided_by,
            glibc=parameters.glibc,
            compilers=parameters.compilers,
            hashes="all",
        )
    return judged(context, with_recipe_keys(context, report))
