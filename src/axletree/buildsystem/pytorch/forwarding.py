"""How PyTorch's settings reach CMake: environment variables, turned into cache entries by its Python side.

Setup.py era: ``tools/setup_helpers/cmake.py``, up to 2.13. scikit-build-core era: the project's own CMake module that
reads the environment, from 2.14. Both forward by the same rule; they differ in names that came and went, and in what a
second run does: setup.py does not run CMake again while a cache is there, and the newer one keeps the old value of a
variable that is no longer set. A changed environment is therefore compared here, and what differs is passed to CMake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Era = Literal["setup.py", "scikit-build-core"]

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
"""Of the setup.py era only."""
_RENAMED = {"CUDNN_LIB_DIR": "CUDNN_LIBRARY", "USE_CUDA_STATIC_LINK": "CAFFE2_STATIC_LINK_CUDA"}
_RENAMED_ONCE = {"_GLIBCXX_USE_CXX11_ABI": "GLIBCXX_USE_CXX11_ABI"}
_ALIASES = {
    "CMAKE_CUDA_COMPILER": "CUDA_NVCC_EXECUTABLE",
    "CMAKE_CUDA_HOST_COMPILER": "CUDA_HOST_COMPILER",
    "CUDACXX": "CUDA_NVCC_EXECUTABLE",
    "CUDAHOSTCXX": "CUDA_HOST_COMPILER",
    "CUDA_HOST_COMPILER": "CMAKE_CUDA_HOST_COMPILER",
}
"""Where the right name is not set by itself."""
_NEVER = frozenset({"CMAKE_INSTALL_PREFIX"})
"""Set by the project; setting it in the environment is an error of the setup.py era."""
_DEAD = {
    "CMAKE_FRESH": "remove the build folder, or `axletree clean --build`",
    "CMAKE_ONLY": "run CMake by itself",
    "USE_NIGHTLY": "it has no successor",
    "USE_NINJA": "CMAKE_GENERATOR chooses the generator",
}
"""Names that the scikit-build-core era ignores -> what to do instead."""
_PARALLEL = frozenset({"CMAKE_BUILD_PARALLEL_LEVEL", "CMAKE_BUILD_PARALLEL", "MAX_JOBS"})
"""They act on each build, not on what is configured."""

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
        "OpenBLAS_HOME",
        "PYTORCH_ROCM_ARCH",
        "ROCM_PATH",
        "TORCH_NVCC_FLAGS",
    }
)
"""Read from the environment by CMake or by the project's CMake files, at the first configure."""

_COMPILERS = frozenset({"CC", "CXX", "CUDACXX", "CUDAHOSTCXX", "CMAKE_GENERATOR"})
"""A cache keeps these from its first configure, and CMake starts from nothing when they differ."""
_FLAGS = {
    "CFLAGS": "CMAKE_C_FLAGS",
    "CXXFLAGS": "CMAKE_CXX_FLAGS",
    "CUDAFLAGS": "CMAKE_CUDA_FLAGS",
    "LDFLAGS": "",
}
"""Their cache entries are filled from them at the first configure only; LDFLAGS fills three."""
_LINKER_ENTRIES = ("CMAKE_EXE_LINKER_FLAGS", "CMAKE_MODULE_LINKER_FLAGS", "CMAKE_SHARED_LINKER_FLAGS")


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """What CMake is told."""

    options: dict[str, str]
    """CMake variable -> value, sorted by name."""
    origin: dict[str, str]
    """CMake variable -> environment variable that it comes from."""
    ignored: dict[str, str]
    """Variables that this era takes no notice of -> what to do instead."""


class Reconfigure(msgspec.Struct, frozen=True, kw_only=True):
    """What a changed environment means for a folder that is configured."""

    kind: Literal["nothing", "again", "anew"]
    """``again``: CMake runs in the same folder; ``anew``: from an empty folder."""
    define: dict[str, str] = {}
    """``-D`` for each."""
    remove: tuple[str, ...] = ()
    """``-U`` for each: entries whose variable is gone, which CMake would keep."""
    because: tuple[str, ...] = ()
    """Names of the variables that changed."""


