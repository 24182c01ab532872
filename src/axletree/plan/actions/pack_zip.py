"""``pack-zip``: an archive for C++ users of a package's part of a tree."""

from __future__ import annotations

from axletree.plan.actions.packages import PackedFacts, PackParameters
from axletree.plan.actions.spec import ActionSpec


class ZipParameters(PackParameters, frozen=True, kw_only=True):
    """How the archive is written."""

    version: str
    called: str
    """Name of the folder that it holds."""
    source: str
    """What stands for the source in it: a commit, else a digest."""


SPEC = ActionSpec(
    module="axletree.execute.actions.pack_zip", revision=1, parameters=ZipParameters, facts=PackedFacts, dated=True
)
