"""The root cause of a log, and the host that it comes from: what the doctor's rules say of the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import apply_rules
from axletree.check.rules.host.all import HOST_RULES

if TYPE_CHECKING:
    from axletree.check.diagnosis.engine import Diagnosis
    from axletree.check.host.examined import Examined


def with_host(diagnosis: Diagnosis, examined: Examined) -> Diagnosis:
    """A diagnosis whose root cause knows what of the host tells its reason: rules that its kind names and that fire."""
    if not diagnosis.findings:
        return diagnosis
    root, *others = diagnosis.findings
    rules = [rule for rule in HOST_RULES if rule.id in root.see]
    explained = msgspec.structs.replace(root, host=apply_rules(rules, examined))
    return msgspec.structs.replace(diagnosis, findings=(explained, *others))
