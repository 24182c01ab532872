"""What is known before a build starts to stop it: sources that it would download, programs that are too old."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from axletree.core.errors import HostError
from axletree.core.units import some_of
from axletree.host.run import output_of
from axletree.host.tools import find_programs
from axletree.package.wheel.metadata import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.host.project_source import ProjectSource
    from axletree.package.project.model import Asked, Found, Project

_SECONDS = 20
_VERSION = re.compile(r"\d+(?:\.\d+)+")


def refuse_downloads(project: Project, source: ProjectSource, environ: Mapping[str, str]) -> None:
    """Say what a project's source lacks, and its build would download, before anything is built of it.

    Raises:
        HostError: something is missing.
    """
    name = project.name.value
    if project.crates == "fetched":
        vendor = "mkdir -p .cargo && cargo vendor > .cargo/config.toml"
        raise HostError(
            f"{name} is written in Rust, but its crates are not in its source, and stages have no network",
            hint=_hint(source, f"run `{vendor}`"),
        )
    path = environ.get("PATH", "")
    subprojects = [each for each in project.downloads if each.why and not _has_module(each.value, path)]
    if subprojects:
        raise HostError(
            f"meson downloads {_places(subprojects)} when it configures {name}, and stages have no network",
            hint=_hint(source, "run `meson subprojects download`"),
        )
    sources = [each for each in project.downloads if not each.why]
    if sources:
        variables = some_of([f"FETCHCONTENT_SOURCE_DIR_{each.value.upper()}" for each in sources], 2)
        step = (
            f"add what CMake downloads and set {variables} to its path under tool.scikit-build.cmake.define "
            "in pyproject.toml"
        )
        raise HostError(
            f"CMake downloads {_places(sources)} when it configures {name}, and stages have no network",
            hint=_hint(source, step),
        )


def _places(found: Iterable[Found]) -> str:
    return some_of([f"{each.value} ({each.place})" for each in found], 3)


def _hint(source: ProjectSource, step: str) -> str:
    """What to do in a folder, which an sdist or an archive has to become first."""
    if source.keys[0][0] == "path":
        return f"in the source folder, {step}; then run this command again"
    return (
        f'unpack the source; in its folder, {step}; then run `axletree init FOLDER`, which sets source.path = "FOLDER"'
    )


def _has_module(name: str, path: str) -> bool:
    """Whether pkg-config knows a library of this host."""
    found = find_programs(("pkg-config",), path).get("pkg-config")
    return found is not None and bool(
        output_of([found, "--modversion", name], environ={"PATH": path}, seconds=_SECONDS)
    )


def recent_programs(names: Iterable[str], project: Project, path: str) -> frozenset[str]:
    """Which of some programs this host has in a version that the project's build takes.

    Args:
        names: The programs.
        project: What is known of the project.
        path: Where they are looked for.
    """
    found = find_programs(tuple(names), path)
    old = {asked.program for asked in project.asked if asked.program in found and not _is_recent(asked, found, path)}
    return frozenset(found.keys() - old)


def _is_recent(requirement: Asked, found: Mapping[str, str], path: str) -> bool:
    parsed = parse_requirement(requirement.requirement)
    wanted = parsed.specifier if parsed is not None else SpecifierSet()
    if not wanted:
        return True
    said = _VERSION.search(
        output_of([found[requirement.program], "--version"], environ={"PATH": path}, seconds=_SECONDS)
    )
    return said is None or wanted.contains(said[0], prereleases=True)
