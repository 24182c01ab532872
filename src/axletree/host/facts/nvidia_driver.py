"""The NVIDIA driver: what its kernel part, NVML and the CUDA driver library say, each asked by itself."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import msgspec

from axletree.check.host.gpu import CudaDriver, NvidiaGpu
from axletree.host.facts.access import Seen

if TYPE_CHECKING:
    from axletree.host.facts.access import Access, Answer
    from axletree.host.facts.loader import Loader

_SECONDS = 30.0
"""With eight GPUs and no persistence mode the first call takes many seconds."""
_PROC = "/proc/driver/nvidia/version"
# A process of its own: a broken driver may hang or kill it.
_NVML = """
import ctypes, json
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
try:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
except OSError as error:
    print(json.dumps({"missing": str(error)}))
    raise SystemExit
nvml.nvmlErrorString.restype = ctypes.c_char_p
code = nvml.nvmlInit_v2()
if code:
    print(json.dumps({"error": nvml.nvmlErrorString(code).decode()}))
    raise SystemExit
def text(function, *first):
    buffer = ctypes.create_string_buffer(96)
    return buffer.value.decode() if function(*first, buffer, 96) == 0 else None
def number(function, *first):
    value = ctypes.c_int()
    return value.value if function(*first, ctypes.byref(value)) == 0 else None
answer = {"driver": text(nvml.nvmlSystemGetDriverVersion)}
answer["cuda"] = number(nvml.nvmlSystemGetCudaDriverVersion_v2)
answer["gpus"] = []
for index in range(number(nvml.nvmlDeviceGetCount_v2) or 0):
    device = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
        continue
    major, minor, memory = ctypes.c_int(), ctypes.c_int(), Memory()
    known = nvml.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor)) == 0
    sized = nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    mode, pending = ctypes.c_uint(), ctypes.c_uint()
    split = nvml.nvmlDeviceGetMigMode(device, ctypes.byref(mode), ctypes.byref(pending)) == 0 and mode.value == 1
    answer["gpus"].append({
        "name": text(nvml.nvmlDeviceGetName, device),
        "capability": "%d.%d" % (major.value, minor.value) if known else None,
        "memory": memory.total if sized else None,
        "mig": split,
    })
print(json.dumps(answer))
"""
_CUDA = """
import ctypes, json
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    print(json.dumps({"missing": str(error)}))
    raise SystemExit
answer = {"path": next((line.split()[-1] for line in open("/proc/self/maps") if "/libcuda.so" in line), None)}
version = ctypes.c_int()
answer["cuda"] = version.value if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0 else None
answer["init"] = cuda.cuInit(0)
answer["gpus"] = []
count = ctypes.c_int()
if answer["init"] == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
    for index in range(count.value):
        device, name, memory = ctypes.c_int(), ctypes.create_string_buffer(96), ctypes.c_size_t()
        cuda.cuDeviceGet(ctypes.byref(device), index)
        cuda.cuDeviceGetName(name, 96, device)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
        values = []
        for attribute in (75, 76, 18):  # compute capability, integrated
            value = ctypes.c_int()
            cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            values.append(value.value)
        answer["gpus"].append({
            "name": name.value.decode(),
            "capability": "%d.%d" % (values[0], values[1]),
            "memory": memory.value,
            "integrated": bool(values[2]),
        })
