"""What ``axletree env verify`` reports."""

from __future__ import annotations

import msgspec

from axletree.core.findings import Finding
from axletree.environment.verify import Proof


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """Folders in the order that an environment wants, real paths."""

    include: tuple[str, ...]
    link: tuple[str, ...]
    run: tuple[str, ...]


class VerifiedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What the tools of an environment take, and what is wrong with it."""

    environment: str
    """Its folder; ``system`` where none is active."""
    expected: Expected
    compilers: tuple[Proof, ...]
    """What each compiler was seen to do."""
    findings: tuple[Finding, ...]
    """Worst first."""
