"""The recipe as it is written: the only place that names a key of a recipe file.

Types here may still hold placeholders (``{torch}``); :mod:`axletree.recipe.target` has the same things without any. The
JSON schema, the reference page and the validation with all errors at once are derived from these classes, so a
description belongs beside its field, in ``Meta``.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from axletree.recipe.base import AxisName, CMakeVariable, Condition, Matrix, Name, Properties, Sha256, Table
from axletree.recipe.checkouts import Checkout
from axletree.recipe.conda import CondaTable
from axletree.recipe.environments import Environment
from axletree.recipe.extending import Extends, Removed
from axletree.recipe.images import Image
from axletree.recipe.importing import Import
from axletree.recipe.override import Override
from axletree.recipe.presets import Preset
from axletree.recipe.relocation import RelocateTable
from axletree.recipe.resources import Resources
from axletree.recipe.source_tables import ExtraSource, Patch, Source
from axletree.recipe.waivers import Waiver


class Stage(Table, frozen=True, kw_only=True):
    """A step between the source and the packages."""

    action: Annotated[
        Literal["build", "compile", "run", "download", "relocate", "hipify"],
        Meta(
            description="`build`: run a PEP 517 build and install the result as a tree. `compile`: run a CMake build; the result is what it installs. `run`: run the recipe's commands, which fill `$AXLETREE_OUT`. `download`: the same, with a network; `sha256` pins the result. `relocate`: change the tree of the first input so that it loads on a clean host. `hipify`: convert the source's CUDA code to HIP with its own `tools/amd_build/build_amd.py`, for `source-from` in other stages."
        ),
    ]
    axes: Annotated[
        tuple[AxisName, ...],
        Meta(description="Axes that the stage may use. Variants that agree on these axes share the stage."),
    ] = ()
    when: Annotated[
        Condition,
        Meta(
            description="Only for variants that match: axis -> value or list of values. For other variants, packages made from the stage are left out too, and stages that use it run without it."
        ),
    ] = {}
    environment: Annotated[str | None, Meta(description="Environment whose programs and modules the stage uses.")] = (
        None
    )
    host: Annotated[
        str | None,
        Meta(
            description="Conda environment that the stage links against, as conda-build's host environment: its prefix is `$PREFIX`, and that of `environment`, with the compilers, is `$BUILD_PREFIX`. Strong run exports of `environment` are added to its requirements."
        ),
    ] = None
    inputs: Annotated[
        tuple[str, ...],
        Meta(
            description="Stages whose trees this stage gets, as `$AXLETREE_IN_<NAME>`. Their axes must be a subset of this stage's. `magma/compile` is stage `compile` of recipe `magma` in `recipes`."
        ),
    ] = ()
    sources: Annotated[
        tuple[str, ...],
        Meta(
            description="Names in `sources` that this stage gets in folders of their own, as `$AXLETREE_SOURCE_<NAME>`. A single file is in its folder under its own name."
        ),
    ] = ()
    source: Annotated[bool, Meta(description="Whether the stage's working folder is the (patched) source.")] = True
    source_from: Annotated[
        str | None,
        Meta(
            description="Stage whose tree replaces the recipe's source, such as a `hipify` stage. Its axes must be a subset of this stage's."
        ),
    ] = None
    image: Annotated[
        str | None,
        Meta(
            description="Image whose root file system the stage's commands see: a name in `images`, such as `{image}`; `host` or `none` means the files of the host. For `build`, `compile` and `run`."
        ),
    ] = None
    directory: Annotated[str, Meta(description="Folder inside the source to work in.")] = "."
    commands: Annotated[
        tuple[str, ...],
        Meta(
            description="Shell lines, run with `bash -euo pipefail`: the work of a `run` or `download` stage; for `build` and `compile`, changes to the source before it is configured."
        ),
    ] = ()
    sha256: Annotated[
        Sha256 | None,
        Meta(
            description="For `download`: digest of the files that the commands leave in `$AXLETREE_OUT`, without `.git` and `__pycache__`; if it is missing or differs, the stage fails and prints the right one."
        ),
    ] = None
    config: Annotated[dict[str, str], Meta(description="PEP 517 config settings for `build`.")] = {}
    driver: Annotated[
        Literal["auto", "cmake", "setup.py", "scikit-build-core"],
        Meta(
            description="For `compile`: how the project is configured and built. `cmake`: CMake itself; `setup.py`: PyTorch up to 2.13; `scikit-build-core`: PyTorch from 2.14, and others; `auto`: detected from the source."
        ),
    ] = "auto"
    targets: Annotated[
        tuple[str, ...],
        Meta(
            description="For `compile`: CMake targets to build. One of them must install something; the default is `install`."
        ),
    ] = ()
    options: Annotated[
        dict[CMakeVariable, str],
        Meta(description="For `compile`: CMake variables. After a change, the same build folder is configured again."),
    ] = {}
    expect: Annotated[
        dict[str, str],
        Meta(
            description='For `compile` and `build`: features that CMake must have enabled after configuring, such as `USE_CUDNN = "ON"`; otherwise the stage fails before it compiles.'
        ),
    ] = {}
    prefix: Annotated[
        str,
        Meta(description="For `compile` with driver `cmake`: folder in the result to install the project into."),
    ] = ""
    files: Annotated[
        tuple[str, ...],
        Meta(description="For `compile`: file patterns for the installed files to keep as the result; all by default."),
    ] = ()
    continues: Annotated[
        str | None,
        Meta(
            description="For `build` and `compile`: input whose build folder this stage reuses, if the folder was kept and has the same source. The result must not depend on that folder."
        ),
    ] = None
    env: Annotated[
        dict[str, str], Meta(description="Environment variables to set; they are part of the stage's key.")
    ] = {}
    pass_env: Annotated[
        tuple[str, ...],
        Meta(
            description="Variables of your shell to pass to the stage; their values are part of the stage's key. No other variables are passed."
        ),
    ] = ()
    tools: Annotated[
        tuple[str, ...],
        Meta(
            description="Host programs that the stage uses, such as `c++` or `cmake`; their versions are part of the stage's key."
        ),
    ] = ()
    workspace: Annotated[
        bool | None,
        Meta(
            description="Whether to keep the stage's folder between runs, with `$AXLETREE_WORKSPACE` in it, for incremental builds; true by default for `compile`. The result must not depend on that folder."
        ),
    ] = None
    parallel: Annotated[
        Literal["auto", "jobs", "tokens", "setuptools"],
        Meta(
            description="How the number of jobs is passed to the build. `tokens`: from a job server; `jobs`: from `MAX_JOBS` and `CMAKE_BUILD_PARALLEL_LEVEL`; `setuptools`: setuptools builds extensions in parallel; `auto`: `tokens` if the tools support a job server, otherwise `jobs`."
        ),
    ] = "auto"
    resources: Annotated[Resources, Meta(description="Resources needed from the machine.")] = Resources()
    relocate: Annotated[
        RelocateTable | None, Meta(description="For `relocate`: where files go, and how names and search paths change.")
    ] = None


class Package(Table, frozen=True, kw_only=True):
    """A package made from a stage's tree, audited and put into an index."""

    from_: Annotated[
        str | None,
        Meta(
            description="Stage whose tree is packaged. Without a stage, this is a metapackage, with requirements but no files."
        ),
    ] = msgspec.field(name="from", default=None)
    formats: Annotated[
        tuple[Literal["wheel", "conda", "zip"], ...],
        Meta(
            min_length=1,
            description="Formats to build. `wheel`: a wheel; `conda`: a conda package in the index root's channel; `zip`: an archive for C++ users, laid out like PyTorch's Libtorch.",
        ),
    ] = ("wheel",)
    axes: Annotated[
        tuple[AxisName, ...] | None,
        Meta(description="Axes that the package may use; by default, those of its stage, or none for a metapackage."),
    ] = None
    when: Annotated[Condition, Meta(description="Only for variants that match: axis -> value or list of values.")] = {}
    files: Annotated[tuple[str, ...], Meta(description="File patterns for what to include.")] = ("**",)
    exclude: Annotated[tuple[str, ...], Meta(description="File patterns for what to exclude.")] = ()
    prefix: Annotated[str, Meta(description="Folder inside the wheel to put the files in.")] = ""
    summary: Annotated[
        str | None,
        Meta(description="One-line summary, for trees without metadata; by default, the recipe's."),
    ] = None
    local: Annotated[
        str | None,
        Meta(
            description="Local version label, such as `torch.{torch.minor}.{gpu}`. Separate numbers with dots, so that 2.9 sorts below 2.13."
        ),
    ] = None
    build_tag: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Build number in the wheel's file name.")
    ] = None
    requires: Annotated[
        tuple[str, ...],
        Meta(
            description="Requirements added to the metadata, such as `torch=={torch}`. A requirement replaces the project's own requirement on the same distribution and may only narrow it."
        ),
    ] = ()
    requires_python: Annotated[
        str | None, Meta(description="Supported Python versions, if the tree's own metadata does not specify any.")
    ] = None
    relabel: Annotated[
        bool,
        Meta(
            description="Whether name, version, `requires-python` and `requires` override different values in the built metadata; otherwise a difference is an error."
        ),
    ] = False
    bundle: Annotated[
        bool,
        Meta(
            description="Whether to copy host libraries into the wheel if it needs them and no distribution provides them."
        ),
    ] = False
    index: Annotated[
        str, Meta(description="Index root inside the output folder, such as `torch-{torch.minor}/{gpu}`.")
    ] = "."
    glibc: Annotated[
        str | None,
        Meta(
            description="Highest glibc version that the wheel may need, such as `2.28`; a wheel that needs a later version fails the audit."
        ),
    ] = None
    provided_by: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="Shared libraries that other distributions provide: distribution -> SONAME patterns."),
    ] = {}
    conda: Annotated[CondaTable, Meta(description="Settings of the conda package.")] = CondaTable()
    waive: Annotated[
        tuple[Waiver, ...], Meta(description="Findings of the audit that are accepted, each with its reason.")
    ] = ()


