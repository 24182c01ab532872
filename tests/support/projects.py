"""Small projects of each build backend, as paths and texts: what people's own look like, in a few lines."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

from axletree.package.project.tree import SourceTree, is_told

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SETUPTOOLS = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools>=69"]\nbuild-backend = "setuptools.build_meta"\n',
    "setup.py": """\
import os
import sys
from setuptools import Extension, setup
modules = [Extension("gizmo._fast", ["gizmo/_fast.c"])]
if sys.platform == "win32":
    modules.append(Extension("gizmo._windows", ["gizmo/_windows.c"]))
if os.environ.get("GIZMO_DEBUG"):
    pass
setup(
    name="gizmo",
    version="1.2",
    python_requires=">=3.9",
    packages=["gizmo"],
    install_requires=["numpy>=1.25"],
    extras_require={"test": ["pytest", "hypothesis"]},
    ext_modules=modules,
)
""",
    "gizmo/__init__.py": "",
    "gizmo/_fast.c": "",
    "gizmo/_windows.c": "",
    "tests/test_gizmo.cpp": "",
}
STABLE = {
    "setup.py": """\
import setuptools
kwargs = {}
kwargs["ext_modules"] = [setuptools.Extension("gizmo.speed", sources=["gizmo/speed.c"], py_limited_api=True)]
kwargs["options"] = {"bdist_wheel": {"py_limited_api": "cp310"}}
setuptools.setup(name="gizmo", version="2.0", packages=["gizmo"], **kwargs)
""",
    "gizmo/__init__.py": "",
    "gizmo/speed.c": "",
}
SCIKIT_BUILD = {
    "pyproject.toml": """\
[build-system]
requires = ["scikit-build-core>=0.11", "pybind11"]
build-backend = "scikit_build_core.build"

[project]
name = "Gizmo.Core"
version = "0.3"
requires-python = ">=3.10"
dependencies = ["numpy"]
license = "MIT"

[project.optional-dependencies]
test = ["pytest>=8"]
""",
    "CMakeLists.txt": "project(gizmo LANGUAGES CXX)\n",
    "src/gizmo_core/__init__.py": "",
    "src/gizmo.cpp": "",
}
MESON = {
    "pyproject.toml": """\
[build-system]
requires = ["meson-python>=0.15", "pybind11"]
build-backend = "mesonpy"

[project]
name = "gizmo"
dynamic = ["version"]
""",
    "meson.build": "project(\n  'gizmo',\n  'cpp',\n  version: '4.5.6',\n)\npybind11 = dependency('pybind11')\n",
    "lib/gizmo/__init__.py": "",
    "src/meson.build": "py3.extension_module(\n  '_gizmo',\n  ['a.cpp'],\n  install: true,\n  subdir: 'gizmo',\n)\n",
    "src/a.cpp": "",
}
MATURIN = {
    "pyproject.toml": """\
[build-system]
requires = ["maturin>=1,<2"]
build-backend = "maturin"

[project]
name = "gizmo"
dynamic = ["version"]

[tool.maturin]
module-name = "gizmo._rust"
python-source = "python"
""",
    "Cargo.toml": """\
[package]
name = "gizmo"
version = "0.7.1"

