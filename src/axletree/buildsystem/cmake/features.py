"""What was asked of a CMake build against what it really enabled.

Projects turn options off by themselves where a library is missing, and say so in one line among a thousand. A value in
the cache is no proof either: a script may set the plain variable of the same name, which counts in its stead. So the
summary that a project prints when it has configured counts most, then the cache.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.cache import is_missing, is_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.buildsystem.cmake.cache import Cache

_SUMMARY = re.compile(r"^-- {2,}([A-Za-z][\w .]*?) *: ?(.*)$")
_SWITCHES = frozenset({"1", "ON", "YES", "TRUE", "Y", "0", "OFF", "NO", "FALSE", "N"})
_NEAR = 2  # lines of a CMake message that may be wrapped


class Downgrade(msgspec.Struct, frozen=True, kw_only=True):
    """What a project prints when it goes on without something."""

    features: tuple[str, ...]
    """Options that are off from then on."""
    says: str
    """Regular expression; blanks in it match wrapped lines too."""
    hint: str


DOWNGRADES: tuple[Downgrade, ...] = (
    Downgrade(
        features=("USE_CUDA",),
        says=r"Not compiling with CUDA",
        hint="set CUDA_HOME to a toolkit that has bin/nvcc, and CUDACXX if its nvcc is not found",
    ),
    Downgrade(
        features=("USE_CUDNN",),
        says=r"Cannot find cuDNN library",
        hint="set CUDNN_ROOT, or CUDNN_LIBRARY and CUDNN_INCLUDE_DIR; the unversioned libcudnn.so must be there too",
    ),
    Downgrade(
        features=("USE_CUSPARSELT",), says=r"Cannot find cuSPARSELt library", hint="set CUSPARSELT_ROOT to its folder"
    ),
    Downgrade(features=("USE_CUDSS",), says=r"Cannot find CUDSS library", hint="set CUDSS_ROOT to its folder"),
    Downgrade(features=("USE_CUFILE",), says=r"Cannot find cuFile", hint="install the toolkit's cufile headers"),
    Downgrade(features=("USE_XPU",), says=r"Not compiling with XPU", hint="source oneAPI's environment first"),
    Downgrade(
        features=("USE_MAGMA",),
        says=r"Not compiling with MAGMA",
        hint="set MAGMA_HOME to a MAGMA that was built for this CUDA version",
    ),
    Downgrade(
        features=("BLAS", "USE_MKL"),
        says=r"MKL could not be found\. Defaulting to Eigen",
        hint="install mkl and mkl-include (or mkl-static) and add their prefix to CMAKE_PREFIX_PATH",
    ),
    Downgrade(
        features=("BLAS",),
        says=r"Could not find (?:OpenBLAS|BLIS|FlexiBLAS) (?:include|lib)",
        hint="set OpenBLAS_HOME (or BLIS_HOME) to its prefix",
    ),
    Downgrade(
        features=("USE_LAPACK",),
        says=r"LAPACK requires BLAS|Cannot find a library with LAPACK API",
        hint="install LAPACK",
    ),
    Downgrade(features=("USE_NNPACK",), says=r"Not compiling with NNPACK", hint="check out third_party/NNPACK"),
    Downgrade(
        features=("USE_FBGEMM", "USE_FAKELOWP"),
        says=r"Not compiling with FBGEMM|Turning USE_FAKELOWP off",
        hint="FBGEMM needs x86-64, a compiler with AVX-512 and its submodule",
    ),
    Downgrade(features=("USE_NUMA",), says=r"Not compiling with NUMA", hint="install libnuma's headers"),
    Downgrade(features=("USE_ITT",), says=r"Not compiling with ITT", hint="check out third_party/ittapi"),
    Downgrade(
        features=("USE_NUMPY",),
        says=r"NumPy could not be found\. Not building with NumPy",
        hint="add numpy to the environment that builds",
    ),
    Downgrade(
        features=("BUILD_PYTHON",),
        says=r"Python dependencies not met\. Not compiling with python",
        hint="the interpreter's headers are missing",
    ),
    Downgrade(features=("USE_MPI",), says=r"Not compiling with MPI", hint="install an MPI with its compilers"),
    Downgrade(features=("USE_OPENMP",), says=r"Not compiling with OpenMP", hint="the compiler has no OpenMP runtime"),
    Downgrade(features=("USE_NCCL",), says=r"so disabling USE_NCCL", hint="NCCL is used with CUDA and on Linux only"),
    Downgrade(
        features=("USE_MKLDNN",),
        says=r"Not compiling with MKLDNN|MKLDNN source files not found",
        hint="check out ideep",
    ),
    Downgrade(features=("USE_MIOPEN",), says=r"Compiling without MIOpen", hint="install MIOpen's headers"),
    Downgrade(features=("USE_KINETO",), says=r"Turning off Kineto|Not building with Kineto", hint="check out kineto"),
    Downgrade(features=("USE_GOLD_LINKER",), says=r"ld\.gold isn't available, turning it off", hint="install gold"),
)
"""Known messages of PyTorch 1.x to 2.14 (cmake/Dependencies.cmake, cmake/public/cuda.cmake, CMakeLists.txt)."""


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that is not as it was asked for."""

    feature: str
    wanted: str
    found: str | None
    """``None``: neither cache nor summary has such a feature."""
    where: str
    """``summary`` or ``CMakeCache.txt:12``; empty where it was not found."""
    why: tuple[str, ...] = ()
    """Lines of the configure log that explain it."""
    hint: str = ""

    def __str__(self) -> str:
        """One sentence."""
        if self.found is None:
            return f"{self.feature} is expected to be {self.wanted}, but CMake knows nothing of that name"
        return f"{self.feature} is {self.found or 'empty'} ({self.where}), not {self.wanted}"


