"""Audit wheels, conda packages and unpacked trees that lie on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.app.torch_symbols import exports_of_torch
from axletree.check.audit import AuditReport, audit_buffer, refused_report
from axletree.check.tree import Distribution, audit_tree
from axletree.check.verdict import complete_policy
from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.host.archive import map_file
from axletree.host.code_files import find_code
from axletree.host.folders import list_files
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.package.wheel.info import parse_wheel_info
from axletree.package.wheel.metadata import parse_metadata
from axletree.package.wheel.tree import scan_tree
from axletree.registry import driver_libraries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from axletree.package.conda.reader import CondaFacts
    from axletree.package.libraries.torch_symbols import TorchExports


_CONDA = (".conda", ".tar.bz2")


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
    neighbours: Path | None = None
    """Conda packages that others are to be installed beside: a file, or a folder that has some in it or below."""


class AuditedFiles(msgspec.Struct, frozen=True):
    """The findings of an audit of files and folders."""

    files: tuple[AuditReport, ...]


def audit_paths(
    paths: Iterable[Path], promises: Promises | None = None, *, at_work: Callable[[str], None] = lambda _: None
) -> Iterator[AuditReport]:
    """Audit wheels and conda packages, each in one pass and without unpacking it, and unpacked trees.

    Args:
        paths: wheels, conda packages; folders that hold some, all of which are audited; folders that hold machine code.
        promises: what wheels and trees are held to beside their tags.
        at_work: told what is audited next.

    An archive that is damaged or unsafe is not opened; its report says so, as a finding that names the member at fault.

    Raises:
        HostError: a file can't be read.
        IntegrityError: the metadata of a folder is damaged, or the torch or a neighbour that was named.
        UsageError: there is no such policy, no torch or neighbours where they were said to be, or nothing to audit in a
            folder.
    """
    promises = promises or Promises()
    torch = None if promises.torch is None else exports_of_torch(promises.torch)
    others = () if promises.neighbours is None else _neighbours(promises.neighbours, at_work)
    for path in paths:
        archives = sorted([*path.glob("*.whl"), *path.glob("*.conda")]) if path.is_dir() else [path]
        for archive in archives:
            at_work(archive.name)
            yield _audit_archive(archive, promises, torch, others)
        if not archives:
            yield _audit_folder(path, promises)


def _audit_archive(
    path: Path, promises: Promises, torch: TorchExports | None, others: Sequence[CondaFacts]
) -> AuditReport:
    try:
        if path.name.endswith(_CONDA):
            return _audit_conda(path, others)
        return audit_buffer(
            map_file(path),
            filename=path.name,
            policies=read_shipped(PLATFORM_POLICIES),
            providers=read_shipped(LIBRARY_PROVIDERS),
            driver=driver_libraries(),
            provided_by=promises.provided_by,
            wanted=promises.policy,
            glibc=promises.glibc,
            torch=torch,
            hashes=promises.hashes,
        )
    except IntegrityError as error:
        return refused_report(path.name, error)


def _audit_conda(path: Path, others: Sequence[CondaFacts]) -> AuditReport:
    from axletree.check.conda_audit import audit_conda  # noqa: PLC0415 (not paid for by who audits wheels)
    from axletree.host.conda_code import read_conda_code  # noqa: PLC0415
    from axletree.host.conda_owners import library_owners  # noqa: PLC0415

    facts, code = read_conda_code(path)
    return audit_conda(facts, code, policies=read_shipped(PLATFORM_POLICIES), owners=library_owners(), others=others)


def _neighbours(place: Path, at_work: Callable[[str], None]) -> tuple[CondaFacts, ...]:
    """The conda packages of a file or folder, and of the folders in it."""
    from axletree.host.conda import read_conda  # noqa: PLC0415 (not paid for by who audits wheels)

    files = [place] if place.is_file() else sorted(file for end in _CONDA for file in place.rglob(f"*{end}"))
    if not files:
        problem = Problem(file=str(place), message="the folder contains no conda packages to compare with")
        raise UsageError(problem, hint="use a folder with .conda or .tar.bz2 files, such as a channel")
    found: list[CondaFacts] = []
    for file in files:
        at_work(file.name)
        found.append(read_conda(file))
    return tuple(found)


def _audit_folder(folder: Path, promises: Promises) -> AuditReport:
    files = list_files(folder)
    scan = scan_tree(find_code(folder, files))
    if not (scan.elfs or scan.damaged_elfs or scan.others):
        raise UsageError(
            Problem(file=str(folder), message="the folder contains no wheels, conda packages or machine code")
        )
    policies = read_shipped(PLATFORM_POLICIES)
    machines = [elf.facts.architecture for elf in scan.elfs if elf.facts.architecture]
    return audit_tree(
        scan,
        label=str(folder),
        files=files,
        distributions=tuple(_distributions(folder)),
        policies=policies,
        providers=read_shipped(LIBRARY_PROVIDERS),
        provided_by=promises.provided_by,
        wanted=promises.policy and complete_policy(promises.policy, machines, policies),
        glibc=promises.glibc,
    )


def _distributions(folder: Path) -> Iterator[Distribution]:
    for place in sorted(folder.glob("*.dist-info")):
        metadata, info = place / "METADATA", place / "WHEEL"
        if metadata.is_file():
            yield Distribution(
                metadata=parse_metadata(bytes(map_file(metadata)), file=str(metadata)),
                wheel_info=parse_wheel_info(bytes(map_file(info)), file=str(info)) if info.is_file() else None,
            )
