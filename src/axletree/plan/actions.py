"""What planning must know of an action, without importing it."""

from __future__ import annotations

import msgspec


class ActionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An action as the planner sees it."""

    module: str
    """Module whose ``run(context)`` does the work."""
    revision: int
    """Part of each key: results of older code are not served."""
    network: bool = False
    """Whether it may use the network; all others run without one where the system allows it."""
    compiles: bool = False
    """Whether it starts many processes: it shares the job budget and its peak memory is learned."""
    host: bool = False
    """Whether its result depends on the host's facts (tests do)."""