def read_summary(log: Iterable[str]) -> dict[str, str]:
    """Name -> value of the lines ``--   NAME : VALUE``; the last counts, since a log may hold several runs."""
    found: dict[str, str] = {}
    for line in log:
        match = _SUMMARY.match(line.rstrip())
        if match is not None:
            found[match[1]] = match[2].strip()
    return found


def find_downgrades(log: Sequence[str]) -> tuple[tuple[Downgrade, int], ...]:
    """Known messages in a log, each with the number of its line, counted from 1."""
    patterns = [(each, re.compile(re.sub(r" +", r"\\s+", each.says))) for each in DOWNGRADES]
    found: list[tuple[Downgrade, int]] = []
    for number, line in enumerate(log):
        wrapped = " ".join(part.strip() for part in log[number : number + _NEAR])
        for downgrade, pattern in patterns:
            match = pattern.search(wrapped)
            if match is not None and match.start() <= len(line.strip()):
                found.append((downgrade, number + 1))
    return tuple(found)


def check_features(expected: Mapping[str, str], cache: Cache, log: Sequence[str]) -> tuple[Mismatch, ...]:
    """Compare what a build must have with what it has.

    Args:
        expected: CMake variable -> value; ``ON`` and ``OFF`` by CMake's truth, other values as text, ``*`` for anything
            that is set and was found.
        cache: what the configured tree's cache says.
        log: lines of the configure log.

    Returns:
        Every feature that is otherwise, with the lines that explain it; empty if all is as expected.
    """
    summary = read_summary(log)
    downgrades = find_downgrades(log)
    found: list[Mismatch] = []
    for feature, wanted in expected.items():
        value, where = _effective(feature, cache, summary)
        if value is not None and _holds(wanted, value):
            continue
        known = [(each, number) for each, number in downgrades if feature in each.features]
        why = tuple(dict.fromkeys(log[number - 1].strip() for _, number in known))
        hint = known[0][0].hint if known else _advice(feature, value)
        found.append(Mismatch(feature=feature, wanted=wanted, found=value, where=where, why=why, hint=hint))
    return tuple(found)


def _effective(feature: str, cache: Cache, summary: Mapping[str, str]) -> tuple[str | None, str]:
    entry = cache.entries.get(feature)
    if feature in summary:
        # The summary prints the variable; a cache that was turned off afterwards is off all the same.
        if entry is not None and entry.type == "BOOL" and not is_true(entry.value):
            return entry.value, f"CMakeCache.txt:{entry.line}"
        return summary[feature], "summary"
    return (entry.value, f"CMakeCache.txt:{entry.line}") if entry is not None else (None, "")


def _holds(wanted: str, value: str) -> bool:
    if wanted == "*":
        return bool(value) and not is_missing(value)
    if wanted.upper() in _SWITCHES:
        return is_true(value) == is_true(wanted)
    return value == wanted


def _advice(feature: str, value: str | None) -> str:
    if value is None:
        return f"is {feature} spelt as in the project's CMakeLists.txt? `axletree cmake-cache` lists what there is"
    return f"see the configure log for {feature.removeprefix('USE_')}, or expect what is there"