def forward(environ: Mapping[str, str], era: Era, *, purelib: str | None = None) -> Forwarded:
    """The CMake variables that PyTorch's Python side derives from the environment.

    Args:
        environ: the variables of the build.
        era: which rules.
        purelib: the interpreter's site-packages, which is put in front of ``CMAKE_PREFIX_PATH``.
    """
    old = era == "setup.py"
    same = _SAME_NAME | _SAME_NAME_ONCE if old else _SAME_NAME
    renamed = {**{name: name for name in same}, **_RENAMED, **(_RENAMED_ONCE if old else {})}
    options: dict[str, str] = {}
    origin: dict[str, str] = {}
    ignored = {} if old else {name: hint for name, hint in _DEAD.items() if name in environ}
    for name, value in sorted(environ.items()):
        target = renamed.get(name)
        if target is None and (name.startswith(_PREFIXES) or name.endswith(_SUFFIXES)):
            target = name
        if target is not None and name not in ignored and name not in _NEVER:
            options[target], origin[target] = value, name
    for name, target in sorted(_ALIASES.items()):
        if name in environ and target not in options:
            options[target], origin[target] = environ[name], name
    _build_type(environ, options, origin)
    _prefix_path(environ, options, purelib)
    return Forwarded(options=dict(sorted(options.items())), origin=origin, ignored=ignored)


def _build_type(environ: Mapping[str, str], options: dict[str, str], origin: dict[str, str]) -> None:
    """CMAKE_BUILD_TYPE beats DEBUG, which beats REL_WITH_DEB_INFO (tools/setup_helpers/env.py)."""
    if "CMAKE_BUILD_TYPE" in environ:
        return
    for name, kind in (("DEBUG", "Debug"), ("REL_WITH_DEB_INFO", "RelWithDebInfo")):
        if environ.get(name, "").upper() in {"ON", "1", "YES", "TRUE", "Y"}:
            options["CMAKE_BUILD_TYPE"], origin["CMAKE_BUILD_TYPE"] = kind, name
            return
    options["CMAKE_BUILD_TYPE"] = "Release"


def _prefix_path(environ: Mapping[str, str], options: dict[str, str], purelib: str | None) -> None:
    given = environ.get("CMAKE_PREFIX_PATH", "").replace(":", ";")
    parts = [part for part in (purelib, given) if part]
    if parts:
        options["CMAKE_PREFIX_PATH"] = ";".join(parts)


def changed(
    before: Mapping[str, str], after: Mapping[str, str], era: Era, *, purelib: str | None = None
) -> Reconfigure:
    """Compare two environments of one build folder.

    Args:
        before: variables at the last configure.
        after: variables now.
        era: which rules.
        purelib: as for :func:`forward`.
    """
    differing = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    compilers = tuple(name for name in differing if name in _COMPILERS)
    if compilers:
        return Reconfigure(kind="anew", because=compilers)
    old, new = forward(before, era, purelib=purelib).options, forward(after, era, purelib=purelib).options
    define = {name: value for name, value in new.items() if old.get(name) != value and name not in _PARALLEL}
    remove = [name for name in old if name not in new and name not in _PARALLEL]
    read = [name for name in differing if name in READ_BY_CMAKE]
    for name in read:
        for entry in _flag_entries(name):
            define[entry] = after.get(name, "")
    if not define and not remove and not read:
        return Reconfigure(kind="nothing")
    return Reconfigure(
        kind="again", define=dict(sorted(define.items())), remove=tuple(sorted(remove)), because=tuple(differing)
    )


def _flag_entries(name: str) -> tuple[str, ...]:
    if name not in _FLAGS:
        return ()
    return (_FLAGS[name],) if _FLAGS[name] else _LINKER_ENTRIES
