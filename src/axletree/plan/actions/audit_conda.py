"""``audit-conda``: a conda package against every rule."""

from __future__ import annotations

from axletree.core.values import Digest
from axletree.plan.actions.packages import AuditParameters
from axletree.plan.actions.spec import ActionSpec


class CondaAuditParameters(AuditParameters, frozen=True, kw_only=True):
    """What the package is held to."""

    owners: Digest | None = None
    """Digest of what is known of the owners of paths and libraries."""


SPEC = ActionSpec(module="axletree.execute.actions.audit_conda", revision=2, parameters=CondaAuditParameters)
