"""Rules about conda environments: what is active, in which order, and what it hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.host.python import Conda
from axletree.check.rules.host.sample import GCC, HEALTHY, on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined

_ACTIVE = Conda(
    prefix="~/conda/envs/torch", level=1, stack=(), on_path=("~/conda/envs/torch/bin", "~/conda/condabin"), packages={}
)


def _twice(facts: Examined) -> Iterator[Found]:
    conda = facts.host.python.conda
    if conda is None or conda.prefix in (None, "none"):
        return
    folders = list(conda.on_path or ())
    again = sorted({folder for folder in folders if folders.count(folder) > 1})
    if again or conda.prefix in (conda.stack or ()):
        message = (
            f"{(again or [conda.prefix])[0]} was activated twice: its paths were prepended twice, and one `conda "
            "deactivate` removes only one copy"
        )
        yield Found("conda", message, evidence=tuple(folders))


def _nested(facts: Examined) -> Iterator[Found]:
    conda = facts.host.python.conda
    if conda is None or conda.prefix in (None, "none") or not conda.on_path:
        return
    if conda.on_path[0].removesuffix("/bin") != conda.prefix:
        message = f"the active conda environment is {conda.prefix}, but {conda.on_path[0]} comes first on PATH"
        yield Found("PATH", message)


def _venv_in_conda(facts: Examined) -> Iterator[Found]:
    pythons = facts.host.python
    conda = pythons.conda
    if conda is not None and conda.prefix not in (None, "none") and pythons.venv not in (None, "none"):
        message = f"a virtual environment ({pythons.venv}) and a conda environment ({conda.prefix}) are both active"
        yield Found("VIRTUAL_ENV", message)


def _conda_library_path(facts: Examined) -> Iterator[Found]:
    conda, path = facts.host.python.conda, facts.host.libraries.search_path or ()
    if conda is None or conda.prefix in (None, "none"):
        return
    own = f"{conda.prefix}/lib"
    if own in path:
        message = (
            f"LD_LIBRARY_PATH contains {own}, so system programs load the environment's libraries (libstdc++, "
            "OpenSSL, ncurses)"
        )
        yield Found("LD_LIBRARY_PATH", message)


def _foreign_compiler(facts: Examined) -> Iterator[Found]:
    conda = facts.host.python.conda
    compiler = next((each for each in facts.host.toolchain.compilers or () if each.language == "c++"), None)
    if conda is None or conda.prefix in (None, "none") or compiler is None or not conda.packages:
        return
    has = next((name for name in conda.packages if name.startswith(("gxx_", "gxx-", "clangxx"))), None)
    if has is not None and not compiler.path.startswith(f"{conda.prefix}/"):
        message = f"the environment has its own compiler ({has} {conda.packages[has]}), but builds use {compiler.path}"
        yield Found(
            compiler.path,
            message,
            fix="$ conda deactivate && conda activate ENVIRONMENT\nor set the compiler: export CC=... CXX=...",
        )


def _sysroot(facts: Examined) -> Iterator[Found]:
    conda, system = facts.host.python.conda, facts.host.system
    version = next(
        (
            value
            for name, value in ((conda.packages or {}) if conda else {}).items()
            if name.startswith("sysroot_linux")
        ),
        "",
    )
    if version and system.libc_version and numbers(version) > numbers(system.libc_version):
        message = (
            f"the environment's sysroot has glibc {version.split()[0]}, but the system has "
            f"{system.libc_version}, so programs built in the environment do not start on this system"
        )
        yield Found("sysroot", message)


def _active(fields: dict[str, object] | None = None, **groups: dict[str, object]) -> Examined:
    """A healthy host in which a conda environment is active."""
    conda = msgspec.structs.replace(_ACTIVE, **(fields or {}))
    python: dict[str, object] = {"conda": conda, "venv": "none", "venv_on_path": None}
    return on(HEALTHY, None, python=python, **groups)


CONDA_ENVIRONMENT_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="conda/activated-twice",
        severity="warning",
        title="A conda environment was activated twice",
        references=('conda, "Managing environments", nested activation',),
        why="PATH, LD_LIBRARY_PATH and compiler flags contain the environment's folders twice, and deactivating "
        "removes only one copy.",
        fix=(
            "open a new shell and run `conda activate` only once; if a script of yours sets variables, put it "
            "in etc/conda/activate.d instead of activating again"
        ),
        check=_twice,
        cases=lambda: (
            fires(
                "an environment that is on PATH twice",
                _active({"on_path": ("~/conda/envs/torch/bin", "~/conda/envs/torch/bin"), "level": 2}),
            ),
            silent("once", _active()),
        ),
    ),
    Rule(
        id="conda/not-first",
        severity="warning",
        title="A different environment comes first on PATH",
        references=('conda, "Managing environments", nested activation',),
        why="CONDA_PREFIX points to one environment and PATH to another, so builds combine headers from one with "
        "the compiler from the other.",
        fix="activate the environment again in a new shell",
        check=_nested,
        cases=lambda: (
            fires("the base environment first", _active({"on_path": ("~/conda/bin", "~/conda/envs/torch/bin")})),
            silent("the active environment first", _active()),
        ),
    ),
    Rule(
        id="conda/venv-inside",
        severity="info",
        title="A virtual environment is active inside a conda environment",
        references=('conda, "Managing environments"',),
        why="Python packages come from the virtual environment, but libraries and headers come from the conda "
        "environment, which is usually unintended.",
        fix="$ deactivate\nor\n$ conda deactivate",
        check=_venv_in_conda,
        cases=lambda: (
            fires("both", on(python={"conda": _ACTIVE, "venv": "~/.venv"})),
            silent("only a conda environment", _active()),
        ),
    ),
    Rule(
        id="conda/library-path",
        severity="warning",
        title="LD_LIBRARY_PATH includes the conda environment's libraries",
        references=("conda-forge, knowledge base", 'conda-build, "Making packages relocatable"'),
        why="The environment's own programs do not need the variable, and all other programs load these libraries "
        "too: the "
        "system's git, cmake and compilers fail with missing symbols, and ROCm and CUDA load a different "
        "libstdc++.",
        fix=(
            "remove the folder from LD_LIBRARY_PATH; if your own libraries need it, link them with an RPATH to "
            "it instead"
        ),
        check=_conda_library_path,
        cases=lambda: (
            fires("the environment's lib folder", _active(libraries={"search_path": ("~/conda/envs/torch/lib",)})),
            silent("LD_LIBRARY_PATH not set", _active()),
        ),
    ),
    Rule(
        id="conda/compiler-of-system",
        severity="warning",
        title="Builds use the system's compiler instead of the environment's",
        references=('conda-forge, knowledge base, "Compilers"',),
        why="The environment's libraries were built with its own sysroot and libstdc++; files linked by a "
        "different compiler may not load.",
        fix="activate the environment again to set CC and CXX",
        check=_foreign_compiler,
        cases=lambda: (
            fires("gxx installed, but /usr/bin/c++ used", _active({"packages": {"gxx_linux-64": "13.3.0"}})),
            silent(
                "gxx used",
                _active(
                    {"packages": {"gxx_linux-64": "13.3.0"}},
                    toolchain={
                        "compilers": (
                            msgspec.structs.replace(GCC, path="~/conda/envs/torch/bin/x86_64-conda-linux-gnu-c++"),
                        )
                    },
                ),
            ),
        ),
    ),
    Rule(
        id="conda/sysroot-newer",
        severity="warning",
        title="The environment's sysroot has a newer glibc than the system",
        references=("conda-forge, knowledge base",),
        why="Programs linked against the sysroot need symbols that this system's C library does not provide.",
        fix="install a sysroot that is not newer than the system's glibc:\n$ conda install 'sysroot_linux-64<=SYSTEM'",
        check=_sysroot,
        cases=lambda: (
            fires(
                "a glibc 2.39 sysroot on a glibc 2.28 system",
                _active({"packages": {"sysroot_linux-64": "2.39"}}, system={"libc_version": "2.28"}),
            ),
            silent("sysroot 2.28", _active({"packages": {"sysroot_linux-64": "2.28"}})),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: conda."""
