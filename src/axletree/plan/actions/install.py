"""``install``: a built wheel, unpacked as it would lie in site-packages."""

from __future__ import annotations

from axletree.plan.actions.build import BuiltWheel
from axletree.plan.actions.spec import ActionSpec, Parameters


class InstallParameters(Parameters, frozen=True, kw_only=True):
    """Nothing: the wheel is its input."""


SPEC = ActionSpec(module="axletree.execute.actions.install", revision=1, parameters=InstallParameters, facts=BuiltWheel)