class Test(Table, frozen=True, kw_only=True):
    """Checks to run in a fresh environment with the built packages, installed from the index."""

    packages: Annotated[tuple[str, ...], Meta(min_length=1, description="Packages under test.")]
    axes: Annotated[
        tuple[AxisName, ...] | None,
        Meta(description="Axes that the test may use; by default, those of its packages and environment."),
    ] = None
    environment: Annotated[str, Meta(description="Locked environment with everything else that the test needs.")] = (
        "test"
    )
    installers: Annotated[
        tuple[Literal["pip", "uv", "conda"], ...],
        Meta(
            min_length=1,
            description="Clients to install with, each in a fresh environment. Each client uses the packages in its format; `conda` means py-rattler.",
        ),
    ] = ("pip", "uv")
    image: Annotated[
        str | None, Meta(description="Image to import the modules and run the commands in, as in `stages`.")
    ] = None
    imports: Annotated[tuple[str, ...], Meta(description="Modules that must be importable.")] = ()
    files: Annotated[
        tuple[str, ...],
        Meta(
            description="Files and folders for the commands, relative to the recipe. They are copied into one folder: `test/data` becomes `data`."
        ),
    ] = ()
    commands: Annotated[
        tuple[str, ...],
        Meta(description="Shell lines, run in the folder of the files with the environment's programs first on PATH."),
    ] = ()
    resources: Annotated[Resources, Meta(description="Resources needed from the machine.")] = Resources()


