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
from axletree.recipe.presets import Preset
from axletree.recipe.relocation import Relocate


class Source(Table, frozen=True, kw_only=True):
    """Where the source comes from: exactly one of `pypi`, `url`, `git`, `path` and `wheel`."""

    pypi: Annotated[
        str | None,
        Meta(
            description="Project on the package index; its sdist of the recipe's `version` is taken (.tar.gz, .tgz, .zip, .tar.xz, .tar.bz2, .tar, the first that there is), its hash pinned in the lock."
        ),
    ] = None
    url: Annotated[
        str | None, Meta(description="Address of an archive (.tar.gz, .tar.xz, .tar.bz2, .zip); needs `sha256`.")
    ] = None
    git: Annotated[
        str | None,
        Meta(
            description="Address of a git repository, https:// or file://; needs `ref`. The commit is pinned in the lock."
        ),
    ] = None
    path: Annotated[
        str | None,
        Meta(description="Folder, relative to the recipe. Its content is the input: touching a file changes nothing."),
    ] = None
    wheel: Annotated[
        str | None,
        Meta(
            description="A wheel instead of a source: a path relative to the recipe, or an address (then `sha256` is needed)."
        ),
    ] = None
    sha256: Annotated[Sha256 | None, Meta(description="Digest of the archive or wheel.")] = None
    ref: Annotated[str | None, Meta(description="Tag, branch or commit, for `git`.")] = None
    submodules: Annotated[bool, Meta(description="Whether git submodules are fetched too, recursively.")] = False
    exclude: Annotated[
        tuple[str, ...], Meta(description="For `path`: glob patterns of files that are no part of the source.")
    ] = ()


class Patch(Table, frozen=True, kw_only=True):
    """A patch file that is applied to the source, in the order of the recipe."""

    file: Annotated[str, Meta(description="Patch file, relative to the recipe.")]
    strip: Annotated[int, Meta(ge=0, description="Leading path parts to strip, as `patch -p`.")] = 1
    when: Annotated[Condition, Meta(description="Only for variants that match: axis -> value or list of values.")] = {}


class Environment(Table, frozen=True, kw_only=True):
    """A Python environment with exactly locked content: one pylock file (PEP 751) per variant that it sees."""

    requires: Annotated[tuple[str, ...], Meta(description="Requirements (PEP 508); placeholders allowed.")] = ()
    axes: Annotated[tuple[AxisName, ...], Meta(description="Axes that this environment may see.")] = ("python",)
    python: Annotated[str, Meta(description="Version of the interpreter, such as `3.11` or `3.13t`.")] = "{python}"
    provider: Annotated[
        Literal["venv", "conda", "system"],
        Meta(
            description="Who makes it: `venv`: a virtual environment of wheels, the only one that stages and tests can use; `conda`: a conda prefix, `requires` are match specs; `system`: nothing is installed. The others are for `axletree env`."
        ),
    ] = "venv"
    channels: Annotated[
        tuple[str, ...],
        Meta(description="For `conda`: channels, the first goes first: names, addresses, `file://` folders."),
    ] = ()
    toolkit: Annotated[
        str | None,
        Meta(
            description="For `axletree env`: root folder of the GPU toolkit outside the environment, such as `/opt/rocm`. Default: one in the environment, else what `ROCM_PATH` or `CUDA_HOME` name, else the usual places."
        ),
    ] = None


class Resources(Table, frozen=True, kw_only=True):
    """What a stage needs of the machine. A wish until it has run once: then what was measured counts."""

    cores: Annotated[int, Meta(ge=1, description="Cores that must be free before it starts.")] = 1
    memory: Annotated[str | None, Meta(description="Memory of the whole stage, such as `4 GB`.")] = None
    memory_per_job: Annotated[
        str | None, Meta(description="Memory of one compile process, such as `1.6 GB`; limits how many run at once.")
    ] = None
    disk: Annotated[str | None, Meta(description="Free disk space that it needs, such as `2 GB`.")] = None


