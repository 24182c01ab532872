"""``place``: the recipe's other sources, put into its source."""

from __future__ import annotations

from axletree.plan.actions.spec import ActionSpec, Parameters


class PlaceParameters(Parameters, frozen=True, kw_only=True):
    """Where sources are put, which come as inputs ``source:NAME``."""

    folders: dict[str, str] = {}
    """Name of a source -> folder in the recipe's source that gets its tree."""
    files: dict[str, str] = {}
    """Name of a source that is a single file -> path in the recipe's source that gets it."""


SPEC = ActionSpec(module="axletree.execute.actions.place", revision=1, parameters=PlaceParameters)
