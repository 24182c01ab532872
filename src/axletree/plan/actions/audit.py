"""``audit``: a wheel against every rule."""

from __future__ import annotations

from axletree.core.values import Digest
from axletree.plan.actions.packages import AuditParameters
from axletree.plan.actions.spec import ActionSpec


class WheelAuditParameters(AuditParameters, frozen=True, kw_only=True):
    """What the rules are told."""

    provided_by: dict[str, tuple[str, ...]] = {}
    """Distribution -> patterns of SONAMEs that it brings."""
    compilers: tuple[str, ...] = ()
    """Compilers that the stage of its files declares, where that builds nothing but this wheel."""
    driver: tuple[str, ...] = ()
    """Patterns of SONAMEs that GPU drivers bring."""
    providers: Digest | None
    """Digest of the lists of library providers."""


SPEC = ActionSpec(module="axletree.execute.actions.audit", revision=3, parameters=WheelAuditParameters)