class Stage(Table, frozen=True, kw_only=True):
    """A step between the source and the packages."""

    action: Annotated[
        Literal["build", "compile", "run", "relocate", "hipify"],
        Meta(
            description="`build`: a PEP 517 build, its result installed as a tree. `compile`: a CMake build, what it installs is the result. `run`: commands of the recipe that fill `$AXLETREE_OUT`. `relocate`: the tree of its first input, changed so that it loads on a clean host. `hipify`: the source with HIP code made from its CUDA code by its own `tools/amd_build/build_amd.py`, for `source-from` of others."
        ),
    ]
    axes: Annotated[
        tuple[AxisName, ...], Meta(description="Axes that the stage may see. Variants that agree on them share it.")
    ] = ()
    when: Annotated[
        Condition,
        Meta(
            description="Only for variants that match: axis -> value or list of values. Where it is not there, neither are packages of its tree, and stages that name it do without."
        ),
    ] = {}
    environment: Annotated[str | None, Meta(description="Environment whose programs and modules the stage uses.")] = (
        None
    )
    inputs: Annotated[
        tuple[str, ...],
        Meta(description="Stages whose trees it gets, as `$AXLETREE_IN_<NAME>`. Their axes must be a part of its own."),
    ] = ()
    source: Annotated[bool, Meta(description="Whether it gets the (patched) source as its working folder.")] = True
    source_from: Annotated[
        str | None,
        Meta(
            description="Stage whose tree is its source instead of the recipe's, such as a `hipify` stage. Its axes must be a part of its own."
        ),
    ] = None
    directory: Annotated[str, Meta(description="Folder inside the source where it works.")] = "."
    commands: Annotated[
        tuple[str, ...],
        Meta(
            description="Shell lines, under `bash -euo pipefail`: what a `run` stage does; for `build` and `compile`, what is done to the source before it is configured."
        ),
    ] = ()
    config: Annotated[dict[str, str], Meta(description="PEP 517 config settings for `build`.")] = {}
    driver: Annotated[
        Literal["auto", "cmake", "setup.py", "scikit-build-core"],
        Meta(
            description="For `compile`: how the project is configured and built. `cmake`: CMake itself; `setup.py`: PyTorch up to 2.13; `scikit-build-core`: PyTorch from 2.14, and others; `auto`: as the source tells."
        ),
    ] = "auto"
    targets: Annotated[
        tuple[str, ...],
        Meta(
            description="For `compile`: CMake targets that are built. One of them must install something; default is `install`."
        ),
    ] = ()
    options: Annotated[
        dict[CMakeVariable, str],
        Meta(description="For `compile`: CMake variables. A changed one configures the same build folder anew."),
    ] = {}
    expect: Annotated[
        dict[str, str],
        Meta(
            description='For `compile` and `build`: what CMake must have enabled once it has looked for everything, such as `USE_CUDNN = "ON"`; else the stage fails before it compiles.'
        ),
    ] = {}
    prefix: Annotated[
        str,
        Meta(description="For `compile` with driver `cmake`: folder of the result that the project is installed in."),
    ] = ""
    files: Annotated[
        tuple[str, ...],
        Meta(description="For `compile`: glob patterns of the installed files that are the result; default is all."),
    ] = ()
    continues: Annotated[
        str | None,
        Meta(
            description="For `build` and `compile`: one of its inputs, in whose kept build folder it goes on where that is there and of the same source. The result must be the same without it."
        ),
    ] = None
    env: Annotated[
        dict[str, str], Meta(description="Environment variables that are set; a part of the stage's key.")
    ] = {}
    pass_env: Annotated[
        tuple[str, ...],
        Meta(
            description="Variables of your shell that reach the stage; their values are a part of its key. All others are withheld."
        ),
    ] = ()
    tools: Annotated[
        tuple[str, ...],
        Meta(
            description="Programs of the host that it uses, such as `c++` or `cmake`; their versions are a part of its key."
        ),
    ] = ()
    workspace: Annotated[
        bool | None,
        Meta(
            description="Whether the folder of the stage is kept between runs, with `$AXLETREE_WORKSPACE` in it, for incremental builds; default is true for `compile`. The result must be the same without it."
        ),
    ] = None
    parallel: Annotated[
        Literal["auto", "jobs", "tokens", "setuptools"],
        Meta(
            description="How the number of jobs reaches the build: `tokens` of a job server; `jobs`: `MAX_JOBS` and `CMAKE_BUILD_PARALLEL_LEVEL`; `setuptools`: extensions side by side; `auto`: tokens where the tools take them, else jobs."
        ),
    ] = "auto"
    resources: Annotated[Resources, Meta(description="What it needs of the machine.")] = Resources()
    relocate: Annotated[
        Relocate | None, Meta(description="For `relocate`: where files go, and what becomes of names and search paths.")
    ] = None


