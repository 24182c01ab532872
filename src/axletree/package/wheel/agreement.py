"""Whether what was built is what the recipe calls it: name, version, Pythons and requirements.

A recipe may add to what was built: a local version label, requirements, Pythons where the project names none. It must
not replace in silence what the project says of itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.core.setting import LOCK
from axletree.package.drift.ranges import of_specifiers, relate
from axletree.package.wheel.metadata import parse_requirement, parse_version, same_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement

    from axletree.core.stated import Wanted
    from axletree.package.wheel.metadata import Metadata

_NO_RELEASE = frozenset({"0", "0.0", "0.0.0"})


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """What a recipe says otherwise than what was built."""

    key: Literal["name", "version", "local", "requires-python", "requires"]
    """Of the recipe: ``version`` of the whole, the others of the package."""
    recipe: str
    """What it says."""
    built: str
    """What was built, as its metadata has it: ``Version: 0.3``."""
    hint: str


def disagreements(wanted: Wanted, built: Metadata) -> tuple[Disagreement, ...]:
    """Everything in which a recipe and the metadata of what was built disagree."""
    if wanted.relabel:
        return ()
    return (
        *said_otherwise(wanted, name=built.name, version=built.version),
        *_pythons(wanted, built),
        *_requirements(wanted, built),
    )


def said_otherwise(wanted: Wanted, *, name: str | None, version: str | None) -> tuple[Disagreement, ...]:
    """As :func:`disagreements`, of a name and a version that are known beforehand; ``None`` where they are not."""
    if wanted.relabel:
        return ()
    return (
        *(_names(wanted, name) if name is not None else ()),
        *(_versions(wanted, version) if version is not None else ()),
    )


def _relabel(wanted: Wanted) -> str:
    return f"packages.{wanted.name}.relabel = true"


def _names(wanted: Wanted, built: str) -> Iterator[Disagreement]:
    if wanted.siblings is None:
        return
    if canonicalize_name(built) in {canonicalize_name(name) for name in (wanted.name, *wanted.siblings)}:
        return
    hint = f"name the package [packages.{canonicalize_name(built)}], or let Axletree rename it: {_relabel(wanted)}"
    if built.lower() == "unknown":
        hint = (
            "setuptools uses this name when it finds no other: versions before 61 do not read pyproject.toml; require "
            f"setuptools>=61 in the environment, and run `{LOCK}`"
        )
    yield Disagreement(key="name", recipe=wanted.name, built=f"Name: {built}", hint=hint)


def _versions(wanted: Wanted, built: str) -> Iterator[Disagreement]:
    other = parse_version(built)
    mine = Version(wanted.version)
    known = [mine, *([Version(wanted.source_version)] if wanted.source_version is not None else [])]
    if other is None or Version(other.public) not in {Version(version.public) for version in known}:
        said = mine.public if wanted.source_version is None else f"{mine.public} (`version`: {wanted.source_version})"
        hint = f"correct `version`, or use the recipe's: {_relabel(wanted)}"
        yield Disagreement(
            key="version", recipe=said, built=f"Version: {built}", hint=_without_git(other, wanted) or hint
        )
    elif wanted.labels and other.local is not None and mine.local is None:
        hint = (
            f'to keep the label, set packages.{wanted.name}.local = "{other.local}"; to drop it, set {_relabel(wanted)}'
        )
        yield Disagreement(key="local", recipe=f"{mine}, without a label", built=f"Version: {built}", hint=hint)


def _without_git(built: Version | None, wanted: Wanted) -> str | None:
    """The hint for versions that tools make up where there is no history to read one from."""
    if built is None or built.base_version == Version(wanted.version).base_version:
        return None
    made_up = built.base_version in _NO_RELEASE or (built.base_version == "0.1" and built.is_devrelease)
    if not made_up and "unknown" not in (built.local or ""):
        return None
    return (
        "tools such as setuptools-scm derive it from git history, which a stage does not have; set it: env = { "
        'SETUPTOOLS_SCM_PRETEND_VERSION = "{version}" } in the stage that builds it'
    )


def _pythons(wanted: Wanted, built: Metadata) -> Iterator[Disagreement]:
    given, there = wanted.requires_python, built.get("Requires-Python")
    if given is None or not there:
        return
    try:
        same = SpecifierSet(given) == SpecifierSet(there)
    except InvalidSpecifier:
        same = given == there
    if not same:
        hint = f"remove `requires-python`, or let Axletree replace it: {_relabel(wanted)}"
        yield Disagreement(key="requires-python", recipe=given, built=f"Requires-Python: {there}", hint=hint)


def _requirements(wanted: Wanted, built: Metadata) -> Iterator[Disagreement]:
    """Requirements that would take the place of one of the project, and allow what that does not."""
    there = [(text, requirement) for text in built.requires if (requirement := parse_requirement(text)) is not None]
    for text in wanted.requires:
        mine = parse_requirement(text)
        if mine is None:
            continue
        for other, requirement in there:
            if same_place(requirement, mine) and not _within(mine, requirement):
                hint = f"require a subset of what the project allows, or let Axletree replace it: {_relabel(wanted)}"
                yield Disagreement(key="requires", recipe=text, built=f"Requires-Dist: {other}", hint=hint)


def _within(mine: Requirement, other: Requirement) -> bool:
    """Whether one requirement allows nothing that the other does not."""
    if not mine.extras >= other.extras or (other.url is not None and mine.url != other.url):
        return False
    if mine.url is not None:
        return True
    try:
        relation = relate(of_specifiers(mine.specifier), of_specifiers(other.specifier))
    except InvalidSpecifier:
        return str(mine.specifier) == str(other.specifier)
    return relation in {"same", "tighter"}
