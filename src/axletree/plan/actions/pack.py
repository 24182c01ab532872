"""``pack``: a wheel of a package's part of a tree."""

from __future__ import annotations

from axletree.core.values import Digest
from axletree.plan.actions.packages import Described, PackedFacts, PackParameters
from axletree.plan.actions.spec import ActionSpec


class WheelParameters(PackParameters, frozen=True, kw_only=True):
    """How the wheel is written."""

    package: Described
    generator: str
    """What goes into ``WHEEL``: name and version."""
    policy: Digest | None
    """Digest of the platform policy data: part of what the tag follows from."""
    interpreters: tuple[str, ...] = ()
    """Folders of the interpreters that may have built it: search paths into them are removed."""


class PackedWheel(PackedFacts, frozen=True, kw_only=True):
    """The wheel."""

    requires: tuple[str, ...] = ()


SPEC = ActionSpec(
    module="axletree.execute.actions.pack", revision=4, parameters=WheelParameters, facts=PackedWheel, dated=True
)
