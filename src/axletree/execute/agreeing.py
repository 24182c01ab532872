"""Refusing what was built, or will be, where it is something else than the recipe says: as early as that is sure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from build import BuildBackendException

from axletree.core.errors import AxletreeError, ExpectationError, Problem
from axletree.core.stated import Expected, Stated, Wanted
from axletree.package.wheel.agreement import said_otherwise
from axletree.package.wheel.metadata import parse_metadata, parse_version
from axletree.package.wheel.names import parse_wheel_name
from axletree.recipe.toml import table_of, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from build import ProjectBuilder

    from axletree.buildsystem.era import Era
    from axletree.execute.context import Context
    from axletree.package.wheel.agreement import Disagreement
    from axletree.plan.actions.packages import Described

_LARGEST = 16 << 20


class _Evidence(msgspec.Struct, frozen=True, kw_only=True):
    origin: str
    name: str | None = None
    version: str | None = None


def refuse(found: Iterable[Disagreement], stated: Stated, origin: str) -> None:
    """Raise what a recipe and what was built disagree in.

    Raises:
        ExpectationError: there is something.
    """
    problems = [
        msgspec.structs.replace(
            stated.places.get(each.key, Problem(message="", key=each.key)),
            message=f"the recipe sets {each.recipe}, but {origin} reports {each.built}",
            hint=each.hint,
        )
        for each in found
    ]
    if problems:
        raise ExpectationError(*problems)


def wanted_of(package: Described, *, version: str, siblings: tuple[str, ...] | None, labels: bool) -> Wanted:
    """What a recipe says of a package, from the parameters of the step that packs it."""
    return Wanted(
        name=package.name,
        version=version,
        source_version=package.source_version,
        siblings=siblings,
        labels=labels,
        requires_python=package.requires_python,
        requires=package.requires,
        relabel=package.relabel,
    )


def check_wheel_name(context: Context, filename: str) -> None:
    """Refuse a source that is a wheel of something else than the recipe says.

    Raises:
        ExpectationError: it is.
        IntegrityError: the file is not named as a wheel.
    """
    name = parse_wheel_name(filename)
    _refuse(context.request.local.expected, _Evidence(origin=filename, name=name.project, version=name.version))


def check_source(context: Context, source: Path, era: Era, env: Mapping[str, str]) -> bool:
    """Refuse a source tree that says by itself, without running anything, that it is something else.

    ``pyproject.toml`` is the project's word where it is not dynamic. PKG-INFO is of the time when the sdist was made:
    it is believed where it says what the recipe does, the rest is asked of the backend.

    Returns:
        Whether nothing is left to ask.

    Raises:
        ExpectationError: it is something else.
    """
    expected = context.request.local.expected
    if era.pytorch:
        _check_pytorch(expected, source, env)
        return True  # its setup.py compiles where it is asked for metadata
    if check_project(expected, _text(source / "pyproject.toml")) or not expected:
        return True
    try:
        info = parse_metadata(_text(source / "PKG-INFO").encode(), file="PKG-INFO")
    except AxletreeError:
        return False
    return not any(said_otherwise(each.wanted, name=info.name, version=info.version) for each in expected)


def check_project(expected: Iterable[Expected], text: str) -> bool:
    """Refuse a ``pyproject.toml`` whose static name or version is another than the recipe's.

    Returns:
        Whether it says both.

    Raises:
        ExpectationError: it is something else.
    """
    project = table_of(tables_of(text), "project")
    name, version = project.get("name"), project.get("version")
    known = _Evidence(
        origin="the source's pyproject.toml",
        name=name if isinstance(name, str) else None,
        version=version if isinstance(version, str) else None,
    )
    _refuse(expected, known)
    return known.name is not None and known.version is not None


def ask_backend(context: Context, builder: ProjectBuilder, config: Mapping[str, Any]) -> None:
    """Refuse what a backend says that it will build, before it does; one that can't say so builds first.

    Raises:
        ExpectationError: it is something else than the recipe says.
    """
    context.progress("asking the build backend for its metadata")
    folder = context.work / "metadata"
    folder.mkdir()
    try:
        path = builder.prepare("wheel", folder, dict(config))
        info = None if path is None else parse_metadata(_text(folder / path / "METADATA").encode())
    except (BuildBackendException, AxletreeError) as error:
        context.log.say(f"the build backend cannot report its metadata before the build: {error}")
        return
    if info is not None:
        _refuse(
            context.request.local.expected, _Evidence(origin="its build backend", name=info.name, version=info.version)
        )


def _check_pytorch(expected: tuple[Expected, ...], source: Path, env: Mapping[str, str]) -> None:
    """Of PyTorch's version there are two sources; which of them counts, a distribution's patch may have changed."""
    told = env.get("PYTORCH_BUILD_VERSION")
    texts = {"PYTORCH_BUILD_VERSION": told, "the source's version.txt": _text(source / "version.txt").strip()}
    found = [
        _Evidence(origin=origin, version=text)
        for origin, text in texts.items()
        if text and parse_version(text) is not None
    ]
    number = env.get("PYTORCH_BUILD_NUMBER", "")
    if told and number.isdecimal() and int(number) > 1:
        post = _Evidence(origin="PYTORCH_BUILD_VERSION with PYTORCH_BUILD_NUMBER", version=f"{told}.post{number}")
        found = [post, *found] if parse_version(f"{told}.post{number}") is not None else found
    for each in expected:
        versions = [(evidence, _version_only(each.wanted, evidence)) for evidence in found]
        if versions and all(disagreements for _, disagreements in versions):
            refuse(versions[0][1], each.stated, versions[0][0].origin)


def _version_only(wanted: Wanted, evidence: _Evidence) -> tuple[Disagreement, ...]:
    return tuple(each for each in said_otherwise(wanted, name=None, version=evidence.version) if each.key == "version")


def _refuse(expected: Iterable[Expected], evidence: _Evidence) -> None:
    for each in expected:
        found = said_otherwise(each.wanted, name=evidence.name, version=evidence.version)
        refuse(found, each.stated, evidence.origin)


def _text(path: Path) -> str:
    """Text of a file of a stranger's tree; empty where there is none that can be read."""
    try:
        if path.is_symlink() or path.stat().st_size > _LARGEST:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
