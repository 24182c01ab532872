"""``audit-conda``: a conda package against every rule."""

from __future__ import annotations

from axletree.core.values import Digest
from axletree.plan.actions.packages import AuditParameters
from axletree.plan.actions.spec import ActionSpec


class CondaAuditParameters(AuditParameters, frozen=True, kw_only=True):
    """What the rules are told."""

    providers: Digest | None
    """Digest of the lists of library providers, which say what GPU drivers bring."""


SPEC = ActionSpec(module="axletree.execute.actions.audit_conda", revision=2, parameters=CondaAuditParameters)
