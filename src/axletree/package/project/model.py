"""What is known of a project: each fact with the place that says so."""

from __future__ import annotations

from typing import Literal

import msgspec

Backend = Literal[
    "setuptools", "scikit-build-core", "meson-python", "maturin", "hatchling", "flit", "pdm", "poetry", "other"
]
Language = Literal["C", "C++", "CUDA", "HIP", "Fortran", "Cython", "Rust"]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and its place."""

    value: str
    file: str = ""
    """Path relative to the project's folder; empty if no file states it."""
    line: int | None = None
    """Counted from 1."""
    why: str = ""
    """An explanation, if the place is not enough."""

    @property
    def place(self) -> str:
        """``setup.py:8``; what no file says, says why."""
        if not self.file:
            return self.why
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement of a build that the project does not declare."""

    requirement: str
    why: str
    program: str = ""
    """A program of the host that replaces it; empty if there is none."""


class ProjectVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a project, as far as it is known."""

    stated: Found | None = None
    """The version, if a file states it."""
    from_git: str = ""
    """The tool that reads it from git, such as ``setuptools_scm``; empty if there is none."""
    variable: str = ""
    """The variable that passes the version to such a tool without git."""


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """How a project's build uses PyTorch and GPUs."""

    torch: Found | None = None
    """Where its build compiles against PyTorch."""
    cuda: Found | None = None
    """Where its build compiles CUDA code, or states that it can."""
    hip: Found | None = None
    plain_setuptools: Found | None = None
    """Where its build turns off PyTorch's use of ninja."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project, as described by its files."""

    name: Found
    """As it is written."""
    version: ProjectVersion
    summary: str = ""
    license: Found | None = None
    is_sdist: bool = False
    """Whether it has the metadata that an sdist has."""
    backend: Backend
    backend_at: Found
    """The build backend as written, or the reason for the default."""
    in_tree_backend: bool = False
    requires: tuple[Found, ...]
    """``build-system.requires``, or the default of PEP 518."""
    asked: tuple[Asked, ...] = ()
    """Requirements of a build that the project does not declare."""
    requires_python: Found | None = None
    pythons: tuple[str, ...] = ()
    """Versions that its classifiers name, such as ``3.11``."""
    stable_abi: Found | None = None
    """The oldest Python of its stable ABI, such as ``3.9``: one wheel then works with it and all later ones."""
    compiles: bool = False
    """Whether its wheel contains compiled code, in any language."""
    languages: tuple[Found, ...] = ()
    """Each compiled language, and the first file in it."""
    tools: tuple[Found, ...] = ()
    """Programs of the host that its build calls."""
    linked: tuple[Found, ...] = ()
    """Libraries of the host that setup.py links, as names for ``-l``, without those that every system has."""
    gpu: GpuUse = GpuUse()
    switches: tuple[Found, ...] = ()
    """Variables that its build scripts read."""
    run_requires: tuple[Found, ...] = ()
    test_requires: tuple[Found, ...] = ()
    tests: str = ""
    """Folder with tests for pytest; empty if there is none at the usual places."""
    imports: tuple[Found, ...] = ()
    """Packages and modules in the wheel."""
    compiled: tuple[Found, ...] = ()
    """Names of compiled modules, if they are certain."""
    crates: Literal["", "vendored", "fetched"] = ""
    """Whether the crates of Rust code are in the source or come from a network."""
    system_pybind11: Found | None = None
    """Where its build would use a required header library of the host instead."""
    downloads: tuple[Found, ...] = ()
    """What its build certainly downloads, by its name in CMake or meson; ``why`` has the wrap file that meson reads."""
    notices: tuple[str, ...] = ()
    """What to check before you give the wheel to others, as sentences."""
    unknown: tuple[str, ...] = ()
    """What is not known about the project, as sentences."""
