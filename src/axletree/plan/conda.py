"""Conda environments in a plan: their steps, and the programs that they bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.plan.actions.environment import EnvironmentParameters
from axletree.plan.step import Step
from axletree.recipe.conda_locks import exports_of, in_key, python_of, spec_name, without_exports
from axletree.recipe.locks import without_urls
from axletree.recipe.target import TargetResources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.recipe.conda_locks import CondaLock
    from axletree.recipe.environments import TargetEnvironment
    from axletree.recipe.target import Target, TargetPackage, TargetStage

_UNPACKED = 8
"""Room that an environment takes, as a multiple of its packages: they, their content, and a link or copy of it."""
_Kind = Literal["weak", "strong"]
_STRONG: tuple[_Kind, ...] = ("strong",)
_ALL: tuple[_Kind, ...] = ("strong", "weak")
_C = ("gcc", "clang", "c-compiler")
_CXX = ("gxx", "clangxx", "cxx-compiler")
_PROGRAMS = {
    "cc": _C,
    "gcc": _C,
    "clang": _C,
    "c++": _CXX,
    "g++": _CXX,
    "clang++": _CXX,
    "gfortran": ("gfortran", "fortran-compiler"),
    "nvcc": ("cuda-nvcc", "cuda-compiler"),
    "rustc": ("rust",),
    "cargo": ("rust",),
    "flatc": ("flatbuffers",),
    "protoc": ("libprotobuf",),
}
"""Program -> beginnings of the names of conda packages that have it: ``gxx``, ``gxx_linux-64``."""


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """What the environments of a stage bring, as far as the names of packages tell."""

    packages: frozenset[str]

    def has(self, tool: str) -> bool:
        """Whether a program comes from there: then the host need not have it, and its own does not matter."""
        names = _PROGRAMS.get(tool, ())
        return tool in self.packages or any(package.partition("_")[0] in names for package in self.packages)

    @property
    def compilers(self) -> bool:
        """Whether they have compilers for C and C++."""
        return self.has("cc") and self.has("c++")


def brought_by(
    stage: TargetStage, environments: Mapping[str, TargetEnvironment], locks: Mapping[str, CondaLock]
) -> Brought | None:
    """What a stage's conda environments bring; ``None`` if it has none."""
    named = [environments[name] for name in (stage.environment, stage.host) if name is not None]
    found = [locks[each.lock] for each in named if each.provider == "conda"]
    if not found:
        return None
    return Brought(packages=frozenset(package.name for lock in found for package in lock.packages))


def exported_to(package: TargetPackage, target: Target, locks: Mapping[str, CondaLock]) -> tuple[str, ...]:
    """What a conda package depends on because of the conda environments that its stage is built in.

    As in conda-build: strong run exports of the build environment, all of the host environment; of packages that the
    recipe names there, not of what those depend on.
    """
    environments = {each.name: each for each in target.environments if each.provider == "conda"}
    found: dict[str, None] = {}
    for stage in _built_in(package.stage, target):
        host = stage.host or stage.environment
        for name, kinds in ((stage.environment, _STRONG), (host, _ALL)):
            environment = environments.get(name or "")
            if environment is not None:
                lock = without_exports(locks[environment.lock], package.ignore_run_exports)
                found |= dict.fromkeys(text for kind in kinds for text in exports_of(lock, kind))
    return tuple(text for text in found if spec_name(text) not in package.ignore_run_exports)


def is_linked(package: TargetPackage, target: Target) -> bool:
    """Whether the stage of a package is built in conda environments."""
    conda = {each.name for each in target.environments if each.provider == "conda"}
    return any({stage.host, stage.environment} & conda for stage in _built_in(package.stage, target))


def _built_in(name: str | None, target: Target) -> Iterator[TargetStage]:
    """The stage of a package; of one that only moves files, those whose files it moves."""
    stages = {stage.name: stage for stage in target.stages}
    waiting = [name]
    while waiting:
        stage = stages.get(waiting.pop() or "")
        if stage is not None:
            yield stage
            waiting += stage.inputs if stage.action == "relocate" else ()


def conda_step(environment: TargetEnvironment, lock: CondaLock, needs: Mapping[str, str]) -> Step:
    """The step that fetches the packages of a conda environment; ``needs`` are the wheels of imported recipes."""
    return Step(
        name=f"environment:{environment.name}",
        action="environment",
        axes=environment.axes,
        parameters=EnvironmentParameters(
            python={},
            version=python_of(lock.packages) or "",
            platform=lock.platform,
            wheels=without_urls(lock.wheels),
            conda=in_key(lock.packages),
        ),
        needs=dict(needs),
        resources=TargetResources(disk=_UNPACKED * lock.size or None),
    )