print(json.dumps(answer))
"""


class _Said(msgspec.Struct, frozen=True):
    missing: str | None = None
    error: str | None = None
    driver: str | None = None
    path: str | None = None
    cuda: int | None = None
    init: int | None = None
    gpus: tuple[NvidiaGpu, ...] = ()


def driver_facts(access: Access, loader: Loader) -> CudaDriver:
    """The driver of the access's host."""
    seen = Seen()
    text = access.peek(_PROC)
    if text is None:
        loaded = access.exists("/sys/module/nvidia/version")
        module = access.peek("/sys/module/nvidia/version") if loaded else "none"
        seen.put("module", "/sys/module/nvidia/version" if loaded else f"{_PROC} does not exist", module)
        seen.put("open_module", f"{_PROC} does not exist", None)
    else:
        version = re.search(r"(?:Kernel Module(?: for \S+)?)\s+(\d+(?:\.\d+)+)", text)
        seen.put("module", _PROC, version[1] if version else None)
        seen.put("open_module", _PROC, "Open Kernel Module" in text)
    found = loader.find("libcuda.so.1")
    nvml = _ask(access, _NVML)
    cuda = _ask(access, _CUDA)
    _nvml(seen, nvml)
    path = cuda.path if isinstance(cuda, _Said) and cuda.path else found
    seen.put("libcuda", "the libcuda.so.1 that the loader found" if path else loader.source, path or "none")
    exact = re.search(r"libcuda\.so\.(\d+\.[\d.]+)$", access.real(path)) if path else None
    seen.put("libcuda_version", "the name of the file that libcuda.so.1 leads to", exact[1] if exact else None)
    _cuda(seen, cuda, nvml)
    names = [
        f"/dev/{name}"
        for name in access.names("/dev")
        if re.fullmatch(r"nvidia(?:\d+|ctl|-uvm(?:-tools)?|-modeset)", name)
    ]
    nodes = {name: os.access(access.path(name), os.R_OK | os.W_OK) for name in names}
    seen.put("nodes", "access(2) of /dev/nvidia*", nodes)
    return CudaDriver(**seen.values, sources=seen.sources)


def _ask(access: Access, script: str) -> _Said | str:
    """What a script says, or why it says nothing."""
    said: Answer = access.run([sys.executable, "-I", "-S", "-c", script], environ=access.environ, seconds=_SECONDS)
    if said.code != 0:
        return said.trouble
    try:
        return msgspec.json.decode(said.out, type=_Said)
    except msgspec.MsgspecError as error:
        return str(error)


def _nvml(seen: Seen, nvml: _Said | str) -> None:
    if isinstance(nvml, str):
        seen.put("nvml", f"NVML: {nvml}", None)
        seen.put("nvml_error", f"NVML: {nvml}", None)
        return
    version = "none" if nvml.missing else nvml.driver
    seen.put("nvml", f"libnvidia-ml.so.1: {nvml.missing or nvml.error or 'queried'}", version)
    seen.put("nvml_error", "nvmlInit", nvml.error)


def _cuda(seen: Seen, cuda: _Said | str, nvml: _Said | str) -> None:
    told = cuda if isinstance(cuda, _Said) else _Said()
    listed = nvml if isinstance(nvml, _Said) else _Said()
    why = cuda if isinstance(cuda, str) else told.missing or ""
    number = told.cuda or listed.cuda
    source = (
        "cuDriverGetVersion"
        if told.cuda
        else "nvmlSystemGetCudaDriverVersion"
        if listed.cuda
        else f"libcuda.so.1: {why}"
    )
    seen.put("cuda", source, f"{number // 1000}.{number % 1000 // 10}" if number else None)
    seen.put("init", "cuInit" if told.init is not None else f"cuInit: {why}", told.init)
    if not listed.gpus and not told.gpus:
        known = isinstance(nvml, _Said) and (nvml.missing is not None or nvml.driver is not None)
        seen.put(
            "gpus", "NVML does not list any" if known else "neither NVML nor CUDA lists any GPU", () if known else None
        )
        return
    integrated = {gpu.name: gpu.integrated for gpu in told.gpus}
    source = "NVML" if listed.gpus else "CUDA's driver library"
    sources = dict.fromkeys(("name", "capability", "memory", "mig", "integrated"), source)
    gpus = tuple(
        msgspec.structs.replace(gpu, integrated=integrated.get(gpu.name), sources=sources)
        for gpu in listed.gpus or told.gpus
    )
    seen.put("gpus", source, gpus)
