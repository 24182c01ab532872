"""What is known of a project: each fact with the place that says so."""

from __future__ import annotations

from typing import Literal

import msgspec

Backend = Literal[
    "setuptools", "scikit-build-core", "meson-python", "maturin", "hatchling", "flit", "pdm", "poetry", "other"
]
Language = Literal["C", "C++", "CUDA", "HIP", "Fortran", "Cython", "Rust"]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and where it stands."""

    value: str
    file: str = ""
    """Path from the project's folder; empty where no file says it."""
    line: int | None = None
    """Counted from 1."""
    why: str = ""
    """What the place does not tell by itself."""

    @property
    def place(self) -> str:
        """``setup.py:8``; what no file says, says why."""
        if not self.file:
            return self.why
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement that a build has beyond what the project declares."""

    requirement: str
    why: str
    program: str = ""
    """A program of the host that makes it needless; empty where none does."""


class ProjectVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a project's version."""

    stated: Found | None = None
    """The version, where a file says it."""
    from_git: str = ""
    """The tool that takes it from git, such as ``setuptools_scm``; empty where none does."""
    variable: str = ""
    """The variable that tells such a tool the version where there is no git."""


class GpuUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a project's build does with PyTorch and GPUs."""

    torch: Found | None = None
    """Where it compiles against PyTorch."""
    cuda: Found | None = None
    """Where it compiles CUDA code, or says that it can."""
    hip: Found | None = None
    plain_setuptools: Found | None = None
    """Where it turns PyTorch's use of ninja off."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project, as far as its files tell."""

    name: Found
    """As written."""
    version: ProjectVersion
    summary: str = ""
    license: Found | None = None
    is_sdist: bool = False
    """Whether it has the metadata that an sdist has."""
    backend: Backend
    backend_at: Found
    """The build backend as written, or why there is a default."""
    in_tree_backend: bool = False
    requires: tuple[Found, ...]
    """``build-system.requires``, or the default of PEP 518."""
    asked: tuple[Asked, ...] = ()
    """What a build needs beyond them."""
    requires_python: Found | None = None
    pythons: tuple[str, ...] = ()
    """Versions that its classifiers name, such as ``3.11``."""
    stable_abi: Found | None = None
    """The oldest Python of its stable ABI, such as ``3.9``: then one wheel is for all from there on."""
    compiles: bool = False
    """Whether its wheel has compiled code, in whatever language."""
    languages: tuple[Found, ...] = ()
    """One of each compiled language, and the first file of it."""
    tools: tuple[Found, ...] = ()
    """Programs of the host that its build calls."""
    linked: tuple[Found, ...] = ()
    """Libraries of the host that it is linked with, as ``-l`` has them, less those that every system has."""
    gpu: GpuUse = GpuUse()
    switches: tuple[Found, ...] = ()
    """Variables that its build scripts read."""
    run_requires: tuple[Found, ...] = ()
    test_requires: tuple[Found, ...] = ()
    imports: tuple[Found, ...] = ()
    """Packages and modules that the wheel brings."""
    compiled: tuple[Found, ...] = ()
    """Names of compiled modules, where they are certain."""
    crates: Literal["", "vendored", "fetched"] = ""
    """Whether Rust's crates are in the source, or come from a network."""
    system_pybind11: Found | None = None
    """Where its build would take a header library that it requires from the host instead."""
    unknown: tuple[str, ...] = ()
    """What could not be found out, as sentences."""
