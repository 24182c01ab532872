"""CUDA and ROCm: toolkits, drivers, GPUs, libraries."""

from __future__ import annotations

from axletree.check.host.part import FactGroup, HostLibrary, HostTool


class CudaToolkit(FactGroup, frozen=True, kw_only=True):
    """An installed CUDA toolkit, or parts of one from wheels or conda packages."""

    root: str
    real: str | None = None
    """The folder that links such as ``/usr/local/cuda`` lead to."""
    found_by: tuple[str, ...]
    """``CUDA_HOME``, ``CUDA_PATH``, ``PATH``, ``/usr/local/cuda``, ``/usr/local``, ``conda``, ``wheel``: builds use
    the first that exists."""
    version: str | None = None
    """``13.0`` or more precise; from nvcc, ``version.json`` or ``cuda.h``, in this order."""
    nvcc: str | None = None
    """The program; ``none`` in a toolkit with only run-time libraries."""
    nvcc_version: str | None = None
    header_version: str | None = None
    """``CUDA_VERSION`` of its ``cuda.h``; ``none`` without headers."""
    archs: tuple[str, ...] | None = None
    """The architectures that its nvcc supports: ``compute_75`` ..."""
    gcc_most: int | None = None
    """Highest major version of GCC that its ``host_config.h`` accepts."""
    clang_most: int | None = None
    cudart: bool | None = None
    """Whether it has ``cuda_runtime.h`` and a ``libcudart``."""
    stub: bool | None = None
    """Whether it has ``stubs/libcuda.so``, which linking without a driver needs."""
    missing: tuple[str, ...] | None = None
    """Parts that PyTorch's build uses whose headers are missing: ``cublas``, ``cusparse`` ..."""


class NvidiaGpu(FactGroup, frozen=True, kw_only=True):
    """An NVIDIA GPU."""

    name: str | None = None
    capability: str | None = None
    """``8.6``."""
    memory: int | None = None
    mig: bool | None = None
    """Whether it is split into instances."""
    integrated: bool | None = None


class CudaDriver(FactGroup, frozen=True, kw_only=True):
    """The NVIDIA driver: its kernel module, its libraries, and whether they work together."""

    module: str | None = None
    """Version of the kernel module: ``580.95.05``; ``none`` if it is not loaded."""
    open_module: bool | None = None
    nvml: str | None = None
    """The driver version that NVML reports; ``none`` without NVML."""
    nvml_error: str | None = None
    """The error of NVML: ``Driver/library version mismatch``."""
    cuda: str | None = None
    """The newest CUDA version that the driver's library supports: ``13.0``."""
    libcuda: str | None = None
    """The ``libcuda.so.1`` that the loader uses; ``none``."""
    libcuda_version: str | None = None
    """Driver version in that file's name."""
    init: int | None = None
    """Result of ``cuInit``: 0, 100 (no device), 803 (driver and library differ), 804 (forward compatibility on
    unsupported hardware) ..."""
    nodes: dict[str, bool] | None = None
    """Device file -> whether this user may open it: ``/dev/nvidiactl``, ``/dev/nvidia-uvm``, ``/dev/nvidia0`` ..."""
    gpus: tuple[NvidiaGpu, ...] | None = None


class CompatPackage(FactGroup, frozen=True, kw_only=True):
    """Libraries of a newer driver, for use with an older kernel module (NVIDIA's forward compatibility)."""

    path: str
    version: str | None = None
    """Driver version of its ``libcuda``."""
    used: bool | None = None
    """Whether the loader uses ``libcuda.so.1`` from there."""


class Cuda(FactGroup, frozen=True, kw_only=True):
    """CUDA."""

    toolkits: tuple[CudaToolkit, ...] | None = None
    """The one that a build uses comes first."""
    driver: CudaDriver | None = None
    compat: tuple[CompatPackage, ...] | None = None
    libraries: tuple[HostLibrary, ...] | None = None
    """cuDNN, NCCL, cuBLAS and others, from all places; in the loader's order."""
    headers: dict[str, str] | None = None
    """Version in a header on the compiler's path or in a toolkit: ``cudnn`` -> ``9.13.0``, ``nccl``."""
    hidden: str | None = None
    """``CUDA_VISIBLE_DEVICES``, if it is set."""


INTEGRATED = frozenset(
    {"gfx801", "gfx810", "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1103"}
    | {"gfx1150", "gfx1151", "gfx1152", "gfx1153"}
)
"""GPUs of AMD that are part of a processor (LLVM, AMDGPU usage: column "APU")."""


class AmdGpu(FactGroup, frozen=True, kw_only=True):
    """An AMD GPU as the kernel's KFD driver lists it."""

    node: int
    """Number of its KFD node: ROCm's device 0 is the lowest."""
    gfx: str | None = None
    """``gfx1100``."""
    simds: int | None = None
    memory: int | None = None
    """Its own memory; small for a GPU that is part of a processor."""
    device: str | None = None
    """PCI device id, ``0x744c``."""
    integrated: bool | None = None
    """Whether it is part of a processor."""


class RocmRoot(FactGroup, frozen=True, kw_only=True):
    """An installed ROCm, or parts of one."""

    root: str
    real: str | None = None
    found_by: tuple[str, ...]
    """``ROCM_PATH``, ``ROCM_HOME``, ``HIP_PATH``, ``PATH``, ``/opt/rocm``, ``/opt``, ``conda``, ``wheel``,
    ``distribution``."""
    version: str | None = None
    """From ``.info/version`` or ``rocm_version.h``."""
    hip_version: str | None = None
    """From ``hip_version.h`` or ``.hipVersion``."""
    hipcc: str | None = None
    """``none``."""
    device_libraries: tuple[str, ...] | None = None
    """Folders with ``ocml.bc`` that belong to it."""
    missing: tuple[str, ...] | None = None
    """Parts that PyTorch's build uses whose headers are missing: ``rocblas``, ``miopen`` ..."""


class Rocm(FactGroup, frozen=True, kw_only=True):
    """ROCm."""

    roots: tuple[RocmRoot, ...] | None = None
    """The one that a build uses comes first."""
    gpus: tuple[AmdGpu, ...] | None = None
    """In KFD's order, without other vendors' GPUs and processors."""
    module: str | None = None
    """Version of the ``amdgpu`` module, ``in-tree`` if it states none; ``none`` if it is not loaded."""
    kfd: bool | None = None
    """Whether this user may open ``/dev/kfd``; ``None`` if it does not exist."""
    render_nodes: dict[str, bool] | None = None
    """``/dev/dri/renderD128`` ... -> whether this user may open it."""
    dxg: bool | None = None
    """Whether ``/dev/dxg`` exists: GPUs in WSL."""
    agents: tuple[str, ...] | None = None
    """Output of ``rocm_agent_enumerator``, without ``gfx000``."""
    offload_archs: tuple[str, ...] | None = None
    """Output of ``offload-arch`` or ``amdgpu-arch``, including features."""
    tools: tuple[HostTool, ...] | None = None
    libraries: tuple[HostLibrary, ...] | None = None
    """rocBLAS, MIOpen, RCCL, HIP runtime and others, from all places; in the loader's order."""
