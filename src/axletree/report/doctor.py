"""What ``axletree doctor`` reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings about a host."""

    host: str
    """The host in one line."""
    recipe: str
    """Recipe that the host was checked for; empty if none was named."""
    variants: tuple[str, ...]
    """All variants that were checked."""
    findings: tuple[Finding, ...]
    """Worst first; a finding for several variants is listed once."""
    next: str | None
    """The first thing to do: see ``next_step``."""


def next_step(findings: Sequence[Finding]) -> str | None:
    """What to do first: the worst finding's command, or advice where it has none; nothing about mere information."""
    if not findings or findings[0].severity == "info":
        return None
    lines = (findings[0].fix or "").splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    return next(iter(commands or lines), None)
