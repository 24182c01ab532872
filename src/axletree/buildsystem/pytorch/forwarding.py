"""How PyTorch's settings reach CMake: environment variables become CMake variables, by rules of three eras.

To 2.11 ``setup.py`` passes them as ``-D`` (``tools/setup_helpers/cmake.py``), when there is no cache yet: a second run
does not configure at all, whatever changed. In 2.12 and 2.13 ``setup.py`` passes only what it finds out itself, and
CMake reads the rest (``cmake/EnvVarForwarding.cmake``): it takes the whole environment as a list of its own, in which
brackets and semicolons of one value swallow others, and sets only what is not set yet. From 2.14 on scikit-build-core
calls CMake, which reads the variables one by one, each time that it runs: what is forwarded by its prefix then replaces
what the cache has, while the variables that are forwarded by name do not (``TORCH_CUDA_ARCH_LIST``, ``BLAS``), and one
that is no longer set stays in the cache. So in all eras only an empty cache shows a changed environment; the drivers
see to that. What comes after 2.14 is not known.

Read: ``tools/setup_helpers/cmake.py`` of 2.6 and of the tree between 2.12 and 2.14, ``EnvVarForwarding.cmake`` of that
tree and of two later ones. That 2.12 and 2.13 belong together says a packager's comparison (spack-packages 5707).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Era = Literal["setup.py", "setup.py and CMake", "scikit-build-core"]
"""Who makes CMake variables of the environment; in the second setup.py starts CMake, which does it."""

_PREFIXES = ("BUILD_", "USE_", "CMAKE_")
_SUFFIXES = ("EXITCODE", "EXITCODE__TRYRUN_OUTPUT")
_SAME_NAME = frozenset(
    {
        "ATEN_THREADING",
        "BLAS",
        "CAFFE2_USE_MSVC_STATIC_RUNTIME",
        "CUDA_HOST_COMPILER",
        "CUDA_NVCC_EXECUTABLE",
        "CUDA_SEPARABLE_COMPILATION",
        "CUDNN_INCLUDE_DIR",
        "CUDNN_LIBRARY",
        "CUDNN_ROOT",
        "EXPERIMENTAL_SINGLE_THREAD_POOL",
        "INSTALL_TEST",
        "INTEL_MKL_DIR",
        "INTEL_OMP_DIR",
        "MKLDNN_CPU_RUNTIME",
        "MKL_THREADING",
        "MSVC_Z7_OVERRIDE",
        "Numa_INCLUDE_DIR",
        "Numa_LIBRARIES",
        "ONNX_ML",
        "ONNX_NAMESPACE",
        "OPENSSL_ROOT_DIR",
        "SELECTED_OP_LIST",
        "STATIC_DISPATCH_BACKEND",
        "TORCH_CUDA_ARCH_LIST",
        "TORCH_XPU_ARCH_LIST",
        "TRACING_BASED",
        "UBSAN_FLAGS",
        "WERROR",
        "WITH_BLAS",
    }
)
_SAME_NAME_ONCE = frozenset({"BUILDING_WITH_TORCH_LIBS", "JAVA_HOME", "PYTHON_LIB_REL_PATH"})
"""Of the first era only; BUILDING_WITH_TORCH_LIBS was gone before 2.6. Of the second only the last is certain."""
_SAME_NAME_SINCE = frozenset({"FLASH_ATTENTION_MAX_JOBS"})
"""Of the scikit-build-core era only."""
_SAME_NAME_BETWEEN = frozenset({"PYTHON_LIB_REL_PATH"})
"""Of the second era, beside what all have."""
_RENAMED = {"CUDNN_LIB_DIR": "CUDNN_LIBRARY", "USE_CUDA_STATIC_LINK": "CAFFE2_STATIC_LINK_CUDA"}
_RENAMED_ONCE = {"_GLIBCXX_USE_CXX11_ABI": "GLIBCXX_USE_CXX11_ABI"}
_ALIASES = (
    ("CUDA_HOST_COMPILER", "CMAKE_CUDA_HOST_COMPILER"),
    ("CUDAHOSTCXX", "CUDA_HOST_COMPILER"),
    ("CMAKE_CUDA_HOST_COMPILER", "CUDA_HOST_COMPILER"),
    ("CMAKE_CUDA_COMPILER", "CUDA_NVCC_EXECUTABLE"),
    ("CUDACXX", "CUDA_NVCC_EXECUTABLE"),
)
"""Environment variable, and the CMake variable that it gives where nothing else does; the first that is set counts."""
_DEAD = {
    "CMAKE_FRESH": "remove the build folder, or run `axletree clean --build`",
    "CMAKE_ONLY": "run CMake directly",
    "USE_NINJA": "set CMAKE_GENERATOR instead",
}
"""Names that say nothing from 2.14 on, though CMake gets them -> what to do instead."""
_NO_PREFIX = "remove it: the project always installs into its own torch folder"
_IGNORED: dict[Era, dict[str, str]] = {
    "setup.py and CMake": {"CMAKE_INSTALL_PREFIX": _NO_PREFIX},
    "scikit-build-core": _DEAD,
}
_IMPLIED = (("BUILD_LIBTORCH_WHL", "BUILD_FUNCTORCH", "OFF"), ("BUILD_PYTHON_ONLY", "BUILD_LIBTORCHLESS", "ON"))
_ON = frozenset({"ON", "1", "YES", "TRUE", "Y"})

ACT_ON_EACH_BUILD = frozenset({"CMAKE_BUILD_PARALLEL_LEVEL", "MAKEFLAGS", "MAX_JOBS", "NINJA_STATUS", "VERBOSE"})
"""Variables that say how a build runs, and not what it makes."""

READ_BY_CMAKE = frozenset(
    {
        "ACL_ROOT_DIR",
        "ATEN_AVX512_256",
        "CC",
        "CFLAGS",
        "CUDACXX",
        "CUDAFLAGS",
        "CUDAHOSTCXX",
        "CUDA_HOME",
        "CUDA_PATH",
        "CXX",
        "CXXFLAGS",
        "GENERIC_BLAS_LIBRARIES",
        "LDFLAGS",
        "LIBTORCH_LIB_PATH",
        "MAGMA_HOME",
        "MIOPEN_PATH",
        "NCCL_INCLUDE_DIR",
        "NCCL_LIB_DIR",
        "NCCL_ROOT",
        "OMP_PREFIX",
        "OpenBLAS_HOME",
        "OpenMP_ROOT",
        "PYTORCH_ROCM_ARCH",
        "ROCM_PATH",
        "TORCH_NVCC_FLAGS",
    }
)
"""Read from the environment by CMake or by the project's CMake files, at the first configure."""


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """What CMake is told."""

    options: dict[str, str]
    """CMake variable -> value, sorted by name."""
    origin: dict[str, str]
    """CMake variable -> environment variable that it comes from."""
    ignored: dict[str, str]
    """Variables that are set and say nothing in this era -> what to do instead."""
    refused: dict[str, str]
    """Variables with which the project ends in an error -> what to do instead."""


