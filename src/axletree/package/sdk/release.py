"""What must hold of all packages of an SDK together before anybody can install them: names, pins, flavours, order."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.core.errors import IntegrityError, Problem, PublishError
from axletree.package.index import distribution_of
from axletree.package.sdk.versions import order_faults
from axletree.package.wheel.metadata import parse_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.package.wheel.metadata import Metadata

Flavour = Literal["wheel", "sdist"]


def distributions_of(filenames: Iterable[str]) -> dict[str, set[str]]:
    """Distributions that files are of -> their versions. Files that are named as no wheel or sdist are passed over."""
    found: dict[str, set[str]] = defaultdict(set)
    for filename in filenames:
        if not filename.endswith((".whl", ".tar.gz")):
            continue
        try:
            name, version = distribution_of(filename)
        except IntegrityError:
            continue
        found[name].add(version)
    return dict(found)


def check_pins(wheels: Iterable[Metadata], there: Mapping[str, Iterable[str]]) -> None:
    """Each pinned requirement of some wheels can be met, by them or by what is there.

    A requirement without a pin may be met by any other index, so it is not looked at.

    Args:
        wheels: their METADATA.
        there: distribution -> versions.

    Raises:
        IntegrityError: what is required does not exist; names all of it.
    """
    wheels = list(wheels)
    known = {(canonicalize_name(name), Version(version)) for name, versions in there.items() for version in versions}
    known |= {(canonicalize_name(each.name), Version(each.version)) for each in wheels}
    problems = [
        Problem(
            key=f"{each.name} {each.version}",
            message=f"the wheel requires {text}, but this release does not contain it",
        )
        for each in wheels
        for text in dict.fromkeys(_unmet(each.requires, known))
    ]
    if problems:
        raise IntegrityError(*problems)


def _unmet(requires: Iterable[str], known: Iterable[tuple[str, Version]]) -> Iterator[str]:
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            yield f"{text!r} (not a valid requirement: PEP 508)"
            continue
        pins = [each.version for each in requirement.specifier if each.operator == "=="]
        pinned = any(parse_version(pin) is not None for pin in pins)
        name = canonicalize_name(requirement.name)
        met = any(has == name and requirement.specifier.contains(version, prereleases=True) for has, version in known)
        if pinned and not met:
            yield f"{requirement.name}{requirement.specifier}"


def check_flavour(dist: str, version: str, flavour: Flavour, filenames: Iterable[str], *, root: str) -> None:
    """A root does not hold the selector of a version in the other flavour: clients would take either.

    Args:
        dist: the selector.
        version: of it.
        flavour: that is to be put there.
        filenames: what the root holds.
        root: the root, as errors call it.

    Raises:
        PublishError: it does.
    """
    for filename in filenames:
        if not filename.endswith(".tar.gz" if flavour == "wheel" else ".whl"):
            continue
        try:
            name, has = distribution_of(filename)
        except IntegrityError:
            continue
        if name == canonicalize_name(dist) and Version(has) == Version(version):
            other = "an sdist" if flavour == "wheel" else "a wheel"
            message = (
                f"{root} already contains the selector for {version} as {other}; an index cannot contain it both ways"
            )
            hint = "choose a different --out or --version, or use --selector both, which writes two indexes"
            raise PublishError(Problem(file=filename, message=message, hint=hint))


def order_notes(there: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Versions of a distribution in one root that pip orders in another way than they were meant."""
    for name, versions in sorted(there.items()):
        for fault in order_faults(sorted(versions)):
            yield f"{name}: pip considers {fault.older} newer than {fault.newer}: {fault.why}"