class Package(Table, frozen=True, kw_only=True):
    """A package made from a stage's tree, audited and put into an index."""

    from_: Annotated[
        str | None,
        Meta(description="Stage whose tree is packed. Without one it is a metapackage: no files, only requirements."),
    ] = msgspec.field(name="from", default=None)
    formats: Annotated[
        tuple[Literal["wheel", "conda", "zip"], ...],
        Meta(
            min_length=1,
            description="What is made of it: `wheel`; `conda`: a conda package in the index root's channel; `zip`: an archive for C++ users, in the layout of PyTorch's Libtorch.",
        ),
    ] = ("wheel",)
    axes: Annotated[
        tuple[AxisName, ...] | None,
        Meta(description="Axes that the package may see; default: those of its stage, none for a metapackage."),
    ] = None
    when: Annotated[Condition, Meta(description="Only for variants that match: axis -> value or list of values.")] = {}
    files: Annotated[tuple[str, ...], Meta(description="Glob patterns of the files that belong to it.")] = ("**",)
    exclude: Annotated[tuple[str, ...], Meta(description="Glob patterns of files that do not.")] = ()
    prefix: Annotated[str, Meta(description="Folder inside the wheel that the files are put under.")] = ""
    summary: Annotated[
        str | None,
        Meta(
            description="One line of description, for trees that bring no metadata of their own; default is the recipe's."
        ),
    ] = None
    local: Annotated[
        str | None,
        Meta(
            description="Local version label, such as `torch.{torch.minor}.{gpu}`. Numbers are parts of their own, so that 2.9 sorts below 2.13."
        ),
    ] = None
    build_tag: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Build number in the wheel's file name.")
    ] = None
    requires: Annotated[
        tuple[str, ...],
        Meta(
            description="Requirements added to the metadata, such as `torch=={torch}`; one takes the place of the project's own on the same distribution, of which it must be a part."
        ),
    ] = ()
    requires_python: Annotated[
        str | None, Meta(description="Python versions, where the tree's own metadata names none.")
    ] = None
    relabel: Annotated[
        bool,
        Meta(
            description="Whether name, version, `requires-python` and `requires` count even where the metadata of what was built says otherwise; else that is an error."
        ),
    ] = False
    index: Annotated[
        str, Meta(description="Index root inside the output folder, such as `torch-{torch.minor}/{gpu}`.")
    ] = "."
    glibc: Annotated[
        str | None,
        Meta(description="Highest glibc version that the wheel may need, such as `2.28`; the audit fails above it."),
    ] = None
    provided_by: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="Shared libraries that other distributions bring: distribution -> patterns of SONAMEs."),
    ] = {}
    conda: Annotated[CondaTable, Meta(description="The package as a conda package.")] = CondaTable()


class Test(Table, frozen=True, kw_only=True):
    """What must work in a fresh environment that holds the built packages, installed from the index."""

    packages: Annotated[tuple[str, ...], Meta(min_length=1, description="Packages under test.")]
    axes: Annotated[
        tuple[AxisName, ...] | None,
        Meta(description="Axes that the test may see; default: those of its packages and environment."),
    ] = None
    environment: Annotated[str, Meta(description="Environment with everything else that is needed, from its lock.")] = (
        "test"
    )
    installers: Annotated[
        tuple[Literal["pip", "uv", "conda"], ...],
        Meta(
            min_length=1,
            description="Clients that install; one fresh environment each. Each takes the packages of its format; `conda` is py-rattler.",
        ),
    ] = ("pip", "uv")
    imports: Annotated[tuple[str, ...], Meta(description="Modules that must import.")] = ()
    files: Annotated[
        tuple[str, ...],
        Meta(
            description="Files for the commands, relative to the recipe; they lie side by side, without their folders."
        ),
    ] = ()
    commands: Annotated[
        tuple[str, ...], Meta(description="Shell lines, run beside the files with the environment's programs first.")
    ] = ()
    resources: Annotated[Resources, Meta(description="What it needs of the machine.")] = Resources()