def forward(environ: Mapping[str, str], era: Era) -> Forwarded:
    """The CMake variables that PyTorch derives from the environment.

    What it adds from elsewhere is left out: the interpreter, the version, ``BUILD_PYTHON``, ``BUILD_TEST``,
    ``USE_NUMPY``, the install prefix, and the interpreter's folders in front of ``CMAKE_PREFIX_PATH``.

    Args:
        environ: the variables of the build; where two of them give one CMake variable, their order may count.
        era: which rules.
    """
    options, origin = _by_name(environ) if era == "setup.py" else _by_name_since(environ, era)
    for name, target in _ALIASES:
        if name in environ and target not in options:
            options[target], origin[target] = environ[name], name
    _build_type(environ, options, origin)
    if era != "setup.py" and "CMAKE_PREFIX_PATH" in options:  # to 2.11 it stays as it is, no list to CMake
        parts = dict.fromkeys(part for part in options["CMAKE_PREFIX_PATH"].split(":") if part)
        options["CMAKE_PREFIX_PATH"] = ";".join(parts)
    ignored = {name: hint for name, hint in _IGNORED.get(era, {}).items() if name in environ}
    return Forwarded(
        options=dict(sorted(options.items())), origin=origin, ignored=ignored, refused=_refused(environ, era)
    )


