"""``environment``: the wheels and conda packages of a locked environment."""

from __future__ import annotations

from axletree.plan.actions.spec import ActionSpec, Facts, Parameters
from axletree.recipe.conda_locks import LockedPackage
from axletree.recipe.locks import LockedWheel


class EnvironmentParameters(Parameters, frozen=True, kw_only=True):
    """What a lock pins."""

    python: dict[str, str]
    """Identity of the interpreter: version, implementation, ABI, platform; no path."""
    version: str
    """``3.11``, or ``3.13t``; empty where a conda prefix has no Python."""
    platform: str
    """``linux-x86_64``."""
    wheels: tuple[LockedWheel, ...]
    conda: tuple[LockedPackage, ...] = ()
    """Packages of a conda prefix, on top of which the wheels are installed."""


class EnvironmentFacts(Facts, frozen=True, kw_only=True):
    """What is in it."""

    packages: tuple[tuple[str, str], ...]
    """Name and version of each distribution or conda package."""
    size: int
    """Bytes of all files."""
    python: dict[str, str]


SPEC = ActionSpec(
    module="axletree.execute.actions.environment",
    revision=1,
    parameters=EnvironmentParameters,
    facts=EnvironmentFacts,
    network=True,
)
