"""The audit of a wheel: one pass over its bytes, then every rule. What the command and the build's audit share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.check.dist import observe_dist
from axletree.check.engine import apply_rules
from axletree.check.rules.dist import DIST_RULES
from axletree.core.findings import Finding, worst
from axletree.package.linkage import Need
from axletree.package.policy import glibc_floor
from axletree.package.wheel import scan_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.package.policy import Policy

AUDIT_SCHEMA: Literal[1] = 1


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found."""

    file: str
    """File name of the wheel."""
    project: str
    version: str
    tags: tuple[str, ...]
    size: int
    """Bytes of the wheel."""
    files: int
    elf_files: int
    floors: dict[str, str]
    """Machine -> lowest platform tag that the symbol versions of its files allow."""
    glibc: str | None
    """Highest glibc version that a file needs."""
    needs: tuple[Need, ...]
    """Each needed library and who brings it."""
    findings: tuple[Finding, ...]
    """Worst first."""
    schema: Literal[1] = AUDIT_SCHEMA

    @property
    def failed(self) -> bool:
        """Whether there is a finding of severity error."""
        return worst(self.findings) == "error"


def audit_buffer(
    buffer: bytes | memoryview,
    *,
    filename: str,
    policies: Sequence[Policy],
    driver: Iterable[str] = (),
    provided_by: Mapping[str, Iterable[str]] | None = None,
    glibc: str | None = None,
) -> AuditReport:
    """Audit a wheel that is in memory or mapped.

    Args:
        buffer: the wheel.
        filename: its name without folders.
        policies: manylinux policies, lowest glibc first.
        driver: patterns of SONAMEs that GPU drivers bring.
        provided_by: distribution -> patterns of SONAMEs that it brings.
        glibc: highest glibc version that it may need, such as ``2.28``.

    Raises:
        IntegrityError: the file is no wheel, or its archive is damaged or unsafe.
    """
    scan = scan_wheel(buffer, filename=filename)
    patterns = {name: tuple(values) for name, values in (provided_by or {}).items()}
    facts = observe_dist(scan, policies=policies, driver=driver, provided_by=patterns, glibc=glibc)
    floor = glibc_floor(facts.symbols)
    return AuditReport(
        file=filename,
        project=scan.wheel.name.project,
        version=scan.wheel.name.version,
        tags=scan.wheel.name.tags,
        size=scan.wheel.size,
        files=len(scan.wheel.members),
        elf_files=len(scan.elfs),
        floors=facts.floors,
        glibc=".".join(map(str, floor)) if floor else None,
        needs=facts.needs,
        findings=apply_rules(DIST_RULES, facts),
    )
