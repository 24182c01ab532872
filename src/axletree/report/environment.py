"""What ``axletree env verify`` reports."""

from __future__ import annotations

import msgspec

from axletree.core.findings import Finding
from axletree.environment.verify import Proof


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """Folders in the order of an environment, as real paths."""

    include: tuple[str, ...]
    link: tuple[str, ...]
    run: tuple[str, ...]


class VerifiedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The files that the tools of an environment use, and the findings about them."""

    environment: str
    """Its folder; ``system`` if none is active."""
    expected: Expected
    compilers: tuple[Proof, ...]
    """The files that each compiler used."""
    findings: tuple[Finding, ...]
    """Worst first."""
