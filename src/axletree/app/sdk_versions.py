"""Whether pip takes for newer what is newer, of the wheels in folders or of versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from axletree.core.errors import Problem, UsageError
from axletree.package.sdk.versions import order_faults
from axletree.report.sdk import MisorderedVersions, VersionOrder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def check_version_order(given: Sequence[str], *, folder: Path) -> VersionOrder:
    """Compare versions of frameworks.

    Args:
        given: versions, or folders with wheels (below them too), of which each distribution's are compared.
        folder: in which relative folders are looked for.

    Raises:
        UsageError: something is neither a folder nor a version.
    """
    versions: dict[str, list[str]] = {}
    problems = []
    for text in given:
        if (folder / text).is_dir():
            for path in sorted((folder / text).rglob("*.whl")):
                try:
                    name, version, _, _ = parse_wheel_filename(path.name)
                except InvalidWheelFilename:
                    problems.append(Problem(file=str(path), message="the file name is not valid for a wheel"))
                else:
                    versions.setdefault(name, []).append(str(version))
            continue
        try:
            Version(text)
        except InvalidVersion:
            problems.append(Problem(message=f"{text!r} is neither a folder nor a version (PEP 440)"))
        else:
            versions.setdefault("", []).append(text)
    if problems:
        raise UsageError(*problems)
    faults = tuple(
        MisorderedVersions(distribution=name, older=fault.older, newer=fault.newer, why=fault.why)
        for name, found in sorted(versions.items())
        for fault in order_faults(found)
    )
    return VersionOrder(compared=sum(len({*found}) for found in versions.values()), faults=faults)
