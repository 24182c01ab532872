"""``audit-zip``: an archive for C++ users against the rules of folders."""

from __future__ import annotations

from axletree.core.values import Digest
from axletree.plan.actions.packages import AuditParameters, TreePart
from axletree.plan.actions.spec import ActionSpec


class ZipAuditParameters(AuditParameters, frozen=True, kw_only=True):
    """What the rules are told, and what lies where in the archive."""

    part: TreePart
    called: str
    """Name of the folder that it holds."""
    driver: tuple[str, ...] = ()
    """Patterns of SONAMEs that GPU drivers bring."""
    providers: Digest | None
    """Digest of the lists of library providers."""


SPEC = ActionSpec(module="axletree.execute.actions.audit_zip", revision=1, parameters=ZipAuditParameters)
