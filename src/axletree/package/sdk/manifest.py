"""The manifest of an SDK: a TOML file that says what its packages are, which files each owns, and how it is used.

Nothing of it is about one SDK: ROCm, CUDA, oneAPI or any CMake prefix is a file of this kind below ``recipes/sdk``. The
JSON schema and the reference page are derived from these classes; what a manifest means is checked in
:mod:`axletree.package.sdk.manifest_checks`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from axletree.core.errors import RecipeError
from axletree.package.sdk.entries import Component
from axletree.package.sdk.manifest_checks import manifest_faults
from axletree.recipe.base import Table
from axletree.recipe.faults import related
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

DistName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        extra={"expects": "a normalized name: lowercase letters, digits and '-', with a letter or digit at both ends"},
    ),
]
Places = str | tuple[str, ...]
"""Paths below the prefix, of which the first that the payload has counts: SDKs of several layouts share a manifest."""


class About(Table, frozen=True, kw_only=True):
    """The SDK and its selector."""

    name: Annotated[DistName, Meta(description="Distribution name of the selector, such as `rocm`.")]
    module: Annotated[str, Meta(description="Import name of the selector, such as `rocm_sdk`.")]
    command: Annotated[str, Meta(description="Command of the selector, such as `rocm-sdk`.")]
    prefix: Annotated[str, Meta(description="Prefix of the selector's environment variables, such as `ROCM_SDK`.")]
    version: Annotated[str | None, Meta(description="Version of all packages, unless `--version` sets another.")] = None
    summary: Annotated[str, Meta(description="One-line summary.")] = ""
    license: Annotated[str, Meta(description="SPDX expression.")] = ""
    urls: Annotated[dict[str, str], Meta(description="Label -> URL, for the packages' metadata.")] = {}
    bin: Annotated[Places, Meta(description="Program folder, or a list of folders; the first that exists is used.")] = (
        "bin"
    )
    cmake: Annotated[
        Places, Meta(description="Folder of CMake packages, or a list of folders; the first that exists is used.")
    ] = "lib/cmake"
    cmake_package: Annotated[
        str, Meta(description="CMake package that the self tests find with `find_package` and compile against.")
    ] = ""
    cmake_targets: Annotated[
        tuple[str, ...],
        Meta(description="Imported targets to link the self-test program to, such as `hip::device`."),
    ] = ()
    cmake_program: Annotated[
        str,
        Meta(
            description="C++ source of the self-test program, which must exit with 0 even without a GPU. By default, an empty program."
        ),
    ] = ""
    cmake_compiler: Annotated[
        Places,
        Meta(
            description="Compiler for the self-test program, or a list of compilers; the first that exists is used. The host's compiler by default."
        ),
    ] = ()
    root_package: Annotated[
        str, Meta(description="Package whose folder is the SDK's root if the devel package is not installed.")
    ] = "core"


class Claim(Table, frozen=True, kw_only=True):
    """Selection of input files by artifact, component and path. A file must match all given keys."""

    artifacts: Annotated[tuple[str, ...], Meta(description="Globs that artifact names must match.")] = ("*",)
    components: Annotated[tuple[Component, ...], Meta(description="Artifact components.")] = ("lib", "run", "dev")
    files: Annotated[
        tuple[str, ...],
        Meta(description="File patterns, relative to the prefix."),
    ] = ("**",)
    exclude: Annotated[tuple[str, ...], Meta(description="File patterns for what to leave out.")] = ()


class Drop(Claim, frozen=True, kw_only=True):
    """Files to leave out of all packages. Drops are applied before all claims."""

    why: Annotated[str, Meta(description="The reason, shown in reports.")]


class Package(Table, frozen=True, kw_only=True):
    """A distribution in addition to the selector."""

    name: Annotated[DistName, Meta(description="Short name, used in the manifest and by `rocm-sdk`.")]
    kind: Annotated[
        Literal["core", "libraries", "devel", "tests", "runtime"],
        Meta(
            description="`libraries`: files with GPU code go into packages for families and for targets. `devel`: the whole tree, expanded where it is installed; at most one. `tests` and `runtime`: other packages, installed on request."
        ),
    ]
    dist: Annotated[DistName, Meta(description="Distribution name, such as `rocm-sdk-core`.")]
    summary: Annotated[str, Meta(description="One-line summary.")] = ""
    requires: Annotated[
        tuple[DistName, ...],
        Meta(
            description="Packages in the manifest whose libraries this package loads; it requires their exact versions."
        ),
    ] = ()
    extra: Annotated[
        str,
        Meta(
            description="Extra of the selector that installs the package; without an extra, the package is always installed."
        ),
    ] = ""
    family: Annotated[
        str,
        Meta(
            description="Distribution with the GPU code of a family, `rocm-sdk-libraries-{family}`; by default `dist` with the family appended."
        ),
    ] = ""
    device: Annotated[
        str,
        Meta(
            description="Distribution with the GPU code of one target, `rocm-sdk-device-{target}`; by default `dist` with the target appended."
        ),
    ] = ""
    claim: Annotated[
        tuple[Claim, ...],
        Meta(
            description="Files that belong to the package. A devel package always includes the files of the runtime packages; list only additional ones. Its claims are applied after those of all other packages."
        ),
    ] = ()


class Libraries(Table, frozen=True, kw_only=True):
    """Properties of libraries that their files do not record."""

    opens: Annotated[
        dict[str, tuple[str, ...]],
        Meta(
            description="SONAME, file name or path of a library -> libraries that this library opens at run time, if they exist."
        ),
    ] = {}
    optional: Annotated[
        tuple[str, ...], Meta(description="Globs for the short names of libraries that may be missing.")
    ] = ()
    dependent: Annotated[
        tuple[str, ...],
        Meta(description="File patterns for libraries that cannot be loaded on their own, such as plugins."),
    ] = ()
    shortnames: Annotated[
        dict[str, str], Meta(description="SONAME -> short name that replaces the usual one (`amdhip64`).")
    ] = {}


class Command(Table, frozen=True, kw_only=True):
    """Programs to install as console scripts, if the packages contain them."""

    files: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="File patterns for programs. Each console script is named after its file."),
    ]
    devel: Annotated[
        bool,
        Meta(
            description="Whether the program needs the whole SDK, as compilers do; running it then expands the devel package."
        ),
    ] = False
    args: Annotated[
        tuple[str, ...],
        Meta(
            description="Arguments for running the program in the self tests. Without arguments, the self tests do not run it."
        ),
    ] = ()
    expect: Annotated[str, Meta(description="Text that the program must print in the self test.")] = ""
    expect_exit: Annotated[tuple[int, ...], Meta(description="Exit codes allowed in the self test.")] = (0,)


class Debs(Table, frozen=True, kw_only=True):
    """How to assemble the SDK from Debian packages."""

    prefix: Annotated[str, Meta(description="Folder in the packages that becomes the prefix.")] = "usr"
    artifacts: Annotated[
        dict[str, str], Meta(description="Glob for Debian package names -> artifact. The first match is used.")
    ]
    components: Annotated[
        dict[Component, tuple[str, ...]],
        Meta(description="Component -> file patterns, in addition to TheRock's usual ones."),
    ] = {}


class Devel(Table, frozen=True, kw_only=True):
    """Settings of the expanded SDK."""

    links: Annotated[
        tuple[str, ...],
        Meta(
            description="File patterns for links that stay symbolic: links to programs that look up their real location."
        ),
    ] = ()


class Targets(Table, frozen=True, kw_only=True):
    """GPUs that the code is for, and how they are grouped."""

    maker: Annotated[Literal["hip", "nvidia"], Meta(description="GPU vendor.")] = "hip"
    table: Annotated[
        Literal["amd", ""],
        Meta(description="GPU target table that ships with Axletree; its hierarchy becomes part of the selector."),
    ] = ""
    groups: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="Additional family -> targets, sub-families, families or groups. Each gets a package."),
    ] = {}
    default: Annotated[
        str,
        Meta(
            description="Family or target to install if no GPU is detected; by default, the family with the most targets."
        ),
    ] = ""
    families: Annotated[
        bool,
        Meta(
            description="Whether to also build GPU code packages for families, if more than one of their targets was built."
        ),
    ] = True


class Manifest(Table, frozen=True, kw_only=True):
    """A manifest."""

    sdk: Annotated[About, Meta(description="The SDK and its selector.")]
    package: Annotated[
        tuple[Package, ...], Meta(min_length=1, description="Distributions in addition to the selector.")
    ]
    drop: Annotated[tuple[Drop, ...], Meta(description="Files to leave out.")] = ()
    libraries: Annotated[Libraries, Meta(description="Properties of libraries that their files do not record.")] = (
        Libraries()
    )
    command: Annotated[tuple[Command, ...], Meta(description="Programs to install as console scripts.")] = ()
    environment: Annotated[
        dict[str, Places],
        Meta(
            description="Build variable -> path below the root (`.` is the root), or several paths (the first that exists is used), or a fixed value after `=`."
        ),
    ] = {}
    system: Annotated[
        dict[str, str], Meta(description="Glob for SONAMEs that the host provides -> what to install for them.")
    ] = {}
    targets: Annotated[Targets, Meta(description="GPUs.")] = Targets()
    devel: Annotated[Devel, Meta(description="Settings of the expanded SDK.")] = Devel()
    debs: Annotated[Debs | None, Meta(description="How to assemble the SDK from Debian packages.")] = None


def parse_manifest(text: str, *, filename: str) -> Manifest:
    """Read a manifest.

    Raises:
        RecipeError: with everything that is wrong with it, each with its line.
    """
    faults, repaired = check_structure(decode_toml(text, filename), Manifest)
    manifest = msgspec.convert(repaired, Manifest)
    spoilt = [fault.path for fault in faults]
    faults += [
        fault
        for fault in manifest_faults(manifest)
        if not any(related(path, bad) for path in (fault.path, *fault.needs) for bad in spoilt)
    ]
    if faults:
        raise RecipeError(*locate_faults(faults, text, filename))
    return manifest
