"""``audit-conda``: a conda package against every rule."""

from __future__ import annotations

from axletree.plan.actions.packages import AuditParameters
from axletree.plan.actions.spec import ActionSpec

SPEC = ActionSpec(module="axletree.execute.actions.audit_conda", revision=1, parameters=AuditParameters)
