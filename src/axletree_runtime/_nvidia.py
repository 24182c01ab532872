"""NVIDIA's GPUs, as the driver's management library lists them: it needs no CUDA and makes no context."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ._detect import Detection, Gpu
from ._visible import visible_nvidia

if TYPE_CHECKING:
    from ._host import Host

_GPUS = "/proc/driver/nvidia/gpus"
_LIBRARY = "libnvidia-ml.so.1"


def detect_nvidia(host: Host, library: Any = None) -> Detection:
    """The GPUs of a host, those that ``CUDA_VISIBLE_DEVICES`` shows.

    Args:
        host: the host.
        library: NVML; None: the driver's.
    """
    if library is None:
        if not host.names(_GPUS) and not host.exists("/dev/dxg"):
            return Detection((), (f"{_GPUS} does not list an NVIDIA GPU",))
        try:
            library = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            return Detection((), (f"{_LIBRARY} cannot be loaded: {error}",))
    code = library.nvmlInit_v2()
    if code:
        return Detection((), (f"{_LIBRARY}: nvmlInit failed with {code}",))
    try:
        gpus = _list(library)
    finally:
        library.nvmlShutdown()
    order, reasons = visible_nvidia([gpu.uuid for gpu in gpus], host.environ)
    told = [
        f"{gpu.source}: {gpu.target or 'a GPU that does not report its compute capability'} ({gpu.name})"
        for gpu in gpus
    ]
    if len({gpu.target for gpu in gpus}) > 1 and host.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        told.append("the GPUs differ, so CUDA may number them in a different order unless CUDA_DEVICE_ORDER=PCI_BUS_ID")
    return Detection(tuple(gpus[index] for index in order), (*told, *reasons), chosen=bool(reasons) and bool(order))


def _list(library: Any) -> list[Gpu]:
    count = ctypes.c_uint()
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return []
    gpus: list[Gpu] = []
    for index in range(count.value):
        device = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        failed = library.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor))
        gpus.append(
            Gpu(
                target="" if failed else f"sm_{major.value}{minor.value}",
                source=f"NVML device {index}",
                uuid=_text(library.nvmlDeviceGetUUID, device),
                name=_text(library.nvmlDeviceGetName, device),
            )
        )
    return gpus


def _text(function: Any, device: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(96)
    return buffer.value.decode(errors="replace") if function(device, buffer, 96) == 0 else ""
