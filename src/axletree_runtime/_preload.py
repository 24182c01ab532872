"""Loads the SDK's libraries into this process, each after what it needs, so that extension modules find them loaded."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import warnings
from typing import TYPE_CHECKING

from ._libraries import Libraries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ._libraries import Found
    from ._sdk import Sdk, SdkPackage

_LOCK = threading.RLock()
_HANDLES: dict[str, ctypes.CDLL] = {}
"""SONAME -> handle; kept, so that nothing is unloaded."""
_IN_USE: dict[str, SdkPackage] = {}
"""Name of a package in the manifest -> the one whose GPU code is loaded: it stays the one for this process."""
_LACKS = re.compile(r"(?<!\S)(\S+): cannot open shared object file: No such file")
_VERSION = re.compile(r"version `([^'`\n]+)' not found")
_SYSTEM = {"GLIBC": "glibc", "GLIBCXX": "libstdc++", "CXXABI": "libstdc++", "GCC": "libgcc"}
"""Beginnings of symbol versions that libraries of the system define."""


class LoadError(OSError):
    """A library of the SDK can't be loaded; the text says why and what to install."""

    def __init__(self, text: str, culprit: str = "") -> None:
        """``culprit`` is the file name of what is missing or damaged: this library, or one that it needs."""
        super().__init__(text)
        self.culprit = culprit


def libraries_in_use(sdk: Sdk) -> Libraries:
    """The libraries that this process uses: GPU code stays that of the package it was first loaded from."""
    return Libraries(sdk, dict(_IN_USE))


def preload(sdk: Sdk, names: Iterable[str], *, rtld_global: bool = True) -> list[Path]:
    """Load libraries by their short names, each after what it needs; what is loaded already stays as it is.

    Args:
        sdk: the SDK.
        names: short names.
        rtld_global: whether extension modules that are loaded later see their symbols.

    Returns:
        The files of the libraries that were asked for.

    Raises:
        ModuleNotFoundError: what is missing or unknown.
        FileNotFoundError: a package is there, its file is not.
        LoadError: the loader refuses one.
    """
    with _LOCK:
        libraries = libraries_in_use(sdk)
        asked = libraries.find(names)
        mode = ctypes.RTLD_GLOBAL if rtld_global else ctypes.RTLD_LOCAL
        _load_all(libraries, asked, mode)
    return [found.path for found in asked]


def closure(libraries: Libraries, asked: Iterable[Found]) -> Iterator[Found]:
    """Libraries with all that they need or open, as far as it is installed: each once, after what it needs."""
    done: set[str] = set()

    def visit(found: Found) -> Iterator[Found]:
        if found.library.soname in done:
            return
        done.add(found.library.soname)
        for soname in found.library.needs:
            needed = libraries.by_soname(soname)
            if needed is not None:
                yield from visit(needed)
        yield found

    for each in asked:
        yield from visit(each)


def _load_all(libraries: Libraries, asked: list[Found], mode: int) -> None:
    """Load libraries after what they need.

    Something that is only opened later may fail without harm; what is really needed makes its user fail as well.
    """
    failed: dict[str, LoadError] = {}
    for found in closure(libraries, asked):
        if not found.library.standalone and found not in asked:
            continue
        try:
            _load(libraries, found, mode)
        except LoadError as error:
            before = (failed[each] for each in found.library.needs if each in failed)
            cause = next((each for each in before if each.culprit == error.culprit), None)
            if found not in asked:
                failed[found.library.soname] = cause or error
                continue
            if cause is None:
                raise
            raise LoadError(
                f"{found.library.shortname} cannot be loaded because it needs a library that failed to load: {cause}",
                cause.culprit,
            ) from None


def _load(libraries: Libraries, found: Found, mode: int) -> None:
    soname = found.library.soname
    if soname not in _HANDLES:
        there = _loaded_already(soname, mode)
        if there is not None:
            _warn_of_another(found)
        _HANDLES[soname] = there or _open(libraries, found, mode)
    elif mode & ctypes.RTLD_GLOBAL:
        _loaded_already(soname, mode)  # now extension modules see its symbols
    if found.package.targets:
        _IN_USE.setdefault(found.package.package, found.package)


def _loaded_already(soname: str, mode: int) -> ctypes.CDLL | None:
    """A library of this SONAME that somebody has loaded: a second copy of it would be a second runtime."""
    no_load = getattr(os, "RTLD_NOLOAD", 0)
    if not no_load:
        return None
    try:
        return ctypes.CDLL(soname, mode=mode | no_load)
    except OSError:
        return None


def _open(libraries: Libraries, found: Found, mode: int) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(found.path), mode=mode)
    except OSError as error:
        said = str(error)
        lacks = _LACKS.search(said)
        culprit = os.path.basename(lacks[1] if lacks else said.partition(":")[0])  # noqa: PTH119
        why = _explain(libraries, found, said)
        raise LoadError(f"{found.library.shortname} cannot be loaded: {why}", culprit) from None


def _explain(libraries: Libraries, found: Found, said: str) -> str:
    """What a message of the loader means, and what to do."""
    lacks, version = _LACKS.search(said), _VERSION.search(said)
    if lacks and lacks[1] != str(found.path):
        soname = lacks[1]
        wanting = f"required by {found.path} or by one of its dependencies"
        return f"the loader cannot find {soname} ({wanting}); {_cure(libraries, soname)}"
    if version:
        system = _SYSTEM.get(version[1].partition("_")[0])
        if system:
            return f"{said}; it was built for a newer {system} than the one on this system"
    if version or "undefined symbol" in said:
        return (
            f"{said}; either packages of different versions are installed, or a different copy of that "
            "library was loaded first"
        )
    if any(text in said for text in ("file too short", "invalid ELF header", "cannot read file data")):
        damaged = libraries.by_soname(os.path.basename(said.partition(":")[0])) or found  # noqa: PTH119
        return f"{said}; the file is damaged: reinstall {damaged.package.dist}"
    return said


def _cure(libraries: Libraries, soname: str) -> str:
    """What to install for a library that the loader did not find."""
    sdk = libraries.sdk
    ours = libraries.by_soname(soname)
    if ours is not None:
        return f"it belongs to {ours.package.dist}: reinstall that package"
    shortname = soname.partition(".so")[0]
    shortname = shortname.removeprefix("lib")
    packages = libraries.to_install([shortname])
    if packages:
        return f"it is provided by {', '.join(each.dist for each in packages)}: {sdk.install_hint(packages)}"
    for package in sdk.installed():
        for need in sdk.shipped(package).system:
            if need.soname == soname:
                return (
                    f"the system must provide it: install {need.package}"
                    if need.package
                    else "the system must provide it"
                )
    return "no package in the SDK provides it, so the system must provide it"


def _warn_of_another(found: Found) -> None:
    """Say that a library of another place is in use, if the kernel tells where it came from."""
    soname = found.library.soname
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            places = {line.split(maxsplit=5)[5].strip() for line in file if line.rstrip().endswith(f"/{soname}")}
        others = sorted(place for place in places if not os.path.samefile(place, found.path))  # noqa: PTH121
    except OSError:
        return
    if others:
        text = f"{soname} was already loaded from {others[0]}, which is used instead of {found.path}"
        warnings.warn(text, stacklevel=6)
