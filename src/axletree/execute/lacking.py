"""Requirements that an environment does not satisfy."""

from __future__ import annotations

from importlib.metadata import Distribution, MetadataPathFinder
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from axletree.host.venvs import marker_environment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def lacking_requirements(requirements: Iterable[str], venv: Path) -> list[str]:
    """Of some requirements (PEP 508), those that an environment does not satisfy; extras count as not asked for."""
    folders = [str(folder) for folder in venv.glob("lib/python*/site-packages")]
    found: dict[str, Distribution] = {
        canonicalize_name(dist.metadata["Name"]): dist
        for dist in MetadataPathFinder.find_distributions(MetadataPathFinder.Context(path=folders))
    }
    missing: list[str] = []
    wanted = {text: Requirement(text) for text in sorted(requirements)}
    marked = any(requirement.marker is not None for requirement in wanted.values())
    markers = {**marker_environment(venv), "extra": ""} if marked else {}
    for text, requirement in wanted.items():
        if requirement.marker is not None and not requirement.marker.evaluate(markers):
            continue
        dist = found.get(canonicalize_name(requirement.name))
        if dist is None or not requirement.specifier.contains(dist.version, prereleases=True):
            missing.append(text)
    return missing
