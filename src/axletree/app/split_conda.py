"""The parts of a split wheel as conda packages, in the subfolders of a channel."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from axletree.app.index_root import StagedFile
from axletree.core.errors import IntegrityError, Problem
from axletree.host.conda import write_conda_file
from axletree.package.conda.dist import conda_package_from_dist
from axletree.package.conda.names import pin_exact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from axletree.package.conda.model import CondaPackage
    from axletree.package.names import WheelName
    from axletree.package.split import Part, SplitPlan

_MACHINES = {"x86_64": "64", "amd64": "64", "i686": "32", "win32": "32"}
_PLATFORM = re.compile(r"(?:many|musl)?(linux|macosx|win)\w*?_?(x86_64|amd64|i686|aarch64|arm64|ppc64le|s390x|win32)")


def write_conda_parts(folder: Path, plan: SplitPlan, *, platform: str, epoch: int) -> tuple[StagedFile, ...]:
    """Write a conda package for each part; those that require each other are pinned to name, version and build.

    Packages that are for any Python have conda's ``noarch: python`` layout in a subfolder of their platform. No
    ``.pyc`` files are added. Distributions that the parts require keep their names.

    Args:
        folder: for the packages, each in its subfolder.
        plan: the parts.
        platform: platform tag of the wheel that was split.
        epoch: date of the files.

    Raises:
        IntegrityError: conda has no such platform, or a part can't become a package.
        HostError: the folder can't be written.
    """
    subdir = conda_subdir(platform)
    target = folder / subdir
    target.mkdir()
    made: dict[str, CondaPackage] = {}
    staged: list[StagedFile] = []
    for part in _in_order(plan.parts):
        package, files = conda_package_from_dist(
            part.members,
            part.metadata,
            part.wheel_info,
            subdir=subdir,
            python=_python(part.name),
            variant={"content": part.identity},
            depends=[pin_exact(made[name]) for name in part.siblings if name in made],
        )
        made[part.name.project] = package
        written = write_conda_file(target, package, files, epoch=epoch, threads=len(os.sched_getaffinity(0)))
        staged.append(StagedFile(path=written.path, size=written.size, sha256=written.sha256, folder=subdir))
    return tuple(staged)


def conda_subdir(platform: str) -> str:
    """``linux-64`` for ``manylinux_2_28_x86_64``.

    Raises:
        IntegrityError: conda has no such platform.
    """
    if platform == "any":
        return "noarch"
    found = _PLATFORM.fullmatch(platform.partition(".")[0])
    if found is None:
        raise IntegrityError(Problem(key=platform, message="is no platform that conda has"))
    system = {"linux": "linux", "macosx": "osx", "win": "win"}[found[1]]
    return f"{system}-{_MACHINES.get(found[2], found[2])}"


def _python(name: WheelName) -> str | None:
    """``3.11`` or ``3.13t``; ``None`` for a part that fits several."""
    found = re.fullmatch(r"cp3(\d+)", name.python)
    if found is None or name.abi in {"none", "abi3"}:
        return None
    return f"3.{found[1]}{'t' if name.abi.endswith('t') else ''}"


def _in_order(parts: Sequence[Part]) -> Iterator[Part]:
    """Parts after those that they require, where that is possible: a pin needs the other's build string."""
    waiting = list(parts)
    while waiting:
        names = {part.name.project for part in waiting}
        ready = next((part for part in waiting if names.isdisjoint(part.siblings)), waiting[0])
        waiting.remove(ready)
        yield ready
