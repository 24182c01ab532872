"""Which files of ours one installation needs: those that are asked for, and what they require that is ours as well.

An installer takes what a command does not name from wherever it finds it. So a command that must not install anybody
else's file names each of ours: also dependencies, and what extras bring.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from axletree.package.wheel.metadata import parse_requirement
from axletree.package.wheel.names import WheelName, parse_wheel_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from packaging.markers import Marker
    from packaging.requirements import Requirement

_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 18))
"""Those for which a marker is tried where a wheel is for any."""
_INTERPRETER = re.compile(r"cp3(\d+)")
_FLOOR = re.compile(r"(many|musl)linux_(\d+)_(\d+)_(\w+)")
_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_NO_FLOOR = (99, 0)


class OwnWheel(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel that Axletree wrote."""

    filename: str
    url: str
    requires: tuple[str, ...] = ()
    """``Requires-Dist`` of its metadata."""
    requires_python: str | None = None


class Closure(msgspec.Struct, frozen=True, kw_only=True):
    """Wheels that one environment can hold, and that need no other of ours."""

    target: str
    """For what, if there are closures for several: ``Python 3.11``, ``Python 3.13t, aarch64``."""
    files: tuple[tuple[OwnWheel, tuple[str, ...]], ...]
    """Each with the extras that it is asked for; what was asked for comes first."""


