"""Audit wheels that lie on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.backends.cpu import Cpu
from axletree.backends.cuda import Cuda
from axletree.backends.rocm import Rocm
from axletree.check.audit import AuditReport, audit_buffer
from axletree.host.archive import map_file
from axletree.host.policies import read_policies

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

DRIVER_LIBRARIES: tuple[str, ...] = tuple(
    pattern for backend in (Cpu(), Cuda(), Rocm()) for pattern in backend.driver_libraries
)


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
    with map_file(path) as view:
        return audit_buffer(
            view,
            filename=path.name,
            policies=read_policies(),
            driver=DRIVER_LIBRARIES,
            provided_by=provided_by,
            glibc=glibc,
        )
