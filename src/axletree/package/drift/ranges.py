"""Sets of versions: PEP 440 specifiers, conda's version specs, tags; compared by packaging's interval algebra.

All sets count pre-releases: whether an installer would take one is no question of drift.
"""

from __future__ import annotations

import re
from typing import Literal

from packaging.ranges import VersionRange
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

Relation = Literal["same", "tighter", "looser", "disjoint"]

ANY = VersionRange.full(admit_arbitrary=False, prereleases=True)
"""Every version."""
NONE = VersionRange.empty(prereleases=True)
"""No version."""
_CONDA_PART = re.compile(r"(?P<operator>>=|<=|==|!=|~=|>|<|=)?\s*(?P<version>[0-9][A-Za-z0-9._!+-]*?)(?P<star>\.?\*)?")
_LETTER = re.compile(r"(?P<release>\d+(?:\.\d+)*)(?P<letter>[a-z])")
_ORDER = {">=": 0, ">": 0, "~=": 0, "==": 1, "===": 1, "!=": 2, "<": 3, "<=": 3}
_STRICT = re.compile(r"(?<![^,])(?:!=(?P<version>[^,]+),(?P<sign><)=(?P=version))(?![^,])")
_INTERVAL = re.compile(r"([\[(])(\S+), (\S+?)([\])])")
_LONGEST = 500


def of_specifiers(text: SpecifierSet | str) -> VersionRange:
    """The versions that a PEP 440 specifier set allows; any where it is empty.

    Raises:
        InvalidSpecifier: it is none, or compares texts (``===``) that are no versions.
    """
    parts = SpecifierSet(text) if isinstance(text, str) else text
    found = ANY
    for part in parts:
        one = f"=={part.version}" if part.operator == "===" else str(part)
        found &= SpecifierSet(one, prereleases=True).to_range() & ANY
    return found


def of_conda(text: str) -> VersionRange:
    """The versions that a conda version spec allows (CEP 29): ``>=1,<2.0a0``, ``2.30.*``, ``=2.30``, ``1.1|1.2.*``.

    Bounds mean what PEP 440's do. Conda's ``<2`` is also met by pre-releases of 2, for which reason recipes write
    ``<2.0a0``; either is taken as upstream's ``<2``, since that is what they are written for.

    Raises:
        ValueError: it is none, or one that can't be read with certainty: regular expressions, parentheses, versions
            that have no counterpart in PEP 440.
    """
    if len(text) > _LONGEST:
        raise ValueError("the version spec is longer than 500 characters")
    found = NONE
    for choice in text.split("|"):
        one = ANY
        for part in choice.split(","):
            one &= _of_conda_part(part.strip())
        found |= one
    return found


def _of_conda_part(part: str) -> VersionRange:
    if part in {"", "*"}:
        return ANY
    match = _CONDA_PART.fullmatch(part)
    if match is None:
        raise ValueError(f"cannot read the version spec {part!r}")
    version, operator = conda_version(match["version"]), match["operator"] or "=="
    if operator == "=" or (match["star"] and operator in {"==", "!="}):
        release = ".".join(map(str, version.release))
        epoch = f"{version.epoch}!" if version.epoch else ""
        whole = of_specifiers(f"=={epoch}{release}.*")
        return ANY - whole if operator == "!=" else whole
    if operator == "~=":
        return of_specifiers(f"~={version}")
    if operator in {"==", "!="}:
        exact = of_specifiers(f"=={version}")
        return ANY - exact if operator == "!=" else exact
    if operator == "<" and version.pre == ("a", 0):
        return of_specifiers(f"<{version.base_version}")
    return of_specifiers(f"{operator}{version.public}")


def conda_version(text: str) -> Version:
    """A version of a conda package as PEP 440 has it; OpenSSL's ``1.1.1w`` counts its letter as a number.

    Raises:
        ValueError: it has no counterpart there.
    """
    letter = _LETTER.fullmatch(text)
    if letter is not None and letter["letter"] not in {"a", "b", "c"}:
        return Version(f"{letter['release']}.{ord(letter['letter']) - ord('a') + 1}")
    try:
        return Version(text.replace("_", "-"))
    except InvalidVersion as error:
        raise ValueError(f"version {text!r} has no PEP 440 equivalent") from error


def exactly(version: Version | str) -> VersionRange:
    """A version, with any local label."""
    return of_specifiers(f"=={version}")


def between(lower: Version | None, upper: Version | None, *, include_upper: bool = True) -> VersionRange:
    """All versions between two in plain order."""
    return VersionRange.from_bounds(lower, upper, include_upper=include_upper, prereleases=True)


def relate(one: VersionRange, other: VersionRange) -> Relation:
    """What the first set is to the second. One that overlaps allows more than it should, so it is looser."""
    if one.is_subset(other):
        return "same" if other.is_subset(one) else "tighter"
    return "disjoint" if one.is_disjoint(other) else "looser"


def is_above(one: VersionRange, version: Version) -> bool:
    """Whether all of a set are later than a version."""
    return one.is_disjoint(between(None, version))


def in_order(specifiers: SpecifierSet) -> str:
    """Specifiers as people write them, the lower bound first; ``*`` where any version will do."""
    parts = sorted(specifiers, key=lambda one: (_ORDER[one.operator], one.version))
    return ",".join(map(str, parts)) or "*"


def describe(found: VersionRange) -> str:
    """A set in a few words: specifiers where it has such a form, else its bounds."""
    if found.is_empty or ANY.is_subset(found):
        return "nothing" if found.is_empty else "any version"
    specifiers = found.to_specifier_set()
    if specifiers is not None:
        # PEP 440's `<V` leaves out pre-releases of V, so a set with those is no such specifier; to people it is.
        return _STRICT.sub(r"\g<sign>\g<version>", in_order(specifiers))
    shown = repr(found).partition("'")[2].partition("'")[0]
    return " or ".join(_INTERVAL.sub(_bounds, interval) for interval in shown.split(" | "))


def _bounds(interval: re.Match[str]) -> str:
    """``[1.0, 2.dev0)`` as ``>=1.0,<2``."""
    opened, low, high, closed = interval.groups()
    parts = ["" if low == "-inf" else f">{'=' * (opened == '[')}{_at(low)}"]
    parts.append("" if high == "+inf" else f"<{'=' * (closed == ']')}{_at(high)}")
    return ",".join(filter(None, parts))


def _at(bound: str) -> str:
    return bound.partition("[")[0].removesuffix(".dev0")


def of_own(own: str) -> VersionRange | None:
    """What :func:`~axletree.package.drift.names.own_version` gives, as versions: one, a beginning, or a bound."""
    return parse_specifiers(own if own[0] in "<>=!~" else f"=={own}")


def parse_specifiers(text: str) -> VersionRange | None:
    """As :func:`of_specifiers`; ``None`` for what is no specifier set."""
    try:
        return of_specifiers(text)
    except InvalidSpecifier:
        return None
