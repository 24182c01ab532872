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
        extra={"expects": "a normalised name: small letters, digits and '-', a letter or digit at both ends"},
    ),
]
Places = str | tuple[str, ...]
"""Paths below the prefix, of which the first that the payload has counts: SDKs of several layouts share a manifest."""


class About(Table, frozen=True, kw_only=True):
    """The SDK as a whole, and its selector."""

    name: Annotated[DistName, Meta(description="Distribution of the selector: `rocm`.")]
    module: Annotated[str, Meta(description="Its import name: `rocm_sdk`.")]
    command: Annotated[str, Meta(description="Its command: `rocm-sdk`.")]
    prefix: Annotated[str, Meta(description="What its environment variables begin with: `ROCM_SDK`.")]
    version: Annotated[str | None, Meta(description="Version of all packages, where `--version` says no other.")] = None
    summary: Annotated[str, Meta(description="One line that says what it is.")] = ""
    license: Annotated[str, Meta(description="SPDX expression.")] = ""
    urls: Annotated[dict[str, str], Meta(description="Label -> address, for the packages' metadata.")] = {}
    bin: Annotated[
        Places, Meta(description="Folder of programs, or several, of which the first that is there counts.")
    ] = "bin"
    cmake: Annotated[Places, Meta(description="Folder of CMake packages, or several.")] = "lib/cmake"
    cmake_package: Annotated[
        str, Meta(description="A package that `find_package` finds; self tests compile against it.")
    ] = ""
    cmake_targets: Annotated[
        tuple[str, ...], Meta(description="Imported targets that self tests link a program with: `hip::device`.")
    ] = ()
    cmake_program: Annotated[
        str,
        Meta(
            description="The program, in C++. It must end with exit code 0 where there is no GPU, too. Without one an empty program is linked."
        ),
    ] = ""
    cmake_compiler: Annotated[
        Places,
        Meta(
            description="Its compiler, or several, of which the first that is there counts. Without one it is the host's."
        ),
    ] = ()
    root_package: Annotated[
        str, Meta(description="Package whose folder is the root where the devel package is not installed.")
    ] = "core"


class Claim(Table, frozen=True, kw_only=True):
    """Files of the input, by what brought them and where they lie. All that is given must hold."""

    artifacts: Annotated[tuple[str, ...], Meta(description="Globs of names of artifacts.")] = ("*",)
    components: Annotated[tuple[Component, ...], Meta(description="Components of artifacts.")] = ("lib", "run", "dev")
    files: Annotated[
        tuple[str, ...],
        Meta(description="File patterns, below the prefix."),
    ] = ("**",)
    exclude: Annotated[tuple[str, ...], Meta(description="File patterns of what it does not take.")] = ()


class Drop(Claim, frozen=True, kw_only=True):
    """Files that go nowhere. Drops are asked before all packages."""

    why: Annotated[str, Meta(description="Why. Reports say it.")]


class Package(Table, frozen=True, kw_only=True):
    """A distribution beside the selector."""

    name: Annotated[DistName, Meta(description="What the manifest, and `rocm-sdk`, call it.")]
    kind: Annotated[
        Literal["core", "libraries", "devel", "tests", "runtime"],
        Meta(
            description="`libraries`: its files with GPU code go into packages for families and for targets. `devel`: the whole tree, expanded where it is installed; one at most. `tests` and `runtime`: further packages, installed when asked for."
        ),
    ]
    dist: Annotated[DistName, Meta(description="Its distribution: `rocm-sdk-core`.")]
    summary: Annotated[str, Meta(description="One line that says what it is.")] = ""
    requires: Annotated[
        tuple[DistName, ...],
        Meta(description="Packages of the manifest whose libraries it loads; pinned exactly."),
    ] = ()
    extra: Annotated[
        str, Meta(description="Extra of the selector that asks for it; without one it is always installed.")
    ] = ""
    family: Annotated[
        str,
        Meta(
            description="Distribution with GPU code of a family, `rocm-sdk-libraries-{family}`; else `dist` with the family behind."
        ),
    ] = ""
    device: Annotated[
        str,
        Meta(
            description="Distribution with GPU code of one target, `rocm-sdk-device-{target}`; else `dist` with the target behind."
        ),
    ] = ""
    claim: Annotated[
        tuple[Claim, ...],
        Meta(
            description="What it owns. Of a devel package: what it adds to the files of the packages for run time, which it always mirrors; so it is asked last."
        ),
    ] = ()


