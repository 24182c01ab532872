"""The manifest of an SDK: a TOML file that says what its packages are, which files each owns, and how it is used.

Nothing of it is about one SDK: ROCm, CUDA, oneAPI or any CMake prefix is a file of this kind below ``recipes/sdk``.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from axletree.core.errors import RecipeError
from axletree.package.sdk.entries import Component
from axletree.recipe.base import Table
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

DistName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        extra={"expects": "a normalised name: small letters, digits and '-', a letter or digit at both ends"},
    ),
]
Places = str | tuple[str, ...]
"""Paths below the prefix, of which the first that the payload has counts: SDKs of several layouts share a manifest."""


class About(Table, frozen=True, kw_only=True):
    """The SDK as a whole, and its selector."""

    name: DistName
    """The selector's distribution, ``rocm``."""
    module: str
    """Its import name, ``rocm_sdk``."""
    command: str
    prefix: str
    """Of environment variables: ``ROCM_SDK``."""
    version: str | None = None
    """Where ``--version`` does not say another."""
    summary: str = ""
    license: str = ""
    urls: dict[str, str] = {}
    bin: Places = "bin"
    cmake: Places = "lib/cmake"
    cmake_package: str = ""
    """A package that ``find_package`` finds; self tests compile against it."""
    root_package: str = "core"


class Claim(Table, frozen=True, kw_only=True):
    """Files of the input, by what brought them and where they lie. All that is given must hold."""

    artifacts: tuple[str, ...] = ("*",)
    """Globs of artifact names."""
    components: tuple[Component, ...] = ("lib", "run", "dev")
    files: tuple[str, ...] = ("**",)
    """Globs of paths: ``*`` stays inside a folder, ``**`` does not."""
    exclude: tuple[str, ...] = ()


class Drop(Claim, frozen=True, kw_only=True):
    """Files that go nowhere."""

    why: str


class Package(Table, frozen=True, kw_only=True):
    """A distribution beside the selector."""

    name: DistName
    """What the manifest calls it."""
    kind: Literal["core", "libraries", "devel", "tests", "runtime"]
    """``libraries``: its libraries with GPU code go into packages for a family and for a target."""
    dist: DistName
    summary: str = ""
    requires: tuple[DistName, ...] = ()
    """Packages of the manifest whose libraries it loads; pinned exactly."""
    extra: str = ""
    """Extra of the selector; empty: always installed."""
    family: str = ""
    """Distribution with GPU code of a family, ``rocm-sdk-libraries-{family}``; where not given, ``dist`` with it."""
    device: str = ""
    """Distribution with GPU code of one target, ``rocm-sdk-device-{target}``."""
    claim: tuple[Claim, ...]
    """Of a devel package: what it adds to the files of the packages for run time, which it always mirrors."""


class Libraries(Table, frozen=True, kw_only=True):
    """What is to be known of libraries that their files do not tell."""

    opens: dict[str, tuple[str, ...]] = {}
    """SONAME or file name -> libraries that it opens at run time."""
    optional: tuple[str, ...] = ()
    """Globs of short names."""
    dependent: tuple[str, ...] = ()
    """Globs of paths of libraries that can't be loaded alone."""
    shortnames: dict[str, str] = {}
    """SONAME -> another short name than the usual one."""


class Command(Table, frozen=True, kw_only=True):
    """Programs that become console scripts where the payload has them."""

    files: tuple[str, ...]
    """Globs of paths."""
    devel: bool = False
    args: tuple[str, ...] = ()
    expect: str = ""
    expect_exit: tuple[int, ...] = (0,)


class Debs(Table, frozen=True, kw_only=True):
    """How Debian's packages make up the SDK."""

    prefix: str = "usr"
    """Folder that becomes the prefix."""
    artifacts: dict[str, str]
    """Glob of a Debian package's name -> artifact; the first that matches."""
    components: dict[Component, tuple[str, ...]] = {}
    """Globs beside TheRock's usual ones."""


class Devel(Table, frozen=True, kw_only=True):
    """The expanded SDK."""

    links: tuple[str, ...] = ()
    """Globs of links that stay symbolic links to files: programs that look where they really lie."""
    compression: Literal["none", "xz"] = "none"
    """Of the payload inside the wheel; with ``none`` the wheel itself compresses it."""


class Targets(Table, frozen=True, kw_only=True):
    """GPUs that code is for, and how they are grouped."""

    maker: Literal["hip", "nvidia"] = "hip"
    table: Literal["amd", ""] = ""
    """A hierarchy that ships with Axletree."""
    groups: dict[str, tuple[str, ...]] = {}
    """Family -> targets or further families, beside the table's."""
    default: str = ""
    """Family (or target) that is installed where nothing else is known."""
    families: bool = True
    """Whether libraries with GPU code are also made for whole families."""


class Manifest(Table, frozen=True, kw_only=True):
    """A manifest."""

    sdk: About
    package: Annotated[tuple[Package, ...], Meta(min_length=1)]
    drop: tuple[Drop, ...] = ()
    libraries: Libraries = Libraries()
    command: tuple[Command, ...] = ()
    environment: dict[str, Places] = {}
    """Variable -> path below the root (``.`` is the root), or text that begins with ``=`` and is taken as it is."""
    system: dict[str, str] = {}
    """Glob of SONAMEs that the host brings -> what to install for it."""
    targets: Targets = Targets()
    devel: Devel = Devel()
    debs: Debs | None = None


def parse_manifest(text: str, *, filename: str) -> Manifest:
    """Read a manifest.

    Raises:
        RecipeError: with everything that is wrong with it, each with its line.
    """
    faults, repaired = check_structure(decode_toml(text, filename), Manifest)
    if faults:
        raise RecipeError(*locate_faults(faults, text, filename))
    return msgspec.convert(repaired, Manifest)
