"""Audit wheels that lie on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.torch_symbols import exports_of_torch
from axletree.check.audit import AuditReport, audit_buffer
from axletree.core.errors import Problem, UsageError
from axletree.host.archive import map_file
from axletree.host.policies import read_all_policies
from axletree.host.providers import read_providers
from axletree.registry import driver_libraries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Promises(msgspec.Struct, frozen=True, kw_only=True):
    """What wheels are held to beside their own tags."""

    provided_by: dict[str, tuple[str, ...]] = {}
    """Distribution -> patterns of SONAMEs that it brings, beside those that are known."""
    policy: str | None = None
    """A policy or platform tag that they should fit."""
    glibc: str | None = None
    """Highest glibc version that they may need."""
    torch: Path | None = None
    """The torch that they will meet: a wheel, an environment, a folder of packages, a Python program."""
    hashes: Literal["all", "small"] = "small"
    """Whether the hashes of large members are compared with RECORD too."""


def audit_wheels(paths: Iterable[Path], promises: Promises | None = None) -> Iterator[AuditReport]:
    """Audit wheels one after the other, each in one pass, without unpacking it.

    Raises:
        HostError: a file can't be read.
        IntegrityError: one is no wheel, or its archive is damaged or unsafe.
        UsageError: there is no such policy, or no torch where it was said to be.
    """
    promises = promises or Promises()
    torch = None if promises.torch is None else exports_of_torch(promises.torch)
    for path in paths:
        yield audit_buffer(
            map_file(path),
            filename=path.name,
            policies=read_all_policies(),
            providers=read_providers(),
            driver=driver_libraries(),
            provided_by=promises.provided_by,
            wanted=promises.policy,
            glibc=promises.glibc,
            torch=torch,
            hashes=promises.hashes,
        )


def find_wheels(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files as given; of a folder, its wheels, sorted.

    Raises:
        UsageError: a folder has none.
    """
    found: list[Path] = []
    empty: list[Problem] = []
    for path in paths:
        inside = sorted(path.glob("*.whl")) if path.is_dir() else [path]
        found += inside
        if not inside:
            empty.append(Problem(file=str(path), message="has no wheels in it"))
    if empty:
        raise UsageError(*empty)
    return tuple(found)


def audit_wheel(path: Path, promises: Promises | None = None) -> AuditReport:
    """Audit one wheel; see :func:`audit_wheels`."""
    return next(audit_wheels([path], promises))