def _has_prefix(name: str) -> bool:
    return name.startswith(_PREFIXES) or name.endswith(_SUFFIXES)


def _by_name(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """To 2.11: a name's own rule, else that of its prefix; a later variable replaces an earlier one."""
    targets = {**{name: name for name in _SAME_NAME | _SAME_NAME_ONCE}, **_RENAMED, **_RENAMED_ONCE}
    options: dict[str, str] = {}
    origin: dict[str, str] = {}
    for name, value in environ.items():
        target = targets.get(name, name if _has_prefix(name) else None)
        if target is not None and target != "CMAKE_INSTALL_PREFIX":
            options[target], origin[target] = value, name
    for name, target, value in _IMPLIED:  # setup.py itself, which knows these as 1 only
        if environ.get(name) == "1":
            options[target], origin[target] = value, name
    return options, origin


def _by_name_since(environ: Mapping[str, str], era: Era) -> tuple[dict[str, str], dict[str, str]]:
    """From 2.12: renamed ones first, which nothing of their new name replaces; one with a prefix goes as itself too."""
    options: dict[str, str] = {}
    origin: dict[str, str] = {}
    same = _SAME_NAME | (_SAME_NAME_SINCE if era == "scikit-build-core" else _SAME_NAME_BETWEEN)
    named = [*_RENAMED.items(), *((name, name) for name in sorted(same))]
    for name, target in named:
        if name in environ and target not in options:
            options[target], origin[target] = environ[name], name
    for name, value in environ.items():
        if _has_prefix(name) and (era == "scikit-build-core" or name != "CMAKE_INSTALL_PREFIX"):
            options[name], origin[name] = value, name
    only = environ.get("BUILD_PYTHON_ONLY", "").upper()
    if only in _ON if era == "scikit-build-core" else only == "1":
        options["BUILD_LIBTORCHLESS"], origin["BUILD_LIBTORCHLESS"] = "ON", "BUILD_PYTHON_ONLY"
    return options, origin


def _build_type(environ: Mapping[str, str], options: dict[str, str], origin: dict[str, str]) -> None:
    """CMAKE_BUILD_TYPE beats DEBUG, which beats REL_WITH_DEB_INFO (tools/setup_helpers/env.py)."""
    if "CMAKE_BUILD_TYPE" in environ:
        return
    for name, kind in (("DEBUG", "Debug"), ("REL_WITH_DEB_INFO", "RelWithDebInfo")):
        if environ.get(name, "").upper() in _ON:
            options["CMAKE_BUILD_TYPE"], origin["CMAKE_BUILD_TYPE"] = kind, name
            return
    options["CMAKE_BUILD_TYPE"] = "Release"


def _refused(environ: Mapping[str, str], era: Era) -> dict[str, str]:
    on = {name for name, value in environ.items() if value.upper() in _ON}
    refused: dict[str, str] = {}
    if {"BUILD_LIBTORCH_WHL", "BUILD_PYTHON_ONLY"} <= on:
        refused["BUILD_PYTHON_ONLY"] = "remove it or BUILD_LIBTORCH_WHL: build the libraries in a separate stage"
    if era != "scikit-build-core":
        named = (name for name, _, _ in _IMPLIED)
        refused |= {
            name: "set it to 1: setup.py accepts no other value"
            for name in named
            if name in on and environ[name] != "1"
        }
    if era == "setup.py" and "CMAKE_INSTALL_PREFIX" in environ:
        refused["CMAKE_INSTALL_PREFIX"] = _NO_PREFIX
    if era == "scikit-build-core" and "USE_NIGHTLY" in on:
        refused["USE_NIGHTLY"] = "install a nightly wheel instead of building"
    return refused
