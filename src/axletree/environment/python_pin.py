"""The Python of a conda environment: what its match specs pin, as a recipe's ``python`` says it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.recipe.match_spec import MatchSpec

_EXACT = re.compile(r"(?:==)?(?P<minor>3\.\d+)(?P<rest>(?:\.[^\s,|]+)?)")
_KNOWN = tuple(f"3.{minor}" for minor in range(15, 6, -1))
"""Candidates for a range, the newest first."""
_LATEST_PATCH = 99


class PythonPin(msgspec.Struct, frozen=True, kw_only=True):
    """The Python of an environment."""

    python: str
    """``3.11``, or ``3.13t`` without a GIL."""
    keeps: bool = True
    """Whether the specs of ``python`` say more than that and must stay."""
    why: str = ""
    """Why this one, if the specs allow others; empty if they name it."""


def python_pin(pythons: Sequence[MatchSpec], free_threaded: Sequence[MatchSpec], *, own: str) -> PythonPin:
    """The Python that match specs ask for.

    Args:
        pythons: specs of ``python``.
        free_threaded: specs of ``python-freethreading``.
        own: the Python of Axletree, which is used if the specs permit it, or name none.
    """
    specs = [*pythons, *free_threaded]
    versions = [spec.version for spec in specs if spec.version != "*"]
    pin = PythonPin(python=own, keeps=False, why="the Python of Axletree, because the file names none")
    if versions:
        pin = _of_version(versions[0], own)
    builds = [spec.build for spec in specs if spec.build]
    free = bool(free_threaded) or any("cp3" in build and build.rstrip("*").endswith("t") for build in builds)
    plain = len(versions) <= 1 and not builds and not any(spec.channel or spec.more for spec in specs)
    return msgspec.structs.replace(pin, python=pin.python + ("t" if free else ""), keeps=pin.keeps or not plain)


def _of_version(version: str, own: str) -> PythonPin:
    exact = _EXACT.fullmatch(version)
    if exact is not None:
        return PythonPin(python=exact["minor"], keeps=version != f"{exact['minor']}.*")
    fitting = [each for each in (own, *_KNOWN) if _allows(version, each)]
    if not fitting:
        return PythonPin(python=own, why=f"the Python of Axletree, because no known version matches {version}")
    return PythonPin(python=fitting[0], why=f"one of the versions that match {version}")


def _allows(version: str, minor: str) -> bool:
    """Whether a version spec permits some release of a minor version."""
    return any(
        _contains(each, f"{minor}.{patch}") for each in version.strip("()").split("|") for patch in (0, _LATEST_PATCH)
    )


def _contains(version: str, release: str) -> bool:
    parts = [part.strip() for part in version.split(",")]
    words = [f"=={part}" if part[:1].isdigit() else part for part in parts if part not in ("", "*")]
    try:
        return SpecifierSet(",".join(words)).contains(release)
    except InvalidSpecifier:
        return False
