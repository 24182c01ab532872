"""Tests of packages with GPU code: it is for the targets that they are for, for all of them and no other."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._detect import strip_features
from ._families import serves
from ._gpu_code import read_gpu_code
from ._testing import Case, skipped, some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._sdk import SdkPackage
    from ._testing import Bench, Outcome

_NAMED = re.compile(r"(?<![0-9A-Za-z])(gfx[0-9]+[0-9a-f]{2})(?![0-9A-Za-z])")
"""A target in the name of a file: ``Kernels.so-000-gfx90a.hsaco``, ``gfx942.kdb``."""


def gpu_cases(bench: Bench) -> Iterator[Case]:
    """Tests of each package that is for some GPUs."""
    for package, folder in bench.installed.items():
        if package.targets:
            yield Case("gpu", package.dist, "code", partial(_code, bench, package, folder))
            yield Case("gpu", package.dist, "names", partial(_names, package, folder))


def _code(bench: Bench, package: SdkPackage, folder: Path) -> Outcome:
    """What containers of GPU code in its libraries say."""
    found: set[str] = set()
    problems: list[str] = []
    containers = unread = sections = 0
    for library in bench.sdk.shipped(package).libraries:
        path = folder / library.path
        try:
            code = read_gpu_code(path) if path.is_file() else None
        except ValueError as error:
            problems.append(str(error))
            continue
        if code is None:
            continue
        sections, containers, unread = sections + 1, containers + code.containers, unread + code.unread
        found |= code.targets
        other = [target for target in sorted(code.targets) if not _is_for(package.targets, target)]
        if other:
            problems.append(
                f"{library.path} has code for {', '.join(other)}, but the package is for {_list(package.targets)}"
            )
        elif not code.containers:
            problems.append(f"{library.path} has a section for GPU code, but the section contains no code")
    missing = [target for target in package.targets if not any(serves(code, strip_features(target)) for code in found)]
    if sections and not unread and missing:
        problems.append(f"no library has code for {', '.join(missing)}")
    if not problems and (not sections or unread):
        why = f"{unread} of {containers} containers are compressed with zstd, which needs Python 3.14 or later"
        return skipped(why if unread else "the package's libraries contain no readable GPU code")
    return some(problems, bench.again(package.dist))


def _is_for(targets: Iterable[str], code: str) -> bool:
    return any(serves(code, strip_features(target)) or strip_features(code) == target for target in targets)


def _names(package: SdkPackage, folder: Path) -> Outcome:
    """No file is named after a target that the package is not for."""
    problems = []
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            other = sorted({target for target in _NAMED.findall(name) if not _is_for(package.targets, target)})
            if other:
                place = Path(above, name).relative_to(folder)
                problems.append(f"{place} is for {', '.join(other)}, but the package is for {_list(package.targets)}")
    return some(problems, "rebuild the packages: files are in the wrong package")


def _list(targets: Iterable[str]) -> str:
    return ", ".join(targets)
