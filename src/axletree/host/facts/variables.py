"""Environment variables that change builds: their names, and what each reaches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from axletree.check.host.variables import Variable
from axletree.core.secrets import looks_secret
from axletree.host.facts.privacy import HIDDEN, without_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

_GROUPS = {
    "loader": """
        LD_LIBRARY_PATH LD_PRELOAD LD_BIND_NOW LD_RUN_PATH LD_AUDIT GLIBC_TUNABLES
    """,
    "compiler": """
        CC CXX FC CPP AR AS LD NM RANLIB STRIP OBJCOPY CFLAGS CXXFLAGS CPPFLAGS LDFLAGS FFLAGS LDSHARED
        ARCHFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH COMPILER_PATH GCC_EXEC_PREFIX SYSROOT
        CONDA_BUILD_SYSROOT HOST BUILD PKG_CONFIG_PATH PKG_CONFIG_LIBDIR SOURCE_DATE_EPOCH DEBUG_CFLAGS
        DEBUG_CXXFLAGS NIX_CFLAGS_COMPILE NIX_LDFLAGS _GLIBCXX_USE_CXX11_ABI GLIBCXX_USE_CXX11_ABI RUSTFLAGS
    """,
    "jobs": """
        MAX_JOBS MAKEFLAGS MFLAGS GNUMAKEFLAGS NINJA_STATUS NINJAFLAGS CMAKE_BUILD_PARALLEL_LEVEL CPU_COUNT
        NVCC_THREADS
    """,
    "cache": """
        CCACHE_* SCCACHE_* USE_CCACHE CMAKE_*_COMPILER_LAUNCHER
    """,
    "cuda": """
        CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_BIN_PATH CUDA_TOOLKIT_ROOT_DIR CUDAToolkit_ROOT CUDACXX CUDAHOSTCXX
        CUDAFLAGS CUDAARCHS CUDA_HOST_COMPILER CUDA_NVCC_EXECUTABLE CUDA_SEPARABLE_COMPILATION NVCC_*
        TORCH_CUDA_ARCH_LIST TORCH_NVCC_FLAGS CUDNN_* NCCL_* CUSPARSELT_* CUDSS_* CUPTI_* CUDA_VISIBLE_DEVICES
        CUDA_MODULE_LOADING CUDA_LAUNCH_BLOCKING CUDA_DEVICE_ORDER CUDA_CACHE_* CUDA_VERSION
        NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES NVIDIA_REQUIRE_CUDA CUDA_COMPAT_PATH NVSHMEM_*
        CUDA_INC_PATH CUDA_LIB_PATH CUDA_ARCH_LIST
    """,
    "rocm": """
        ROCM_* HIP_* HIPCXX HIPFLAGS HIPARCHS HSA_* ROCR_* GPU_DEVICE_ORDINAL PYTORCH_ROCM_ARCH MIOPEN_*
        DEVICE_LIB_PATH HIPCC_* AMDGPU_TARGETS GPU_TARGETS HCC_AMDGPU_TARGET ROCBLAS_* HIPBLASLT_*
        TORCH_BLAS_PREFER_HIPBLASLT AMD_*
    """,
    "python": """
        PYTHONPATH PYTHONHOME PYTHONNOUSERSITE PYTHONUSERBASE PYTHONDONTWRITEBYTECODE PYTHONWARNINGS PYTHONUTF8
        PYTHONIOENCODING PYTHONSTARTUP PYTHONSAFEPATH VIRTUAL_ENV CONDA_* MAMBA_* PYENV_* SETUPTOOLS_*
        SKBUILD_* PIXI_* _CONDA_* DISTUTILS_USE_SDK DISTUTILS_DEBUG
    """,
    "cmake": """
        CMAKE_* LIBCLANG_PATH *_ROOT
    """,
    "pytorch": """
        BUILD_* USE_* PYTORCH_* TORCH_* ATEN_* CAFFE2_* MKL_DIR INTEL_* MKLROOT MKL_THREADING MKLDNN_* BLAS
        WITH_BLAS WITH_* DEBUG REL_WITH_DEB_INFO VERBOSE PACKAGE_TYPE LIBTORCH_PACKAGE_NAME MAGMA_HOME
        ACL_ROOT_DIR Numa_* ONNX_ML ONNX_NAMESPACE INSTALL_TEST WERROR UBSAN_FLAGS OPENSSL_ROOT_DIR
        STATIC_DISPATCH_BACKEND SELECTED_OP_LIST TRACING_BASED EXPERIMENTAL_SINGLE_THREAD_POOL MSVC_Z7_OVERRIDE
        BUILDING_WITH_TORCH_LIBS JAVA_HOME PYTHON_LIB_REL_PATH TH_BINARY_BUILD OVERRIDE_PACKAGE_VERSION
        DESIRED_CUDA DESIRED_PYTHON PURE_PYTHON *EXITCODE *EXITCODE__TRYRUN_OUTPUT OpenBLAS_HOME LAPACK
        XNNPACK_*
    """,
    "threads": """
        OMP_* GOMP_* KMP_* MKL_* OPENBLAS_* BLIS_* VECLIB_MAXIMUM_THREADS NUMEXPR_* GOTO_NUM_THREADS NVPL_*
    """,
    "locale": """
        LANG LANGUAGE LC_*
    """,
    "runtime": """
        MALLOC_* TMPDIR XDG_CACHE_HOME TRITON_* PYTHONHASHSEED DEBUGINFOD_URLS GIT_* AXLETREE_* WSL_DISTRO_NAME
        WSL_INTEROP MODULEPATH LOADEDMODULES SLURM_*
    """,
}
"""Group -> patterns of names; the first group that fits counts. PyTorch's are those that its build forwards or reads
(setup.py, tools/setup_helpers, cmake/)."""
_PATTERNS = tuple((group, pattern) for group, text in _GROUPS.items() for pattern in text.split())
_SOURCES = {"name": "the environment", "value": "the environment", "group": "a built-in table of variable names"}
_MOST = 4000


def variable_facts(environ: Mapping[str, str]) -> tuple[Variable, ...]:
    """The variables that change builds, by name."""
    found: list[Variable] = []
    for name, value in sorted(environ.items()):
        group = group_of(name)
        if group is not None:
            shown = HIDDEN if looks_secret(name) and value else without_credentials(value)[:_MOST]
            found.append(Variable(name=name, value=shown, group=group, sources=_SOURCES))
    return tuple(found)


def group_of(name: str) -> str | None:
    """What a variable reaches; ``None`` where it changes no build."""
    return next((group for group, pattern in _PATTERNS if fnmatchcase(name, pattern)), None)
