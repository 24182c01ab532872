"""The parts of a split wheel as conda packages: what they are called, and how they hold together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from axletree.core.errors import IntegrityError, Problem
from axletree.package.conda.check import check_siblings, clobbers
from axletree.package.conda.dist import conda_package_from_dist
from axletree.package.conda.model import CondaFile, CondaPackage, RunExports
from axletree.package.conda.names import pin_exact
from axletree.package.conda.platforms import conda_subdir
from axletree.package.conda.requires import CondaTarget, conda_name, convert_requires

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.package.conda.reader import CondaFacts
    from axletree.package.conda.requires import Names
    from axletree.package.split.plan import SplitPart
    from axletree.package.wheel.names import WheelName

_LIBRARY = re.compile(r"(?:^|/)lib[^/]*\.(?:so(?:\.\d+)*|dylib)$")


class CondaPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part as a conda package that is to be written."""

    package: CondaPackage
    files: tuple[CondaFile, ...]
    python: str | None
    """``3.11``: the Python that its compiled files are for; ``None`` for a part that fits several."""
    guessed: tuple[str, ...]
    """Distributions that it requires and the table of names does not have: their own name was taken."""


def plan_conda_parts(parts: Sequence[SplitPart], *, platform: str, names: Names) -> tuple[CondaPart, ...]:
    """Lay out each part as a conda package, those first that others require.

    A part depends on the parts that it requires by version and build string, and constrains those that require it to
    its version. (Their build strings differ between Pythons, and one libtorch serves several.) What has libraries
    exports itself to what is built against it, within its minor version, together with the parts it requires.

    Packages that are for any Python have conda's ``noarch: python`` layout in a subfolder of their platform.

    Args:
        parts: of one wheel.
        platform: platform tag of the wheel that was split.
        names: table of conda names.

    Raises:
        IntegrityError: conda has no such platform, or a part can't become a package.
    """
    subdir = conda_subdir(platform)
    called = {part.name.project: conda_name(part.name.project, names) for part in parts}
    made: dict[str, CondaPart] = {}
    for part in _in_order(parts):
        project, version = part.name.project, part.metadata.version
        required = [made[name].package for name in part.siblings if name in made]
        dependents = [called[each.name.project] for each in parts if project in each.siblings]
        python = _python(part.name)
        package, files = conda_package_from_dist(
            part.members,
            part.metadata,
            part.wheel_info,
            subdir=subdir,
            python=python,
            name=called[project],
            variant={"content": part.identity} | {package.name: package.build for package in required},
            names=names,
            depends=[pin_exact(package) for package in required],
            constrains=[f"{name} =={version.lower().replace('-', '_')}" for name in dependents],
            run_exports=_run_exports(called[project], part, required),
        )
        guessed = convert_requires(part.metadata, CondaTarget(subdir=subdir, python=python), names).guessed
        made[project] = CondaPart(
            package=package,
            files=files,
            python=python,
            guessed=tuple(name for name in guessed if name not in called),
        )
    return tuple(made.values())


def prove_conda_parts(packages: Sequence[CondaFacts]) -> None:
    """Whether packages, as they were read back, hold together and share no path.

    Raises:
        IntegrityError: they don't. Names everything.
    """
    problems = [
        Problem(file=issue.package, key=issue.path, message=issue.detail)
        for issue in (*check_siblings(packages), *clobbers(packages))
    ]
    if problems:
        raise IntegrityError(*problems)


def _run_exports(name: str, part: SplitPart, required: Iterable[CondaPackage]) -> RunExports | None:
    """What is built against a part needs the part, where it has libraries, and whatever those it requires export."""
    weak = [spec for package in required if package.run_exports for spec in package.run_exports.weak]
    if any(_LIBRARY.search(member.path) for member in part.members):
        version = Version(part.metadata.version)
        epoch = f"{version.epoch}!" if version.epoch else ""
        weak.append(f"{name} >={version.public},<{epoch}{version.major}.{version.minor + 1}.0a0")
    return RunExports(weak=tuple(sorted(set(weak)))) if weak else None


def _python(name: WheelName) -> str | None:
    """``3.11`` or ``3.13t``; ``None`` for a part that fits several."""
    found = re.fullmatch(r"cp3(\d+)", name.python)
    if found is None or name.abi in {"none", "abi3"}:
        return None
    return f"3.{found[1]}{'t' if name.abi.endswith('t') else ''}"


def _in_order(parts: Sequence[SplitPart]) -> Iterator[SplitPart]:
    """Parts after those that they require, where that is possible: a pin needs the other's build string."""
    waiting = list(parts)
    while waiting:
        names = {part.name.project for part in waiting}
        ready = next((part for part in waiting if names.isdisjoint(part.siblings)), waiting[0])
        waiting.remove(ready)
        yield ready
