"""What PyTorch's configure prints when it goes on without something.

Read in 1.x to 2.14: ``cmake/Dependencies.cmake``, ``cmake/public/{cuda,mkl,LoadHIP}.cmake``, ``cmake/External``,
``cmake/Modules/Find*.cmake``, ``CMakeLists.txt``. Some of these set the cache's entry (``caffe2_update_option``), some
only the variable of the same name (``USE_CUDSS``), and some neither: ``BLAS`` stays ``MKL`` while Eigen is used.
"""

from __future__ import annotations

import msgspec


class Downgrade(msgspec.Struct, frozen=True, kw_only=True):
    """A message, and what is off from then on."""

    features: tuple[str, ...]
    """Options that are off, and those that depend on them."""
    says: str
    """Regular expression; a blank in it stands for any space, since CMake wraps lines."""
    hint: str
    """What to do to get the feature."""


def _off(*features: str, says: str, hint: str) -> Downgrade:
    return Downgrade(features=features, says=says, hint=hint)


DOWNGRADES: tuple[Downgrade, ...] = (
    _off(
        *("USE_CUDA", "USE_CUDNN", "USE_CUSPARSELT", "USE_CUDSS", "USE_CUFILE", "USE_NVRTC"),
        says=r"Not compiling with CUDA|PyTorch: CUDA cannot be found",
        hint="set CUDA_HOME to a toolkit that contains bin/nvcc, and set CUDACXX if that nvcc is not found",
    ),
    _off(
        "USE_CUDNN",
        says=r"Cannot find cuDNN library|Compiling without cuDNN support",
        hint="set CUDNN_ROOT, or CUDNN_LIBRARY and CUDNN_INCLUDE_DIR; the unversioned libcudnn.so is required too",
    ),
    _off(
        "USE_CUSPARSELT",
        says=r"Cannot find cuSPARSELt library|Compiling without cuSPARSELt support",
        hint="set CUSPARSELT_ROOT to the folder that contains cuSPARSELt",
    ),
    _off(
        "USE_CUDSS",
        says=r"Cannot find CUDSS library|Compiling without cuDSS support",
        hint="set CUDSS_ROOT to the folder that contains cuDSS",
    ),
    _off(
        "USE_CUFILE",
        says=r"Cannot find cuFile|Compiling without cuFile support",
        hint="install the cuFile headers of the CUDA toolkit",
    ),
    _off("USE_XPU", says=r"Not compiling with XPU", hint="source the oneAPI environment script first"),
    _off(
        "USE_ROCM",
        says=r"Building without ROCm support",
        hint="set ROCM_PATH to a ROCm installation, and PYTORCH_ROCM_ARCH to the GPU architectures",
    ),
    _off(
        "USE_MAGMA",
        says=r"Not compiling with MAGMA|Compiling without MAGMA support",
        hint="set MAGMA_HOME to a MAGMA installation built for this CUDA version",
    ),
    _off(
        *("BLAS", "USE_MKL"),
        says=r"MKL could not be found\. Defaulting to Eigen|MKL library not found",
        hint="install mkl and mkl-include (or mkl-static) and add their prefix to CMAKE_PREFIX_PATH",
    ),
    _off(
        "BLAS",
        says=r"Preferred BLAS \(\w+\) cannot be found|Not using BLAS\.",
        hint="install the BLAS library that you want, with its headers, and add its prefix to CMAKE_PREFIX_PATH",
    ),
    _off(
        "BLAS",
        says=r"Could not (?:find|verify) (?:OpenBLAS|BLIS|FlexiBLAS|APL) (?:include|lib)",
        hint="set OpenBLAS_HOME (or BLIS_HOME, FlexiBLAS_HOME) to the library's prefix",
    ),
    _off("USE_LAPACK", says=r"LAPACK requires BLAS|Not using LAPACK\.", hint="install LAPACK"),
    _off(
        *("USE_NNPACK", "USE_PYTORCH_QNNPACK", "USE_XNNPACK"),
        says=r"is not supported in \{Q/X\}NNPACK",
        hint="expect OFF instead: these libraries support only x86 and ARM, on Linux, macOS, Windows, Android and iOS",
    ),
    _off(
        "USE_NNPACK",
        says=r"Not compiling with NNPACK|NNPACK (?:is )?not supported on",
        hint="check out third_party/NNPACK",
    ),
    _off(
        *("USE_FBGEMM", "USE_FAKELOWP"),
        says=r"Not compiling with FBGEMM",
        hint="use a 64-bit x86 CPU and a compiler with AVX-512 support, and check out third_party/fbgemm",
    ),
    _off("USE_FAKELOWP", says=r"Turning USE_FAKELOWP off", hint="also enable USE_FBGEMM, which USE_FAKELOWP needs"),
    _off("USE_NUMA", says=r"Not compiling with NUMA", hint="install the libnuma headers"),
    _off("USE_ITT", says=r"Not compiling with ITT", hint="check out third_party/ittapi"),
    _off(
        "USE_NUMPY",
        says=r"NumPy could not be found\. Not building with NumPy",
        hint="add numpy to the build environment",
    ),
    _off(
        "BUILD_PYTHON",
        says=r"Python dependencies not met\. Not compiling with python",
        hint="install the Python interpreter's headers",
    ),
    _off("USE_MPI", says=r"Not compiling with MPI", hint="install an MPI implementation with its compiler wrappers"),
    _off("USE_OPENMP", says=r"Not compiling with OpenMP", hint="install an OpenMP runtime for the compiler"),
    _off("USE_NCCL", says=r"so disabling USE_NCCL", hint="enable CUDA or ROCm and build on Linux, which NCCL requires"),
    _off("USE_NCCL", says=r"RCCL NOT Found", hint="install RCCL, or set RCCL_PATH"),
    _off(
        "USE_MKLDNN",
        says=r"Not compiling with MKLDNN|MKLDNN could not be found|MKLDNN source files not found",
        hint="check out third_party/ideep with its submodules; oneDNN needs a 64-bit CPU",
    ),
    _off("USE_MIOPEN", says=r"Compiling without MIOpen", hint="install the MIOpen headers"),
    _off("USE_KINETO", says=r"Turning off Kineto|Not building with Kineto", hint="check out third_party/kineto"),
    _off(
        "USE_CUPTI_SO",
        says=r"Could not find CUPTI library, using CPU-only Kineto",
        hint="install CUPTI from the CUDA toolkit; without it, profiles contain no GPU events",
    ),
    _off("USE_GLOG", says=r"glog is not found\.", hint="install glog"),
    _off("USE_GFLAGS", says=r"gflags is not found\.", hint="install gflags"),
    _off("USE_PROF", says=r"htrace not found", hint="install htrace"),
    _off("USE_TENSORPIPE", says=r"Tensor[Pp]ipe cannot be used on Windows", hint="expect OFF on Windows"),
    _off("USE_DISTRIBUTED", says=r"Libuv is not installed", hint="install libuv, and set libuv_ROOT"),
    _off(
        "USE_NATIVE_ARCH",
        says=r"Your compiler does not support -march=native",
        hint="set the instruction set in CXXFLAGS",
    ),
    _off("USE_GOLD_LINKER", says=r"ld\.gold isn't available, turning it off", hint="install gold"),
)

_LIBRARIES = {
    "BLAS": {
        "accelerate": "Accelerate",
        "apl": "APL",
        "atlas": "ATLAS",
        "blis": "BLIS",
        "flexi": "FlexiBLAS",
        "generic": "Generic",
        "mkl": "MKL",
        "nvpl": "NVPL",
        "open": "OpenBLAS",
        "veclib": "vecLib",
    }
}
"""What the summary calls the choices of an option."""


def option_value(feature: str, printed: str) -> str:
    """The value of an option as one sets it, where the summary prints another word: ``open`` is ``BLAS=OpenBLAS``."""
    return _LIBRARIES.get(feature, {}).get(printed, printed)