[dependencies]
pyo3 = { version = "0.25", features = ["extension-module", "abi3-py39"] }
""",
    "Cargo.lock": "",
    "src/lib.rs": "",
    "python/gizmo/__init__.py": "",
}
HATCHLING = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling", "hatch-vcs"]
build-backend = "hatchling.build"

[project]
name = "gizmo-tools"
dynamic = ["version"]
requires-python = ">=3.10"
dependencies = []

[tool.hatch.version]
source = "vcs"

[tool.hatch.build.targets.wheel]
packages = ["src/gizmo_tools"]

[tool.hatch.build.hooks.mypyc]
dependencies = ["hatch-mypyc"]
""",
    "src/gizmo_tools/__init__.py": "",
}
FLIT = {
    "pyproject.toml": """\
[build-system]
requires = ["flit_core>=3.4"]
build-backend = "flit_core.buildapi"

[project]
name = "gizmo"
dynamic = ["version", "description"]
""",
    "gizmo/__init__.py": '"""A gizmo."""\n\n__version__ = "3.1"\n',
}
PDM = {
    "pyproject.toml": """\
[build-system]
requires = ["pdm-backend"]
build-backend = "pdm.backend"

[project]
name = "gizmo"
dynamic = ["version"]

[tool.pdm.version]
source = "scm"

[dependency-groups]
dev = ["pytest"]
""",
    "src/gizmo/__init__.py": "",
}
POETRY = {
    "pyproject.toml": """\
[tool.poetry]
name = "gizmo"
version = "5.0.1"
packages = [{ include = "gizmo", from = "src" }]

[tool.poetry.dependencies]
python = ">=3.9"
attrs = "^23.1"
numpy = ">=1.25"

[build-system]
requires = ["poetry-core>=1.8"]
build-backend = "poetry.core.masonry.api"
""",
    "src/gizmo/__init__.py": "",
}
TORCH = {
    "setup.py": """\
import os
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension
WITH_CUDA = os.getenv("FORCE_CUDA", "0") == "1"
if os.getenv("FORCE_CPU", "0") == "1":
    WITH_CUDA = False
Extension = CUDAExtension if WITH_CUDA else CppExtension
setup(
    name="torch_gizmo",
    version="1.0",
    packages=find_packages(),
    install_requires=["torch", "scipy"],
    ext_modules=[Extension("torch_gizmo._C", ["csrc/gizmo.cpp"])],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)},
)
""",
    "torch_gizmo/__init__.py": "",
    "csrc/gizmo.cpp": "",
    "csrc/cuda/gizmo.cu": "",
}
LINKED = {
    "setup.py": """\
from setuptools import Extension, setup
setup(
    name="gizmo-ffi",
    version="1.0",
    packages=["gizmo"],
    ext_modules=[Extension("gizmo._ffi", ["gizmo/_ffi.c"], libraries=["ffi", "m"])],
)
""",
    "gizmo/__init__.py": "",
    "gizmo/_ffi.c": "",
}
IN_TREE = {
    "pyproject.toml": """\
[build-system]
requires = []
backend-path = ["."]
build-backend = "backend"

[project]
name = "gizmo"
version = "1.0"
dependencies = []
""",
    "backend.py": """\
import base64
import hashlib
import zipfile

INFO = "Metadata-Version: 2.1\\nName: gizmo\\nVersion: 1.0\\n"
WHEEL = "Wheel-Version: 1.0\\nGenerator: gizmo\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"


def digest(text):
    found = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return "sha256=" + found.decode().rstrip("=")


def build_wheel(folder, config_settings=None, metadata_directory=None):
    files = {"gizmo/__init__.py": "", "gizmo-1.0.dist-info/METADATA": INFO, "gizmo-1.0.dist-info/WHEEL": WHEEL}
    record = "".join(f"{name},{digest(text)},{len(text)}\\n" for name, text in files.items())
    record += "gizmo-1.0.dist-info/RECORD,,\\n"
    with zipfile.ZipFile(f"{folder}/gizmo-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, "gizmo-1.0.dist-info/RECORD": record}.items():
            wheel.writestr(name, text)
    return "gizmo-1.0-py3-none-any.whl"
""",
    "gizmo/__init__.py": "",
}
"""Builds with nothing but Python: its backend is its own, and asks for nothing."""

ALL = {
    "setuptools": SETUPTOOLS,
    "stable-abi": STABLE,
    "scikit-build-core": SCIKIT_BUILD,
    "meson-python": MESON,
    "maturin": MATURIN,
    "hatchling": HATCHLING,
    "flit": FLIT,
    "pdm": PDM,
    "poetry": POETRY,
    "torch": TORCH,
    "linked": LINKED,
    "in-tree": IN_TREE,
}


def tree_of(files: Mapping[str, str]) -> SourceTree:
    """Files as what the readers of archives and folders make of them."""
    sizes = {path: len(text.encode()) for path, text in sorted(files.items())}
    return SourceTree(sizes=sizes, texts={path: files[path] for path in sizes if is_told(path)})


def write_tree(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a project into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def sdist_bytes(top: str, files: Mapping[str, str], *, compression: str = "gz") -> bytes:
    """A project as an sdist."""
    out = io.BytesIO()
    mode = f"w:{compression}" if compression else "w"
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def info(name: str, version: str, *lines: str) -> str:
    """PKG-INFO of an sdist."""
    return "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, "", ""])
