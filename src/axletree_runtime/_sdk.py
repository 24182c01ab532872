"""What an SDK's packages are and which of them are installed: readers of ``_sdk.json``, and where everything lies."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FILE = "_sdk.json"
SCHEMA = 1


class SdkError(RuntimeError):
    """Something that the user can do something about; the text says what."""


@dataclass(frozen=True)
class Library:
    """A shared library that programs may ask for."""

    shortname: str
    path: str
    soname: str
    needs: tuple[str, ...] = ()
    optional: bool = False
    standalone: bool = True


@dataclass(frozen=True)
class Command:
    """A program that is a console script."""

    name: str
    path: str
    devel: bool = False
    args: tuple[str, ...] = ()
    expect: str = ""
    expect_exit: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class SystemNeed:
    """A library that the host must bring."""

    soname: str
    package: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackageFile:
    """What one platform folder ships."""

    sdk: str
    package: str
    kind: str
    dist: str
    version: str
    folder: str
    schema: int = SCHEMA
    targets: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = field(default=(), metadata={"of": Library})
    commands: tuple[Command, ...] = field(default=(), metadata={"of": Command})
    system: tuple[SystemNeed, ...] = field(default=(), metadata={"of": SystemNeed})
    links: tuple[str, ...] = ()
    """Of the devel package: globs of links to files that stay symbolic."""


@dataclass(frozen=True)
class SdkPackage:
    """A distribution of the SDK, installed or not."""

    package: str
    kind: str
    dist: str
    folder: str
    extra: str = ""
    targets: tuple[str, ...] = ()
    shortnames: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Import name of its thin Python package: ``rocm_sdk_devel``."""
        return self.dist.replace("-", "_")


@dataclass(frozen=True)
class SdkFile:
    """What the selector knows of the SDK."""

    sdk: str
    dist: str
    module: str
    command: str
    prefix: str
    version: str
    packages: tuple[SdkPackage, ...] = field(metadata={"of": SdkPackage})
    schema: int = SCHEMA
    maker: str = "hip"
    default_family: str = ""
    families: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hierarchy: dict[str, tuple[str, ...]] = field(default_factory=dict)
    integrated: tuple[str, ...] = ()
    preload_order: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    bin: str = "bin"
    cmake: str = "lib/cmake"
    root_package: str = "core"
    cmake_package: str = ""
    cmake_targets: tuple[str, ...] = ()
    cmake_program: str = ""
    cmake_compiler: str = ""


@dataclass(frozen=True, eq=False)
class Sdk:
    """An SDK as it is installed."""

    file: SdkFile
    home: Path
    """Folder of the selector's Python package, which holds this module."""

    @property
    def site(self) -> Path:
        """The site directory that the packages share."""
        return self.home.parent

    def setting(self, name: str) -> str:
        """Value of one of the SDK's own environment variables (``TARGET_FAMILY``), without blanks around it."""
        return os.environ.get(self.variable(name), "").strip()

    def variable(self, name: str) -> str:
        """Its full name: ``ROCM_SDK_TARGET_FAMILY``."""
        return f"{self.file.prefix}_{name}"

    def folder(self, package: SdkPackage) -> Path | None:
        """The platform folder of a package for run time; None where it is not installed."""
        return None if package.kind == "devel" else _locate(self.site, package.folder)

    def installed(self) -> dict[SdkPackage, Path]:
        """Packages for run time that are there -> platform folder, in the order of the file."""
        return {each: folder for each in self.file.packages if (folder := self.folder(each)) is not None}

    def shipped(self, package: SdkPackage) -> PackageFile:
        """What an installed package's platform folder ships, or the devel tree once it is expanded.

        Raises:
            SdkError: it is not installed, or its file is damaged or was written for a newer runtime.
        """
        folder = self.devel_module() if package.kind == "devel" else self.folder(package)
        if folder is None:
            raise SdkError(f"{package.dist} is not installed: {self.install_hint([package])}")
        return _read_package(folder / FILE, package.dist)

    def root_package(self) -> SdkPackage | None:
        """The package whose platform folder is the root while the devel package is not expanded."""
        return next((each for each in self.file.packages if each.package == self.file.root_package), None)

    def devel_package(self) -> SdkPackage | None:
        """The devel package; None where the SDK has none."""
        return next((each for each in self.file.packages if each.kind == "devel"), None)

    def devel_module(self) -> Path | None:
        """Folder of the devel package's Python package, which holds what is expanded; None if it is not installed."""
        package = self.devel_package()
        return _locate(self.site, package.module) if package else None

    def extras(self) -> list[str]:
        """All extras of the selector. ``device`` is what the default family's GPUs need, ``device-all`` all of it."""
        found = {each.extra for each in self.file.packages if each.extra}
        return sorted(found | ({"device", "device-all"} if any(each.targets for each in self.file.packages) else set()))

    def requirement(self, extras: list[str]) -> str:
        """What pip is asked for: ``rocm[devel,libraries]==7.1.0``."""
        chosen = ",".join(dict.fromkeys(extra for extra in extras if extra))
        return f"{self.file.dist}{f'[{chosen}]' if chosen else ''}=={self.file.version}"

    def install_hint(self, packages: list[SdkPackage]) -> str:
        """What to do about packages that are missing, in one clause."""
        from ._sources import pip_command

        return pip_command(self, f"'{self.requirement([each.extra for each in packages])}'")


