"""Which build system a source tree has, and what it can do: decided from the tree, with the evidence."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Driver = Literal["setup.py", "scikit-build-core", "cmake", "pep517"]
"""``setup.py``: a setup.py that runs CMake by itself (PyTorch to 2.13); ``scikit-build-core``: PyTorch from 2.14, and
many others; ``cmake``: CMakeLists.txt alone; ``pep517``: any other Python project, which only its backend can build."""

TELLING_FILES = (
    "pyproject.toml",
    "setup.py",
    "CMakeLists.txt",
    "c10/CMakeLists.txt",
    "version.txt",
    "tools/setup_helpers/cmake.py",
    "tools/amd_build/build_amd.py",
    ".ci/docker/triton_version.txt",
    ".ci/docker/ci_commit_pins/triton.txt",
)
"""Files to hand to :func:`detect_era`, below the tree; those that exist."""

_RUNS_CMAKE = re.compile(
    r"setup_helpers\.cmake|CMAKE_INSTALL_PREFIX|cmake_build_dir|['\"]cmake['\"]|\bcmake\b.*--build"
)


class Era(msgspec.Struct, frozen=True, kw_only=True):
    """How a tree is built."""

    driver: Driver
    evidence: tuple[str, ...]
    """Why, a sentence each, naming the file."""
    pytorch: bool = False
    """It is PyTorch's own tree: its environment variables are forwarded to CMake by PyTorch's rules."""
    version: str | None = None
    """First line of ``version.txt``."""
    libtorch_wheel: bool = False
    """``BUILD_LIBTORCH_WHL=1`` builds the part that is for any Python."""
    libtorchless: bool = False
    """``BUILD_PYTHON_ONLY=1`` builds the part for one Python against libraries that are there."""
    hipify: bool = False
    """``tools/amd_build/build_amd.py`` turns CUDA sources into HIP ones."""
    build_directory: str | None = None
    """The folder that the project builds in, where it says so."""


def detect_era(texts: Mapping[str, str]) -> Era:
    """Decide from the texts of :data:`TELLING_FILES` that the tree has.

    A tree without any of them is ``pep517``: its backend will say what is wrong.
    """
    project = _project(texts.get("pyproject.toml"))
    backend = str(project.get("build-system", {}).get("build-backend", ""))
    setup = texts.get("setup.py", "")
    tool = project.get("tool", {})
    settings = tool.get("scikit-build", {}) if isinstance(tool, dict) else {}
    driver, evidence = _driver(backend, setup, texts)
    listing = texts.get("CMakeLists.txt", "")
    return Era(
        driver=driver,
        evidence=evidence,
        pytorch="c10/CMakeLists.txt" in texts and "Caffe2" in listing,
        version=texts.get("version.txt", "").strip().partition("\n")[0] or None,
        libtorch_wheel="BUILD_LIBTORCH_WHL" in setup or "BUILD_LIBTORCH_WHL" in listing,
        libtorchless="BUILD_LIBTORCHLESS" in listing or "BUILD_LIBTORCHLESS" in texts.get("c10/CMakeLists.txt", ""),
        hipify="tools/amd_build/build_amd.py" in texts,
        build_directory="build" if driver == "setup.py" else settings.get("build-dir") or None,
    )


def _project(text: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError:
        return {}


def _driver(backend: str, setup: str, texts: Mapping[str, str]) -> tuple[Driver, tuple[str, ...]]:
    if backend.startswith("scikit_build_core"):
        return "scikit-build-core", (f"pyproject.toml: build-backend is {backend}",)
    if setup and _RUNS_CMAKE.search(setup) and ("CMakeLists.txt" in texts):
        evidence = [f"pyproject.toml: build-backend is {backend}"] if backend else ["there is no build-backend"]
        return "setup.py", (*evidence, "setup.py runs CMake")
    if backend:
        return "pep517", (f"pyproject.toml: build-backend is {backend}",)
    if setup:
        return "pep517", ("setup.py: setuptools, which doesn't run CMake",)
    if "CMakeLists.txt" in texts:
        return "cmake", ("CMakeLists.txt, and no Python project beside it",)
    return "pep517", ("nothing tells how it is built",)