class Override(Table, frozen=True, kw_only=True):
    """A change for the variants that match: exactly one of `stage`, `environment` and `package` says of what."""

    when: Annotated[
        Condition,
        Meta(
            description="Axis -> value or list of values; default is every variant. Only axes that the changed table may see."
        ),
    ] = {}
    stage: Annotated[
        str | tuple[str, ...] | None,
        Meta(description="Stage that is changed; or a list of them, for what several have in common."),
    ] = None
    environment: Annotated[str | None, Meta(description="Environment that is changed.")] = None
    package: Annotated[
        str | tuple[str, ...] | None, Meta(description="Package that is changed; or a list of them.")
    ] = None
    env: Annotated[dict[str, str], Meta(description="Variables that are added or replaced (stages).")] = {}
    commands: Annotated[tuple[str, ...] | None, Meta(description="Commands instead of the stage's own.")] = None
    config: Annotated[dict[str, str], Meta(description="Config settings that are added or replaced (stages).")] = {}
    options: Annotated[
        dict[CMakeVariable, str], Meta(description="CMake variables that are added or replaced (stages).")
    ] = {}
    expect: Annotated[dict[str, str], Meta(description="Expectations that are added or replaced (stages).")] = {}
    requires: Annotated[tuple[str, ...], Meta(description="Requirements that are added (environments, packages).")] = ()
    conda: Annotated[
        CondaTable | None,
        Meta(description="Lists that are added to, values that replace those of the package's table."),
    ] = None
    tools: Annotated[tuple[str, ...], Meta(description="Programs of the host that are added (stages).")] = ()
    pass_env: Annotated[
        tuple[str, ...], Meta(description="Variables of your shell that reach the stage too (stages).")
    ] = ()
    resources: Annotated[Resources | None, Meta(description="Resources instead of the stage's own.")] = None

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages that are changed."""
        return (self.stage,) if isinstance(self.stage, str) else self.stage or ()

    @property
    def packages(self) -> tuple[str, ...]:
        """Names of the packages that are changed."""
        return (self.package,) if isinstance(self.package, str) else self.package or ()


RECIPE_SCHEMA: Literal[1] = 1


class Recipe(Table, frozen=True, kw_only=True):
    """A recipe file."""

    name: Annotated[Name, Meta(description="Name of the project.")]
    version: Annotated[str, Meta(description="Version of what is built (PEP 440).")]
    source: Annotated[Source, Meta(description="Where the source comes from.")]
    axes: Annotated[
        dict[AxisName, Annotated[tuple[str, ...], Meta(min_length=1)]],
        Meta(
            description="Axis -> its values. `python`, `platform`, `gpu`, `torch` have a meaning of their own; others are free. The value `none` says that there is no such thing, and stands in no id."
        ),
    ] = {}
    data: Annotated[
        tuple[str, ...],
        Meta(
            description="Files with more `properties` and `presets`, relative to the recipe. They may be of values that it does not have."
        ),
    ] = ()
    properties: Annotated[
        Properties,
        Meta(
            description='What texts can read of axis values: axis -> value -> property -> text, as `[properties.gpu.cu130] arch-list = "8.0;9.0"` for `{gpu.arch-list}`. A value may be a pattern, `"cu12*"`: a value goes before a pattern, a longer pattern before a shorter one, and what stands here before data files.'
        ),
    ] = {}
    presets: Annotated[
        dict[Name, Preset], Meta(description="Matrices of others, for `matrix --preset`; they change nothing else.")
    ] = {}
    schema: Annotated[Literal[1], Meta(description="Version of the recipe format.")] = RECIPE_SCHEMA
    summary: Annotated[str, Meta(description="One line about the project.")] = ""
    license: Annotated[str | None, Meta(description="SPDX expression, for packages whose tree brings no metadata.")] = (
        None
    )
    matrix: Annotated[Matrix, Meta(description="How axis values combine.")] = Matrix()
    patches: Annotated[tuple[Patch, ...], Meta(description="Patches, applied in order.")] = ()
    checkouts: Annotated[
        dict[Name, Checkout], Meta(description="Git repositories that `axletree source sync` checks out side by side.")
    ] = {}
    environments: Annotated[dict[Name, Environment], Meta(description="Python environments by name.")] = {}
    stages: Annotated[dict[Name, Stage], Meta(description="Steps by name.")] = {}
    packages: Annotated[dict[Name, Package], Meta(description="Packages by distribution name.")] = {}
    tests: Annotated[dict[Name, Test], Meta(description="Tests by name.")] = {}
    override: Annotated[tuple[Override, ...], Meta(description="Changes for some variants, applied in order.")] = ()