class Libraries(Table, frozen=True, kw_only=True):
    """What is to be known of libraries that their files do not tell."""

    opens: Annotated[
        dict[str, tuple[str, ...]],
        Meta(
            description="SONAME, file name or path of a library -> libraries that it opens at run time, if they are there."
        ),
    ] = {}
    optional: Annotated[
        tuple[str, ...], Meta(description="Globs of short names; to ask for one that is missing is no error.")
    ] = ()
    dependent: Annotated[
        tuple[str, ...],
        Meta(description="File patterns of libraries that can't be loaded alone, such as plugins."),
    ] = ()
    shortnames: Annotated[
        dict[str, str], Meta(description="SONAME -> another short name than the usual one (`amdhip64`).")
    ] = {}


class Command(Table, frozen=True, kw_only=True):
    """Programs that become console scripts where the payload has them."""

    files: Annotated[
        tuple[str, ...], Meta(min_length=1, description="File patterns. The script is called as the file.")
    ]
    devel: Annotated[
        bool, Meta(description="Whether it needs the whole SDK, as compilers do: the devel package is expanded for it.")
    ] = False
    args: Annotated[tuple[str, ...], Meta(description="How self tests call it. Without any they do not call it.")] = ()
    expect: Annotated[str, Meta(description="Text that it must print then.")] = ""
    expect_exit: Annotated[tuple[int, ...], Meta(description="What it may end with then.")] = (0,)


class Debs(Table, frozen=True, kw_only=True):
    """How Debian's packages make up the SDK."""

    prefix: Annotated[str, Meta(description="Folder of the packages that becomes the prefix.")] = "usr"
    artifacts: Annotated[
        dict[str, str], Meta(description="Glob of names of Debian packages -> artifact. The first that matches counts.")
    ]
    components: Annotated[
        dict[Component, tuple[str, ...]],
        Meta(description="Component -> file patterns, beside TheRock's usual ones."),
    ] = {}


class Devel(Table, frozen=True, kw_only=True):
    """The expanded SDK."""

    links: Annotated[
        tuple[str, ...],
        Meta(description="File patterns of links that stay symbolic: of programs that look where they really lie."),
    ] = ()


class Targets(Table, frozen=True, kw_only=True):
    """GPUs that code is for, and how they are grouped."""

    maker: Annotated[Literal["hip", "nvidia"], Meta(description="Whose GPUs.")] = "hip"
    table: Annotated[
        Literal["amd", ""],
        Meta(description="Table of targets that ships with Axletree; their hierarchy goes into the selector."),
    ] = ""
    groups: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="Further family -> targets, sub-families, families or groups. Each gets a package."),
    ] = {}
    default: Annotated[
        str,
        Meta(
            description="Family or target that is installed where nothing else is known; else the family with most targets."
        ),
    ] = ""
    families: Annotated[
        bool,
        Meta(
            description="Whether files with GPU code are also made for families: sub-families of which more than one target was built."
        ),
    ] = True


class Manifest(Table, frozen=True, kw_only=True):
    """A manifest."""

    sdk: Annotated[About, Meta(description="The SDK as a whole, and its selector.")]
    package: Annotated[tuple[Package, ...], Meta(min_length=1, description="Distributions beside the selector.")]
    drop: Annotated[tuple[Drop, ...], Meta(description="Files that go nowhere.")] = ()
    libraries: Annotated[Libraries, Meta(description="What libraries do not tell.")] = Libraries()
    command: Annotated[tuple[Command, ...], Meta(description="Programs that become console scripts.")] = ()
    environment: Annotated[
        dict[str, Places],
        Meta(
            description="Variable of builds -> path below the root (`.` is the root), several of which the first that is there counts, or a text that begins with `=` and is taken as it is."
        ),
    ] = {}
    system: Annotated[
        dict[str, str], Meta(description="Glob of SONAMEs that the host brings -> what to install for it.")
    ] = {}
    targets: Annotated[Targets, Meta(description="GPUs.")] = Targets()
    devel: Annotated[Devel, Meta(description="The expanded SDK.")] = Devel()
    debs: Annotated[Debs | None, Meta(description="How Debian's packages make up the SDK.")] = None


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
