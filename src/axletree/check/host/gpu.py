"""CUDA and ROCm: toolkits, drivers, GPUs, libraries."""

from __future__ import annotations

from axletree.check.host.part import FactGroup, HostLibrary, HostTool


class CudaToolkit(FactGroup, frozen=True, kw_only=True):
    """An installed CUDA toolkit, or what of one wheels or conda packages brought."""

    root: str
    real: str | None = None
    """The folder behind links such as ``/usr/local/cuda``."""
    found_by: tuple[str, ...]
    """``CUDA_HOME``, ``CUDA_PATH``, ``PATH``, ``/usr/local/cuda``, ``/usr/local``, ``conda``, ``wheel``: builds take
    the first that there is."""
    version: str | None = None
    """``13.0`` or more exact; of nvcc, ``version.json`` or ``cuda.h``, in this order."""
    nvcc: str | None = None
    """The program; ``none`` in a toolkit of run-time libraries alone."""
    nvcc_version: str | None = None
    header_version: str | None = None
    """``CUDA_VERSION`` of its ``cuda.h``; ``none`` without headers."""
    archs: tuple[str, ...] | None = None
    """What its nvcc compiles for: ``compute_75`` ..."""
    gcc_most: int | None = None
    """Highest major version of GCC that its own ``host_config.h`` takes."""
    clang_most: int | None = None
    cudart: bool | None = None
    """Whether ``cuda_runtime.h`` and a ``libcudart`` are there."""
    stub: bool | None = None
    """Whether it has ``stubs/libcuda.so``, which links without a driver need."""
    missing: tuple[str, ...] | None = None
    """Of the parts that PyTorch is built with, those whose header is not there: ``cublas``, ``cusparse`` ..."""


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
    """The NVIDIA driver: its kernel part, its libraries, and whether they work together."""

    module: str | None = None
    """Version of the kernel module: ``580.95.05``; ``none`` where it is not loaded."""
    open_module: bool | None = None
    nvml: str | None = None
    """The driver version that NVML tells; ``none`` without NVML."""
    nvml_error: str | None = None
    """What NVML says instead: ``Driver/library version mismatch``."""
    cuda: str | None = None
    """The newest CUDA version that the driver's library serves: ``13.0``."""
    libcuda: str | None = None
    """The ``libcuda.so.1`` that the loader takes; ``none``."""
    libcuda_version: str | None = None
    """Driver version in that file's name."""
    init: int | None = None
    """What ``cuInit`` returned: 0, 100 (no device), 803 (driver and library differ), 804 (forward compatibility on
    hardware that has none) ..."""
    nodes: dict[str, bool] | None = None
    """Device file -> whether this user may open it: ``/dev/nvidiactl``, ``/dev/nvidia-uvm``, ``/dev/nvidia0`` ..."""
    gpus: tuple[NvidiaGpu, ...] | None = None


class CompatPackage(FactGroup, frozen=True, kw_only=True):
    """Libraries of a newer driver, for use with an older kernel module (NVIDIA's forward compatibility)."""

    path: str
    version: str | None = None
    """Driver version of its ``libcuda``."""
    used: bool | None = None
    """Whether the loader takes ``libcuda.so.1`` from there."""


class Cuda(FactGroup, frozen=True, kw_only=True):
    """All about CUDA."""

    toolkits: tuple[CudaToolkit, ...] | None = None
    """The one that a build takes is first."""
    driver: CudaDriver | None = None
    compat: tuple[CompatPackage, ...] | None = None
    libraries: tuple[HostLibrary, ...] | None = None
    """cuDNN, NCCL, cuBLAS and others, wherever they lie; in the loader's order."""
    headers: dict[str, str] | None = None
    """Version that a header on the compiler's path or in a toolkit states: ``cudnn`` -> ``9.13.0``, ``nccl``."""
    hidden: str | None = None
    """``CUDA_VISIBLE_DEVICES``, where it is set."""


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
    """Of its own; small for one that is part of a processor."""
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
    """Of ``.info/version`` or ``rocm_version.h``."""
    hip_version: str | None = None
    """Of ``hip_version.h`` or ``.hipVersion``."""
    hipcc: str | None = None
    """``none``."""
    device_libraries: tuple[str, ...] | None = None
    """Folders with ``ocml.bc`` that belong to it."""
    missing: tuple[str, ...] | None = None
    """Of the parts that PyTorch is built with, those whose header is not there: ``rocblas``, ``miopen`` ..."""


class Rocm(FactGroup, frozen=True, kw_only=True):
    """All about ROCm."""

    roots: tuple[RocmRoot, ...] | None = None
    """The one that a build takes is first."""
    gpus: tuple[AmdGpu, ...] | None = None
    """In KFD's order; without those of other vendors and processors."""
    module: str | None = None
    """Version of the ``amdgpu`` module, ``in-tree`` where it tells none; ``none`` where it is not loaded."""
    kfd: bool | None = None
    """Whether this user may open ``/dev/kfd``; ``None`` where it is not there."""
    render_nodes: dict[str, bool] | None = None
    """``/dev/dri/renderD128`` ... -> whether this user may open it."""
    dxg: bool | None = None
    """Whether ``/dev/dxg`` is there: GPUs in WSL."""
    agents: tuple[str, ...] | None = None
    """What ``rocm_agent_enumerator`` prints, without ``gfx000``."""
    offload_archs: tuple[str, ...] | None = None
    """What ``offload-arch`` or ``amdgpu-arch`` prints, features included."""
    tools: tuple[HostTool, ...] | None = None
    libraries: tuple[HostLibrary, ...] | None = None
    """rocBLAS, MIOpen, RCCL, HIP runtime and others, wherever they lie; in the loader's order."""
