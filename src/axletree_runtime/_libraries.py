"""Where the SDK's shared libraries lie: by short name, in the package that serves this host's GPUs."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ._families import Choice, choose, serves_all, wanted_here

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ._sdk import Library, Sdk, SdkPackage


@dataclass(frozen=True)
class Found:
    """A library that an installed package ships."""

    library: Library
    package: SdkPackage
    path: Path


class Libraries:
    """The libraries of installed packages: those that any GPU uses, and with GPU code those of the chosen packages.

    Packages with GPU code are looked at, and GPUs looked for, only when a library is asked for that no other has.
    """

    def __init__(self, sdk: Sdk, fixed: dict[str, SdkPackage] | None = None) -> None:
        """Read what is installed.

        Args:
            sdk: the SDK.
            fixed: name of a package in the manifest -> the package with its GPU code that is in use already.
        """
        self.sdk = sdk
        self._fixed = fixed or {}
        self._names: dict[str, Found] = {}
        self._sonames: dict[str, Found] = {}
        self._installed = sdk.installed()
        self._add(package for package in self._installed if not package.targets)

    @cached_property
    def choices(self) -> dict[str, Choice]:
        """Name of a package in the manifest -> which of its installed packages with GPU code is used, and why."""
        return {
            name: Choice(self._fixed[name], (f"{self._fixed[name].dist}: already in use",))
            if name in self._fixed
            else _choose_installed(self.sdk, packages)
            for name, packages in with_gpu_code(self._installed).items()
        }

    def by_name(self, name: str) -> Found | None:
        """A library by its short name, whatever its case."""
        if name not in self._names and not any(known.lower() == name.lower() for known in self._names):
            self._add_chosen()
        if name in self._names:
            return self._names[name]
        return next((found for known, found in self._names.items() if known.lower() == name.lower()), None)

    def by_soname(self, soname: str) -> Found | None:
        """A library by its SONAME."""
        if soname not in self._sonames:
            self._add_chosen()
        return self._sonames.get(soname)

    def find(self, names: Iterable[str]) -> list[Found]:
        """Libraries by their short names; optional ones that this platform lacks are left out.

        Raises:
            ModuleNotFoundError: what is missing or unknown: all of it, with the packages that bring it.
            FileNotFoundError: a package is installed but its file is not there.
        """
        names = list(names)
        self._refuse_missing([name for name in names if self.by_name(name) is None])
        found = [each for name in names if (each := self.by_name(name)) is not None]
        there = [each for each in found if each.path.is_file()]
        gone = [each for each in found if each not in there and not each.library.optional]
        if gone:
            places = "; ".join(f"{each.library.shortname}: {each.path} is missing" for each in gone)
            dists = ", ".join(dict.fromkeys(each.package.dist for each in gone))
            raise FileNotFoundError(f"{places}; reinstall {dists}")
        return there

    def owners(self, shortname: str) -> list[SdkPackage]:
        """Packages that bring a library, installed or not; one that is not for single GPUs first."""
        return [each for each in self.sdk.file.packages if shortname in each.shortnames and each.kind != "devel"]

    def to_install(self, names: Iterable[str]) -> list[SdkPackage]:
        """Packages that would bring libraries which are missing; of those for GPUs the one that fits here."""
        groups: dict[str, list[SdkPackage]] = {}
        for name in names:
            for owner in self.owners(name):
                groups.setdefault(f"{owner.package}/{bool(owner.targets)}", []).append(owner)
        found: list[SdkPackage] = []
        for owners in groups.values():
            different = list(dict.fromkeys(owners))
            if different[0].targets:
                chosen = choose(self.sdk.file, different, wanted_here(self.sdk)).package
                different = [chosen] if chosen else []
            found += different
        return list(dict.fromkeys(found))

    def _add(self, packages: Iterable[SdkPackage]) -> None:
        for package in packages:
            for library in self.sdk.shipped(package).libraries:
                found = Found(library, package, self._installed[package] / library.path)
                self._names.setdefault(library.shortname, found)
                self._sonames.setdefault(library.soname, found)

    def _add_chosen(self) -> None:
        self._add(choice.package for choice in self.choices.values() if choice.package is not None)

    def _refuse_missing(self, names: list[str]) -> None:
        """Say all that is wrong with names at once."""
        if not names:
            return
        packages = [each for each in self.sdk.file.packages if each.kind != "devel"]
        known = {name for package in packages for name in package.shortnames} | set(self._names)
        parts: list[str] = []
        for name in (each for each in names if each not in known):
            near = difflib.get_close_matches(name, known, n=3)
            parts.append(
                f"{name!r} is not a library in {self.sdk.file.sdk}" + (f" (near: {', '.join(near)})" if near else "")
            )
        missing = [each for each in names if each in known]
        packages = self.to_install(missing)
        for name in missing:
            owners = [each.dist for each in packages if each in self.owners(name)]
            parts.append(f"{name!r} is provided by {' or '.join(owners)}, which {self._state(name)}")
        hint = f": {self.sdk.install_hint(packages)}" if packages else ""
        raise ModuleNotFoundError("; ".join(parts) + hint)

    def _state(self, name: str) -> str:
        """What is wrong with the packages that should have a library."""
        used = [each.package for each in self.choices.values()]
        for owner in self.owners(name):
            if owner in self._installed and (not owner.targets or owner in used):
                return f"is installed, but its version {self.sdk.shipped(owner).version} does not contain the library"
        return "is not installed"


def with_gpu_code(packages: Iterable[SdkPackage]) -> dict[str, list[SdkPackage]]:
    """Name of a package in the manifest -> its packages with GPU code."""
    groups: dict[str, list[SdkPackage]] = {}
    for package in packages:
        if package.targets:
            groups.setdefault(package.package, []).append(package)
    return groups


def _choose_installed(sdk: Sdk, packages: list[SdkPackage], *, thorough: bool = False) -> Choice:
    """As :func:`choose`, but a family that somebody named is never replaced by another one.

    Nothing is looked for where there is no choice: a process must not wait for what decides nothing.
    """
    if len(packages) == 1 and not sdk.setting("TARGET_FAMILY") and not thorough:
        return Choice(packages[0], (f"{packages[0].dist}: the only installed package with GPU code",))
    wanted = wanted_here(sdk)
    choice = choose(sdk.file, packages, wanted)
    if wanted.family and wanted.targets and set(choice.missing) >= set(wanted.targets):
        return replace(choice, package=None, reasons=(f"{wanted.family}: none of its packages is installed",))
    return choice


def explain(sdk: Sdk) -> str:
    """Which GPUs were found, and which package's GPU code is used for them and why; several lines."""
    wanted = wanted_here(sdk)
    lines = [*wanted.reasons, f"requested: {', '.join(wanted.targets) or 'no GPU target'} (by {wanted.by})"]
    for name, packages in with_gpu_code(sdk.installed()).items():
        choice = _choose_installed(sdk, packages, thorough=True)
        lines += choice.reasons
        if choice.missing:
            lines.append(_advice(sdk, name, choice))
    versions = {each.dist: sdk.shipped(each).version for each in sdk.installed()}
    lines += [
        (
            f"{dist} has version {version}, but {sdk.file.dist} has version {sdk.file.version}: install the "
            "same version of all packages"
        )
        for dist, version in versions.items()
        if not same_version(version, sdk.file.version)
    ]
    return "\n".join(lines)


def same_version(one: str, other: str) -> bool:
    """Whether versions are the same but for a post release, which holds the same SDK packed anew."""
    return one.partition(".post")[0] == other.partition(".post")[0]


def _advice(sdk: Sdk, name: str, choice: Choice) -> str:
    """What to do about GPUs that no installed package serves, or none together with the others."""
    group = [each for each in sdk.file.packages if each.targets and each.package == name]
    better, missing = choose(sdk.file, group, wanted_here(sdk)), ", ".join(choice.missing)
    if better.package is not None and len(better.missing) < len(choice.missing):
        return f"for {missing}: {sdk.install_hint([better.package])}"
    if not any(serves_all(each, [target]) for each in group for target in choice.missing):
        return f"{sdk.file.sdk} {sdk.file.version} has no code for {missing}"
    variable = sdk.variable("TARGET_FAMILY")
    return (
        f"a process can use only one package: for {missing}, start a separate process with {variable} set or "
        "with fewer GPUs visible"
    )
