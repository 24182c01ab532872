"""Which build system a source tree has, and what it can do: decided from the tree, with the evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from axletree.buildsystem.pytorch.forwarding import Era as Rules
from axletree.recipe.toml import table_of, tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Driver = Literal["setup.py", "scikit-build-core", "cmake", "pep517"]
"""``setup.py``: a setup.py that runs CMake as PyTorch's does to 2.13; ``scikit-build-core``: PyTorch from 2.14, and
many others; ``cmake``: CMakeLists.txt alone; ``pep517``: any other Python project, which only its backend can build."""

TELLING_FILES = (
    "pyproject.toml",
    "setup.py",
    "CMakeLists.txt",
    "c10/CMakeLists.txt",
    "cmake/EnvVarForwarding.cmake",
)
"""Files to hand to :func:`detect_era`, below the tree; those that exist."""

_RUNS_CMAKE = re.compile(
    r"setup_helpers\.cmake|CMAKE_INSTALL_PREFIX|['\"]cmake['\"]|\bcmake\b(?:(?!\bcmake\b).)*--build"
)
_ONLY_CONFIGURES = re.compile(r"cmake[-_]only", re.IGNORECASE)
"""How a setup.py is told to configure and stop, which is what makes it one of PyTorch's kind."""


class Era(msgspec.Struct, frozen=True, kw_only=True):
    """How a tree is built."""

    driver: Driver
    evidence: tuple[str, ...]
    """Why, a sentence each, naming the file."""
    pytorch: bool = False
    """It is PyTorch's own tree: its environment variables are forwarded to CMake by PyTorch's rules."""
    rules: Rules | None = None
    """Whose rules make CMake variables of the environment; ``None`` where the tree is not PyTorch's."""
    libtorch_wheel: bool = False
    """``BUILD_LIBTORCH_WHL=1`` builds the part that is for any Python."""
    libtorchless: bool = False
    """``BUILD_PYTHON_ONLY=1`` builds the part for one Python against libraries that are there."""


def detect_era(texts: Mapping[str, str]) -> Era:
    """Decide from the texts of :data:`TELLING_FILES` that the tree has.

    A tree without any of them is ``pep517``: its backend will say what is wrong.
    """
    driver, evidence = _driver(table_of(tables_of(texts.get("pyproject.toml", "")), "build-system"), texts)
    setup, listing = texts.get("setup.py", ""), texts.get("CMakeLists.txt", "")
    everything = "\n".join(texts.values())
    pytorch = "c10/CMakeLists.txt" in texts and "Caffe2" in listing
    return Era(
        driver=driver,
        evidence=evidence,
        pytorch=pytorch,
        rules=_rules(driver, texts) if pytorch else None,
        libtorch_wheel="BUILD_LIBTORCH_WHL" in everything,
        libtorchless="BUILD_LIBTORCHLESS" in everything and ("BUILD_PYTHON_ONLY" in everything or not setup),
    )


def _rules(driver: Driver, texts: Mapping[str, str]) -> Rules | None:
    if driver == "setup.py":
        return "setup.py and CMake" if "cmake/EnvVarForwarding.cmake" in texts else "setup.py"
    return "scikit-build-core" if driver == "scikit-build-core" else None


def _driver(system: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[Driver, tuple[str, ...]]:
    backend = str(system.get("build-backend", ""))
    said = f"pyproject.toml: build-backend is {backend}" if backend else "no build-backend is set"
    if backend.startswith("scikit_build_core.build"):
        return "scikit-build-core", (said,)
    if "backend-path" in system and "scikit-build-core" in str(system.get("requires", "")):
        return "scikit-build-core", (said, "the backend is in the source tree and requires scikit-build-core")
    setup = texts.get("setup.py", "")
    if setup and "CMakeLists.txt" in texts and _RUNS_CMAKE.search(setup):
        if _ONLY_CONFIGURES.search(setup):
            return "setup.py", (said, "setup.py runs CMake, and can stop after configuring")
        return "pep517", (said, "setup.py runs CMake in its own way")
    if backend:
        return "pep517", (said,)
    if setup:
        return "pep517", ("setup.py uses setuptools, which does not run CMake",)
    if "CMakeLists.txt" in texts:
        return "cmake", ("CMakeLists.txt exists without a Python project",)
    return "pep517", ("no known build system was found",)
