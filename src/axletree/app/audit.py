"""Audit wheels that lie on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.audit import AuditReport, audit_buffer
from axletree.host.archive import map_file
from axletree.host.policies import read_policies
from axletree.registry import driver_libraries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def audit_wheel(
    path: Path, *, provided_by: Mapping[str, Iterable[str]] | None = None, glibc: str | None = None
) -> AuditReport:
    """Audit one wheel in one pass, without unpacking it.

    Args:
        path: the wheel.
        provided_by: distribution -> patterns of SONAMEs that it brings.
        glibc: highest glibc version that it may need.

    Raises:
        HostError: the file can't be read.
        IntegrityError: it is no wheel, or its archive is damaged or unsafe.
    """
    return audit_buffer(
        map_file(path),
        filename=path.name,
        policies=read_policies(),
        driver=driver_libraries(),
        provided_by=provided_by,
        glibc=glibc,
    )
