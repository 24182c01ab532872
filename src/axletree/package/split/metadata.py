"""Versions, requirements and metadata of the distributions that a wheel is split into."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.package.wheel.metadata import Metadata, parse_requirement, parse_version, with_requirement, with_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.package.split.rules import OutputPackage

_MODULE_VERSION = re.compile(r"^__version__\s*(?::[^=\n]*)?=\s*['\"]([^'\"\n]+)['\"]", re.MULTILINE)
_TRAVELS = frozenset(
    {"metadata-version", "author", "author-email", "maintainer", "maintainer-email", "home-page", "project-url"}
    | {"license", "license-expression", "license-file"}
)
"""Fields of the original that hold for each of its parts."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement of the original and the packages that have it now."""

    requirement: str
    """As it is in the original."""
    given: dict[str, str]
    """Package -> its requirement."""


def split_version(version: str, *, module: str | None, label: str) -> str:
    """The version of the parts: the original's, its local label extended.

    Args:
        version: as the metadata has it, ``2.14.1`` or ``2.13.0+cpu``.
        module: source of the version module. Where the metadata has no local label, that of its ``__version__`` is
            taken, if it is the same version otherwise: ``2.14.1+cu130``.
        label: ``split.1``.
    """
    parsed = Version(version)
    local = parsed.local
    if local is None and module is not None and (found := _MODULE_VERSION.search(module)):
        named = parse_version(found[1]) or parsed
        local = named.local if named.public == parsed.public else None
    return f"{parsed.public}+{f'{local}.' if local else ''}{label}"


def share_requirements(metadata: Metadata, packages: Iterable[OutputPackage], *, main: str) -> tuple[Share, ...]:
    """Who gets each requirement: the packages that take it; what nobody takes stays with ``main``.

    A package may take some extras of a requirement only; those that nobody takes stay with ``main`` too. So does what
    holds for an extra of the original: its extras are there.
    """
    takers = [package for package in packages if package.takes]
    return tuple(Share(requirement=text, given=_given(text, takers, main)) for text in metadata.requires)


def part_metadata(
    original: Metadata,
    package: OutputPackage,
    *,
    main: str,
    version: str,
    siblings: Sequence[str],
    shares: Iterable[Share],
) -> Metadata:
    """Metadata of one part: ``main`` keeps the original's, the others get what holds for them too.

    Args:
        original: of the wheel that is split.
        package: the part.
        main: the package that keeps the original's name.
        version: of all parts.
        siblings: other parts that it requires exactly.
        shares: who has which requirement.
    """
    if package.name == main:
        fields = [field for field in original.fields if field[0].lower() != "requires-dist"]
    else:
        summary = package.summary or f"A part of {original.name}"
        without = {"license-file"} if package.meta else set()  # it holds no files
        fields = [field for field in original.fields if field[0].lower() in _TRAVELS - without]
        fields[1:1] = [("Name", package.name), ("Version", version), ("Summary", summary)]
    kept = [share.given[package.name] for share in shares if package.name in share.given]
    fields += [("Requires-Dist", text) for text in kept]
    description = original.description if package.name == main else ""
    metadata = with_version(Metadata(fields=tuple(fields), description=description), version)
    for sibling in siblings:
        metadata = with_requirement(metadata, f"{sibling}=={version}")
    return metadata


def _given(text: str, takers: Sequence[OutputPackage], main: str) -> dict[str, str]:
    """Package -> a requirement as it has it."""
    requirement = parse_requirement(text)
    if requirement is None:  # it is kept as it is
        return {main: text}
    if re.search(r"\bextra\b", str(requirement.marker or "")):
        return {main: text}
    shares = {package.name: taken for package in takers if (taken := _taken(requirement, package.takes)) is not None}
    rest = requirement.extras.difference(*shares.values())
    if rest or not shares:
        shares[main] = shares.get(main, set()) | rest
    return {name: _with_extras(requirement, text, extras) for name, extras in shares.items()}


def _taken(requirement: Requirement, patterns: Iterable[str]) -> set[str] | None:
    """The extras of a requirement that patterns ask for, ``None`` where they don't mean it."""
    found: set[str] | None = None
    for pattern in patterns:
        name, _, extras = pattern.removesuffix("]").partition("[")
        if not fnmatchcase(canonicalize_name(requirement.name), name):
            continue
        wanted = {extra for extra in requirement.extras if not extras or canonicalize_name(extra) in extras.split(",")}
        if wanted or not extras:
            found = (found or set()) | wanted
    return found


def _with_extras(requirement: Requirement, text: str, extras: set[str]) -> str:
    if extras == requirement.extras:
        return text
    narrowed = Requirement(text)
    narrowed.extras = extras
    return str(narrowed)