class _Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where something is installed; empty: anywhere."""

    python: str = ""
    """``3.11``, ``3.13t``."""
    platform: str = ""
    """Machine and C library: ``x86_64``, ``aarch64 (musl)``."""

    def __str__(self) -> str:
        return ", ".join(part for part in (f"Python {self.python}" if self.python else "", self.platform) if part)


def closures(
    asked: Sequence[OwnWheel],
    find: Callable[[str], Iterable[OwnWheel]],
    *,
    extras: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Closure, ...]:
    """What must be installed together, once for each Python and platform that the wheels are for.

    Args:
        asked: wheels of different distributions.
        find: normalised name of a distribution -> our wheels of it.
        extras: normalised name -> extras that are asked for.
    """
    given: dict[str, tuple[str, ...]] = {
        canonicalize_name(name): tuple(found) for name, found in (extras or {}).items()
    }
    reached = [offer for offer, _ in _walk(asked, find, given, None)]
    pythons = _particular(asked, reached, _pythons)
    platforms = _particular(asked, reached, _platforms)
    targets = [_Target(python=python, platform=platform) for python in pythons for platform in platforms]
    found: dict[tuple[tuple[OwnWheel, tuple[str, ...]], ...], str] = {}
    for target in targets:
        found.setdefault(_walk(asked, find, given, target), str(target))
    return tuple(Closure(target=target, files=files) for files, target in found.items())


def _particular(
    asked: Iterable[OwnWheel], reached: Iterable[OwnWheel], kinds: Callable[[WheelName], frozenset[str]]
) -> list[str]:
    """The Pythons or platforms that tell wheels apart: those that all that was asked for is for, else all."""
    own = [found for offer in asked if (found := kinds(parse_wheel_name(offer.filename)))]
    if own:
        return sorted(frozenset.intersection(*own), key=_natural) or [""]
    return sorted({kind for offer in reached for kind in kinds(parse_wheel_name(offer.filename))}, key=_natural) or [""]


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def _walk(
    asked: Sequence[OwnWheel],
    find: Callable[[str], Iterable[OwnWheel]],
    extras: Mapping[str, tuple[str, ...]],
    target: _Target | None,
) -> tuple[tuple[OwnWheel, tuple[str, ...]], ...]:
    """What is asked for, and what of ours it requires; without a target all that may be required anywhere."""
    chosen: dict[str, list[OwnWheel]] = {}
    wanted: dict[str, dict[str, None]] = {name: dict.fromkeys(found) for name, found in extras.items()}
    for offer in asked:
        chosen.setdefault(parse_wheel_name(offer.filename).project, []).append(offer)
    waiting = list(chosen)
    while waiting:
        name = waiting.pop(0)
        for requirement in _requirements(chosen[name], wanted.get(name, {}), target):
            other = canonicalize_name(requirement.name)
            known = wanted.setdefault(other, {})
            before = len(known)
            known.update(dict.fromkeys(map(canonicalize_name, sorted(requirement.extras))))
            fresh = other not in chosen
            if fresh:
                chosen[other] = _fitting(find(other), requirement, target)
            if fresh or len(known) > before:
                waiting.append(other)
    return tuple((offer, tuple(wanted.get(name, ()))) for name, offers in chosen.items() for offer in offers)


def _requirements(offers: Iterable[OwnWheel], extras: Collection[str], target: _Target | None) -> Iterator[Requirement]:
    for offer in offers:
        for text in offer.requires:
            requirement = parse_requirement(text)
            if requirement is not None and requirement.url is None and _may_hold(requirement.marker, extras, target):
                yield requirement


def _may_hold(marker: Marker | None, extras: Collection[str], target: _Target | None) -> bool:
    """Whether a marker can be true; what is not known of the target is tried."""
    if marker is None:
        return True
    pythons = (target.python.rstrip("t"),) if target is not None and target.python else _PYTHONS
    machine = target.platform.partition(" ")[0] if target is not None else ""
    try:
        return any(
            marker.evaluate(_environment(python, machine) | {"extra": extra})
            for python in pythons
            for extra in ("", *extras)
        )
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
        return True


def _environment(python: str, machine: str) -> dict[str, str]:
    """Marker variables of a target."""
    return {
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": machine or "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_version": f"{python}.0",
        "platform_release": "",
        "platform_version": "",
    }


def _fitting(offers: Iterable[OwnWheel], requirement: Requirement, target: _Target | None) -> list[OwnWheel]:
    """The wheel that an installer would take, if it knew ours only; without a target each that it might take."""
    fits: list[tuple[OwnWheel, WheelName]] = []
    for offer in offers:
        name = parse_wheel_name(offer.filename)
        allowed = requirement.specifier.contains(Version(name.version), prereleases=True)
        if allowed and not name.variant and _fits(offer, name, target):
            fits.append((offer, name))
    if target is None:
        return [offer for offer, _ in fits]
    return [max(fits, key=lambda each: _preference(each[1]))[0]] if fits else []


def _fits(offer: OwnWheel, name: WheelName, target: _Target | None) -> bool:
    if target is None:
        return True
    pythons, platforms = _pythons(name), _platforms(name)
    if target.python and offer.requires_python:
        wanted = SpecifierSet(offer.requires_python)
        if not wanted.contains(Version(target.python.rstrip("t")), prereleases=True):
            return False
    return (not pythons or target.python in pythons) and (not platforms or target.platform in platforms)


def _preference(name: WheelName) -> tuple[Version, int, str, int, int, str]:
    """As pip orders the wheels of a distribution; of two for one machine that which fits older systems."""
    build = re.match(r"(\d+)(.*)", name.build)
    number, rest = (int(build[1]), build[2]) if build else (-1, "")
    major, minor = min(map(_floor, name.platform.split(".")))
    return Version(name.version), number, rest, -major, -minor, name.platform


def _floor(platform: str) -> tuple[int, int]:
    """The C library that a platform tag asks for."""
    found = _FLOOR.fullmatch(platform)
    if found:
        return int(found[2]), int(found[3])
    return next((floor for tag, floor in _LEGACY.items() if platform.startswith(f"{tag}_")), _NO_FLOOR)


def _pythons(name: WheelName) -> frozenset[str]:
    """The Pythons that a wheel is for alone; empty where it is for those to come too (``py3``, ``abi3``)."""
    found: set[str] = set()
    for tag in name.tags:
        interpreter, abi, _ = tag.split("-", 2)
        match = _INTERPRETER.fullmatch(interpreter)
        if match is None or abi.startswith("abi3"):
            return frozenset()
        found.add(f"3.{match[1]}{'t' if abi.endswith('t') else ''}")
    return frozenset(found)


def _platforms(name: WheelName) -> frozenset[str]:
    """Machine and C library that a wheel is for; empty: any."""
    found: set[str] = set()
    for platform in name.platform.split("."):
        if platform == "any":
            return frozenset()
        match = re.fullmatch(r"(?:many|musl)?linux(?:1|2010|2014|_\d+_\d+)?_(\w+)", platform)
        machine = match[1] if match else platform
        found.add(f"{machine} (musl)" if platform.startswith("musl") else machine)
    return frozenset(found)
