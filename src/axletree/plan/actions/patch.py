"""``patch``: the recipe's patches, applied to the source."""

from __future__ import annotations

import msgspec

from axletree.core.values import Digest
from axletree.plan.actions.spec import ActionSpec, Parameters


class PatchFile(msgspec.Struct, frozen=True, kw_only=True):
    """One patch."""

    file: str
    """Path relative to the recipe."""
    strip: int
    """Leading parts of paths that are dropped, ``-p``."""
    blob: Digest
    """Its content, which is in the store."""


class PatchParameters(Parameters, frozen=True, kw_only=True):
    """Patches, in the order in which they are applied."""

    patches: tuple[PatchFile, ...]


SPEC = ActionSpec(module="axletree.execute.actions.patch", revision=1, parameters=PatchParameters)
