"""What a changed variable means for a folder that was built in: configure it again, or start from nothing.

A variable that CMake turns into its cache, or that only searches read, is acted on by the next configure: what depends
on it gets another command, and ninja or make compile that again. All others may act on a compiler or a script without
a trace in any command (``CPATH``, ``NVCC_APPEND_FLAGS``), and a compiler that is replaced leaves traces in files that a
configure does not write anew.
"""

from __future__ import annotations

import re

from axletree.buildsystem.pytorch.forwarding import ACT_ON_EACH_BUILD, READ_BY_CMAKE, forward

_COMPILERS = re.compile(
    r"CC|CXX|FC|CPP|LD|AR|RANLIB|CUDACXX|CUDAHOSTCXX|HIPCXX|HIPHOSTCXX|CUDA_HOME|CUDA_PATH|ROCM_PATH|CUDA_NVCC_EXECUTABLE"
    r"|CUDA_HOST_COMPILER|CMAKE_GENERATOR.*|CMAKE_TOOLCHAIN_FILE|CMAKE_MAKE_PROGRAM|CMAKE_SYSROOT.*|CMAKE_SYSTEM_.*"
    r"|CMAKE_\w+_COMPILER|CMAKE_\w+_HOST_COMPILER|CMAKE_OSX_\w+|CMAKE_(?:AR|LINKER|RANLIB|NM|OBJCOPY|STRIP)"
)
_SEARCHED = re.compile(
    r"CMAKE_\w+|BUILD_\w+|USE_\w+|\w+_(?:ROOT|DIR)|PKG_CONFIG_(?:PATH|LIBDIR)|(?:C|CXX|LD|CUDA|HIP|ASM|F)FLAGS"
)
_OF_PYTORCH = re.compile(
    r"(?:PYTORCH|TORCH|LIBTORCH)_\w+|DEBUG|REL_WITH_DEB_INFO|PACKAGE_TYPE|VERBOSE|OVERRIDE_PACKAGE_VERSION"
)
"""What PyTorch's Python side reads; the files that it writes of that are written by each build."""


def names_compiler(variable: str) -> bool:
    """Whether an environment or CMake variable says what compiles, or where that is looked for."""
    return _COMPILERS.fullmatch(variable) is not None


def starts_afresh(name: str, *, pytorch: bool = False) -> bool:
    """Whether a folder that was built with another value of an environment variable is of no use.

    Args:
        name: the variable.
        pytorch: whether the tree is PyTorch's, whose rules for the environment are known.
    """
    if names_compiler(name):
        return True
    if name in ACT_ON_EACH_BUILD or _SEARCHED.fullmatch(name):
        return False
    if not pytorch:
        return True
    known = name in READ_BY_CMAKE or _OF_PYTORCH.fullmatch(name) is not None
    return not known and name not in forward({name: "1"}, "setup.py").origin.values()