RECIPE_SCHEMA: Literal[1] = 1


class Recipe(Table, frozen=True, kw_only=True):
    """A recipe file."""

    name: Annotated[Name, Meta(description="Name of the project. Recipes without stages can omit it.")]
    version: Annotated[
        str, Meta(description="Version (PEP 440). Recipes without stages can omit it, except for `source.pypi`.")
    ]
    source: Annotated[Source, Meta(description="Location of the source. Files with only environments can omit it.")]
    axes: Annotated[
        dict[AxisName, Annotated[tuple[str, ...], Meta(min_length=1)]],
        Meta(
            description="Axis -> its values. `python`, `platform`, `gpu` and `torch` have a predefined meaning; other names are free. The value `none` means that the axis does not apply, and is left out of ids."
        ),
    ] = {}
    data: Annotated[
        tuple[str, ...],
        Meta(
            description="Files with more `properties` and `presets`, relative to the recipe. They may cover axis values that the recipe does not use."
        ),
    ] = ()
    properties: Annotated[
        Properties,
        Meta(
            description='Properties of axis values, for placeholders: axis -> value -> property -> text. `[properties.gpu.cu130] arch-list = "8.0;9.0"` defines `{gpu.arch-list}`. A value may be a pattern, `"cu12*"`: an exact value takes precedence over a pattern, a longer pattern over a shorter one, and the recipe over data files.'
        ),
    ] = {}
    presets: Annotated[
        dict[Name, Preset],
        Meta(description="Build matrices of other projects, for `matrix --preset`; they affect nothing else."),
    ] = {}
    extends: Extends = None
    remove: Removed = ()
    schema: Annotated[Literal[1], Meta(description="Version of the recipe format.")] = RECIPE_SCHEMA
    summary: Annotated[str, Meta(description="One-line summary of the project.")] = ""
    license: Annotated[
        str | None, Meta(description="SPDX license expression, for packages whose tree has no metadata.")
    ] = None
    matrix: Annotated[Matrix, Meta(description="How axis values combine.")] = Matrix()
    sources: Annotated[
        dict[Name, ExtraSource],
        Meta(description="Pinned sources and files beside `source`, by name; each is fetched once, for all variants."),
    ] = {}
    patches: Annotated[tuple[Patch, ...], Meta(description="Patches, applied in order.")] = ()
    checkouts: Annotated[
        dict[Name, Checkout],
        Meta(description="Git repositories that `axletree source sync` checks out next to each other."),
    ] = {}
    recipes: Annotated[
        dict[Name, Import], Meta(description="Other recipes whose trees and packages this one uses, by name.")
    ] = {}
    images: Annotated[dict[Name, Image], Meta(description="Root file systems by name, for `axletree image make`.")] = {}
    environments: Annotated[dict[Name, Environment], Meta(description="Python environments by name.")] = {}
    stages: Annotated[
        dict[Name, Stage],
        Meta(description="Stages by name. If no stage has an `action`, they are derived from the project."),
    ] = {}
    packages: Annotated[dict[Name, Package], Meta(description="Packages by distribution name.")] = {}
    tests: Annotated[dict[Name, Test], Meta(description="Tests by name.")] = {}
    override: Annotated[tuple[Override, ...], Meta(description="Changes for some variants, applied in order.")] = ()
