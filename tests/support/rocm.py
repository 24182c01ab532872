"""A real hipcc: Debian's packages, unpacked without being installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.inputs import debian_archives, debian_root

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGES = (
    *("hipcc", "libamdhip64-5", "libamdhip64-dev", "rocm-device-libs", "libamd-comgr2", "libhsa-runtime64-1"),
    *("libhsa-runtime-dev", "libhsakmt1", "libhiprtc-builtins5", "clang-15", "lld-15", "llvm-15", "libllvm15"),
    *("libclang-common-15-dev", "libclang-cpp15", "llvm-15-linker-tools", "libfile-which-perl", "liburi-encode-perl"),
    *("libnuma1", "libelf1", "libdrm2", "libdrm-amdgpu1"),
)

_SDK_PACKAGES = (
    *("hipcc", "libamdhip64-5", "libamdhip64-dev", "rocm-device-libs", "libamd-comgr2", "libamd-comgr-dev"),
    *("libhsa-runtime64-1", "libhsa-runtime-dev", "libhsakmt1", "libhiprtc-builtins5", "rocminfo", "rocm-smi"),
    *("librocrand1", "librocrand-dev", "libhiprand1", "libhiprand-dev", "librocsparse0", "librocsparse-dev"),
    *("libhipsparse0", "libhipsparse-dev", "librocprim-dev", "rocm-cmake", "librocm-smi64-1", "librocm-smi-dev"),
    *("clang-15", "llvm-15", "lld-15", "clang-tools-15", "libclang-common-15-dev", "libclang1-15", "libclang-cpp15"),
    *("libllvm15", "llvm-15-runtime", "llvm-15-linker-tools", "libfile-which-perl", "liburi-encode-perl"),
    *("pciutils", "libpci3", "libnuma1", "libelf1", "libdrm2", "libdrm-amdgpu1", "libz3-4", "libedit2", "libbsd0"),
    *("libmd0", "libtinfo6", "libxml2", "libicu72", "liblzma5", "libzstd1", "zlib1g", "libffi8"),
)

_SDK_ARCHIVES = (
    *("hipcc", "libamdhip64-5", "libamdhip64-dev", "rocm-device-libs", "libamd-comgr2", "libamd-comgr-dev"),
    *("libhsa-runtime64-1", "libhsa-runtime-dev", "libhsakmt1", "libhiprtc-builtins5", "rocminfo", "rocm-smi"),
    *("librocrand1", "librocrand-dev", "libhiprand1", "libhiprand-dev", "rocm-cmake", "librocm-smi64-1"),
    *("librocm-smi-dev", "clang-15", "llvm-15", "lld-15", "clang-tools-15", "libclang-common-15-dev"),
    *("libclang1-15", "libclang-cpp15", "libllvm15"),
    *("llvm-15-runtime", "llvm-15-linker-tools", "libfile-which-perl", "liburi-encode-perl", "pciutils", "libpci3"),
)
_SPARSE_ARCHIVES = ("librocsparse0", "librocsparse-dev", "libhipsparse0", "libhipsparse-dev", "librocprim-dev")


def rocm_archives(*, sparse: bool = False) -> Path:
    """ROCm 5.2 as Debian publishes it: compiler, runtime, random numbers; with rocSPARSE's 1.3 GB only if asked for."""
    if sparse:
        return debian_archives("rocm-sparse-5.2", "bookworm", (*_SDK_ARCHIVES, *_SPARSE_ARCHIVES))
    return debian_archives("rocm-5.2", "bookworm", _SDK_ARCHIVES)


def rocm_root() -> Path:
    """The root of ROCm 5.2 with HIP's compiler and runtime."""
    return debian_root("rocm-5.2", "bookworm", _PACKAGES) / "usr"


def rocm_sdk_root() -> Path:
    """The root of ROCm 5.2 with its libraries of kernels, tools, headers and what of the system they need: 2 GB."""
    return debian_root("rocm-sdk-5.2", "bookworm", _SDK_PACKAGES) / "usr"


def offload_bundler() -> tuple[Path, str]:
    """A ``clang-offload-bundler`` that knows compressed bundles, and the search path that it needs."""
    packages = ("clang-tools-19", "libclang-cpp19", "libllvm19", "libz3-4", "libedit2", "libbsd0", "libxml2")
    root = debian_root("clang-tools-19", "bookworm", (*packages, "libicu72", "libmd0"))
    return (
        root / "usr/lib/llvm-19/bin/clang-offload-bundler",
        f"{root}/usr/lib/llvm-19/lib:{root}/usr/lib/x86_64-linux-gnu",
    )


def old_libstdcxx() -> Path:
    """A folder with the C++ library of GCC 10, and nothing else."""
    return debian_root("libstdc++-10", "bullseye", ("libstdc++6",)) / "usr" / "lib" / "x86_64-linux-gnu"