@cache
def this_sdk() -> Sdk:
    """The SDK whose selector holds this module.

    Raises:
        SdkError: its ``_sdk.json`` is missing or damaged.
    """
    return load_sdk(
        Path(__file__).absolute().parent
    )  # links are not followed: uv may have made each file one into its cache


def load_sdk(home: Path) -> Sdk:
    """The SDK whose selector's Python package is a folder; see :func:`this_sdk`."""
    return Sdk(file=_read(home / FILE, SdkFile, "the SDK's selector package"), home=home)


def find_root(sdk: Sdk) -> tuple[Path, str]:
    """The SDK's root, and ``devel`` or the name of the package whose folder it is.

    The only answer to "where is the SDK": the expanded devel tree where it is complete, else the root package's folder.
    Nothing is expanded.

    Raises:
        ModuleNotFoundError: neither is there.
    """
    from ._devel import devel_root

    expanded = devel_root(sdk)
    if expanded is not None:
        return expanded, "devel"
    package = sdk.root_package()
    folder = sdk.folder(package) if package else None
    if package is None or folder is None:
        wanted = [each for each in (package, sdk.devel_package()) if each]
        raise ModuleNotFoundError(
            f"no package that provides the root of {sdk.file.sdk} is installed: {sdk.install_hint(wanted)}"
        )
    return folder, package.package


def write_text(path: Path, text: str) -> Path:
    """Write a file so that nobody sees half of it.

    Raises:
        SdkError: it can't be written.
    """
    from ._part import replace_text

    try:
        replace_text(path, text)
    except OSError as error:
        raise SdkError(f"{path} cannot be written: {error.strerror}") from None
    return path


def _locate(site: Path, name: str) -> Path | None:
    """Folder of an import package: beside the selector, else wherever Python finds it.

    A folder without ``__init__.py`` is what an uninstallation left, not a package.
    """
    beside = site / name
    if (beside / "__init__.py").is_file():
        return beside
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec and spec.origin and Path(spec.origin).is_file() else None


@cache
def _read_package(path: Path, dist: str) -> PackageFile:
    found: PackageFile = _read(path, PackageFile, dist)
    return found


def _read(path: Path, kind: Any, owner: str) -> Any:
    """A file as one of the classes above; fields that this version does not know are passed over."""
    cure = f"reinstall {owner}"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SdkError(f"{path}: {error.strerror}; {cure}") from None
    except ValueError as error:
        raise SdkError(f"{path} is damaged ({error}); {cure}") from None
    if not isinstance(raw, dict):
        raise SdkError(f"{path} is damaged (not a JSON object); {cure}")
    if raw.get("schema", SCHEMA) != SCHEMA:
        raise SdkError(
            f"{path} has schema {raw['schema']}, but this runtime supports schema {SCHEMA}: install the same version "
            "of all packages"
        )
    try:
        return _convert(raw, kind)
    except (TypeError, AttributeError, KeyError) as error:
        raise SdkError(f"{path} is damaged ({error}); {cure}") from None


def _convert(raw: dict[str, Any], kind: Any) -> Any:
    values: dict[str, Any] = {}
    for each in dataclasses.fields(kind):
        if each.name not in raw:
            continue
        value, inner = raw[each.name], each.metadata.get("of")
        if inner is not None:
            value = tuple(_convert(part, inner) for part in value)
        elif isinstance(value, list):
            value = tuple(value)
        elif isinstance(value, dict):
            value = {key: tuple(part) if isinstance(part, list) else part for key, part in value.items()}
        values[each.name] = value
    return kind(**values)
