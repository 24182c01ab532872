"""What travels in the wheels of an SDK and is read where they are installed: ``_sdk.json``.

The selector carries an :class:`SdkFile`, each platform folder a :class:`PackageFile`. Both are JSON with sorted keys,
so that the same SDK gives the same bytes. The runtime reads them with the standard library (``axletree_runtime``): a
field that is added here must have a default there.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA: Literal[1] = 1
FILE = "_sdk.json"

Kind = Literal["core", "libraries", "device", "devel", "tests", "runtime"]


class ShippedLibrary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A shared library that programs may ask for."""

    shortname: str
    """``amdhip64``: its SONAME without ``lib`` and what begins with ``.so``."""
    path: str
    """Below the platform folder."""
    soname: str
    needs: tuple[str, ...] = ()
    """SONAMEs of the SDK's own libraries that it needs or opens, in any of its packages."""
    optional: bool = False
    """Not every platform has it: asking for it where it is missing is no error."""
    standalone: bool = True
    """Whether it can be loaded alone (self tests do so). Plugins that want symbols of their host can't."""


class ShippedCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program that becomes a console script."""

    name: str
    path: str
    """Below the platform folder, and below the devel root alike."""
    devel: bool = False
    """Whether it needs the whole SDK (a compiler): started from the devel root, which is expanded for it."""
    args: tuple[str, ...] = ()
    """How a self test calls it; without any it is not called."""
    expect: str = ""
    """Text that it must print then."""
    expect_exit: tuple[int, ...] = (0,)


class SystemNeed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A library that the host must bring."""

    soname: str
    package: str = ""
    """What to install for it, in words."""
    files: tuple[str, ...] = ()
    """Who needs it, below the platform folder."""


class PackageFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one platform folder ships."""

    schema: int = SCHEMA
    sdk: str
    """Name of the SDK: ``rocm``."""
    package: str
    """Name in the manifest: ``core``, ``libraries``, ``devel``."""
    kind: Kind
    dist: str
    version: str
    folder: str
    """The platform folder: ``_rocm_sdk_core``."""
    targets: tuple[str, ...] = ()
    """GPU targets that its GPU code is for; empty where it holds none."""
    libraries: tuple[ShippedLibrary, ...] = ()
    commands: tuple[ShippedCommand, ...] = ()
    system: tuple[SystemNeed, ...] = ()
    links: tuple[str, ...] = ()
    """Of the devel package: globs of links to files that stay symbolic (:class:`manifest.Devel`)."""


class SdkPackage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A distribution of the SDK, as the selector knows it."""

    package: str
    kind: Kind
    dist: str
    folder: str
    """Platform folder; of the devel package the one that it is expanded into."""
    extra: str = ""
    """Extra of the selector that asks for it; empty: always there."""
    targets: tuple[str, ...] = ()
    shortnames: tuple[str, ...] = ()
    """Libraries that it brings: so a missing package can be named."""


class SdkFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the selector knows of the SDK."""

    schema: int = SCHEMA
    sdk: str
    dist: str
    """The selector's distribution: ``rocm``."""
    module: str
    """Its import name: ``rocm_sdk``."""
    command: str
    """``rocm-sdk``."""
    prefix: str
    """Of its environment variables: ``ROCM_SDK`` (``ROCM_SDK_TARGET_FAMILY``, ``ROCM_SDK_PRELOAD_LIBRARIES``)."""
    version: str
    packages: tuple[SdkPackage, ...]
    maker: Literal["hip", "nvidia"] = "hip"
    """Whose GPUs its code is for, and so how the host's are found."""
    default_family: str = ""
    families: dict[str, tuple[str, ...]] = {}
    """Target or family that can be chosen -> the targets that it serves, all of which were built."""
    hierarchy: dict[str, tuple[str, ...]] = {}
    """Each known target -> sub-family, family, from near to far; also of targets that were not built."""
    integrated: tuple[str, ...] = ()
    """Targets that are part of a processor, beside those that the runtime knows: other GPUs go before them."""
    preload_order: tuple[str, ...] = ()
    """Short names, each after what it needs."""
    environment: dict[str, str] = {}
    """Variable -> text with ``{root}``: what a build against the SDK, and its own tools, want to have set."""
    bin: str = "bin"
    cmake: str = "lib/cmake"
    """Folders below the root."""
    root_package: str = "core"
    """The package whose platform folder is the root while the devel package is not there."""
    cmake_package: str = ""
    """What a self test finds with ``find_package`` and compiles a program against."""
    cmake_targets: tuple[str, ...] = ()
    """Imported targets that the program is linked with: ``hip::device``."""
    cmake_program: str = ""
    """The program, in C++; it must end with 0, also where there is no GPU. Without one an empty program is linked."""
    cmake_compiler: str = ""
    """Its compiler, below the root; empty: the host's."""
