"""``environment``: the wheels of a locked environment."""

from __future__ import annotations

from axletree.plan.actions.spec import ActionSpec, Facts, Parameters
from axletree.recipe.locks import LockedWheel


class EnvironmentParameters(Parameters, frozen=True, kw_only=True):
    """What a lock pins."""

    python: dict[str, str]
    """Identity of the interpreter: version, implementation, ABI, platform; no path."""
    version: str
    """``3.11``, or ``3.13t``."""
    platform: str
    """``linux-x86_64``."""
    wheels: tuple[LockedWheel, ...]


class EnvironmentFacts(Facts, frozen=True, kw_only=True):
    """What is in it."""

    packages: tuple[tuple[str, str], ...]
    """Name and version of each distribution."""
    size: int
    """Bytes of all wheels."""
    python: dict[str, str]


SPEC = ActionSpec(
    module="axletree.execute.actions.environment",
    revision=1,
    parameters=EnvironmentParameters,
    facts=EnvironmentFacts,
    network=True,
)
