"""File names, and what stands in build strings and exact pins (conda-build's conventions)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from axletree.package.conda.model import CondaPackage


def python_tag(python: str) -> str:
    """``3.11`` as build strings have it: ``py311``; ``3.13t`` is ``py313t``."""
    return f"py{python.replace('.', '')}"


def pin_exact(package: CondaPackage) -> str:
    """The dependency that only this very package meets: name, version and build string."""
    return f"{package.name} {package.version} {package.build}"


_STEM = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)-(?P<build>[^-]+)")


def parse_conda_name(filename: str) -> tuple[str, str, str]:
    """(name, version, build) of a file name.

    Raises:
        IntegrityError: it is no name of a conda package.
    """
    for extension in (".conda", ".tar.bz2"):
        found = _STEM.fullmatch(filename.removesuffix(extension)) if filename.endswith(extension) else None
        if found is not None:
            return found["name"], found["version"], found["build"]
    hint = "name it NAME-VERSION-BUILD.conda or NAME-VERSION-BUILD.tar.bz2"
    raise IntegrityError(Problem(file=filename, message="the file name is not valid for a conda package", hint=hint))
