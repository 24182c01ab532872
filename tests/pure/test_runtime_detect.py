"""GPUs of hosts that are dictionaries of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from axletree_runtime._detect import detect, gfx_name, strip_features
from axletree_runtime._host import Host
from axletree_runtime._nvidia import detect_nvidia
from axletree_runtime._sdk import SdkFile

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Sequence

NODES = "/sys/class/kfd/kfd/topology/nodes"
CPU = {"cpu_cores_count": 16, "simd_count": 0, "vendor_id": 0}


@dataclass(frozen=True)
class Files(Host):
    """A host of given files, and of programs that print given text."""

    files: dict[str, str] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def read(self, path: str) -> str:
        return self.files.get(path, "")

    def names(self, path: str) -> list[str]:
        below = (name[len(path) + 1 :] for name in self.files if name.startswith(f"{path}/"))
        return sorted({name.partition("/")[0] for name in below})

    def exists(self, path: str) -> bool:
        return any(name == path or name.startswith(f"{path}/") for name in self.files)

    def program(self, name: str) -> Path | None:
        return Path("/usr/bin", name) if name in self.programs else None

    def ask(self, command: Sequence[str | Path]) -> tuple[str, str]:
        self.asked.append(Path(command[0]).name)
        said = self.programs[Path(command[0]).name]
        return said, "" if said else "exit code 1"


def sdk(**fields: Any) -> SdkFile:
    given = {"sdk": "rocm", "dist": "rocm", "module": "rocm_sdk", "command": "rocm-sdk", "prefix": "ROCM_SDK"}
    return SdkFile(**{**given, "version": "7.1.0", "packages": (), **fields})


def kfd(*nodes: dict[str, int], environ: dict[str, str] | None = None, banks: Sequence[int] = (), **more: str) -> Files:
    """A host with the nodes of KFD's topology; ``banks`` are kinds of memory of the last one."""
    files = {
        f"{NODES}/{number}/properties": "".join(f"{name} {value}\n" for name, value in node.items())
        for number, node in enumerate(nodes)
    }
    for bank, kind in enumerate(banks):
        files[f"{NODES}/{len(nodes) - 1}/mem_banks/{bank}/properties"] = f"heap_type {kind}\nsize_in_bytes 512\n"
    return Files(environ=environ or {}, files={**files, **more})


def gpu(version: int, **fields: int) -> dict[str, int]:
    return {"simd_count": 64, "vendor_id": 0x1002, "gfx_target_version": version, "cpu_cores_count": 0, **fields}


@pytest.mark.parametrize(
    ("number", "name"),
    [(90010, "gfx90a"), (90402, "gfx942"), (100300, "gfx1030"), (110501, "gfx1151"), (130000, "gfx1300")],
)
def test_names_of_targets(number: int, name: str) -> None:
    assert gfx_name(number) == name


def test_processors_are_no_gpus_and_equal_gpus_count_once() -> None:
    found = detect(sdk(), kfd(CPU, gpu(90402), gpu(90402), CPU))
    assert found.targets == ("gfx942",)
    assert [each.source for each in found.gpus] == ["KFD node 1", "KFD node 2"]


def test_report_10_a_discrete_gpu_goes_before_an_integrated_one_that_the_kernel_lists_first() -> None:
    found = detect(sdk(), kfd(CPU, gpu(100306), gpu(120001)))
    assert [each.target for each in found.gpus] == ["gfx1201", "gfx1036"]
    assert found.targets == ("gfx1201",)
    assert "gfx1036 is integrated into a processor, so discrete GPUs take precedence" in found.reasons


def test_report_10_a_gpu_that_somebody_made_visible_counts_though_it_is_integrated() -> None:
    host = kfd(CPU, gpu(100306), gpu(120001), environ={"HIP_VISIBLE_DEVICES": "0"})
    found = detect(sdk(), host)
    assert found.targets == ("gfx1036",)
    assert "HIP_VISIBLE_DEVICES=0 exposes 1 of 2 GPUs" in found.reasons
    both = kfd(CPU, gpu(100306), gpu(120001), environ={"HIP_VISIBLE_DEVICES": "0,1"})
    assert detect(sdk(), both).targets == ("gfx1036", "gfx1201")


def test_an_integrated_gpu_alone_is_used() -> None:
    assert detect(sdk(), kfd({**CPU, **gpu(110501)})).targets == ("gfx1151",)


def test_a_new_number_breaks_nothing_and_counts_as_discrete_if_it_has_memory_of_its_own() -> None:
    known = {"hierarchy": {"gfx942": ("gfx9",)}}
    assert detect(sdk(**known), kfd(CPU, gpu(130000), gpu(90402))).targets == ("gfx1300", "gfx942")
    discrete = detect(sdk(**known), kfd(CPU, gpu(90402), gpu(130000), banks=[0, 1]))
    assert discrete.targets == ("gfx942", "gfx1300")
    integrated = detect(sdk(**known), kfd(CPU, gpu(90402), gpu(130000), banks=[0]))
    assert integrated.targets == ("gfx942",)


def test_the_sdk_can_name_further_integrated_gpus() -> None:
    host = kfd(CPU, gpu(130000), gpu(120001))
    assert detect(sdk(integrated=("gfx1300",)), host).targets == ("gfx1201",)


def test_uuids_are_those_of_the_kernel() -> None:
    host = kfd(CPU, gpu(90402, unique_id=0xAB), gpu(90010), environ={"ROCR_VISIBLE_DEVICES": "GPU-00000000000000ab"})
    assert detect(sdk(), host).targets == ("gfx942",)


def test_what_hsa_override_gfx_version_makes_of_a_gpu() -> None:
    variables = {"HSA_OVERRIDE_GFX_VERSION": "11.0.0", "HSA_OVERRIDE_GFX_VERSION_2": "10.3.0"}
    found = detect(sdk(), kfd(CPU, gpu(110002), gpu(100301), environ=variables))
    assert found.targets == ("gfx1100", "gfx1030")
    assert "KFD node 1: gfx1100, set by HSA_OVERRIDE_GFX_VERSION=11.0.0 instead of gfx1102" in found.reasons


def test_no_driver_no_gpu_and_no_program_is_asked() -> None:
    host = Files(environ={}, programs={"rocminfo": "  Name: gfx942\n"})
    found = detect(sdk(), host)
    assert (found.targets, host.asked) == ((), [])
    assert found.reasons == (f"no AMD GPU driver is loaded ({NODES} is missing)",)


@pytest.mark.parametrize("order", ["gfx1036\ngfx1201\n", "gfx1201\ngfx1036\n"])
def test_fault_i_tools_that_list_an_integrated_gpu_first_do_not_decide(order: str) -> None:
    host = Files(environ={}, files={"/dev/dxg": ""}, programs={"offload-arch": order})
    found = detect(sdk(), host)
    assert found.targets == ("gfx1201",)
    assert any("offload-arch: gfx1" in reason for reason in found.reasons)


def test_fault_j_features_of_a_target_are_no_part_of_its_name() -> None:
    host = Files(environ={}, files={"/dev/kfd": ""}, programs={"offload-arch": "gfx90a:sramecc+:xnack-\n"})
    assert detect(sdk(), host).targets == ("gfx90a",)
    assert strip_features(" gfx90a:sramecc+:xnack- ") == "gfx90a"


def test_what_rocminfo_prints_names_each_gpu_once() -> None:
    text = "  Name:                    gfx1100\n  Marketing Name: AMD\n      Name:   amdgcn-amd-amdhsa--gfx1100\n"
    host = Files(environ={}, files={"/dev/dxg": ""}, programs={"rocminfo": text + "  Name: gfx000\n"})
    assert [each.target for each in detect(sdk(), host).gpus] == ["gfx1100"]


def test_report_21_wsl_is_named_with_the_variable_that_it_needs() -> None:
    found = detect(sdk(), Files(environ={}, files={"/dev/dxg": ""}))
    assert any("HSA_ENABLE_DXG_DETECTION=1" in reason for reason in found.reasons)


def test_a_tool_that_fails_gives_way_to_the_next_one() -> None:
    host = Files(environ={}, files={"/dev/kfd": ""}, programs={"amdgpu-arch": "", "rocminfo": "  Name: gfx942\n"})
    found = detect(sdk(), host)
    assert found.targets == ("gfx942",)
    assert "/usr/bin/amdgpu-arch: exit code 1" in found.reasons


def test_a_gpu_whose_target_the_kernel_does_not_tell_is_named_and_the_others_count() -> None:
    old = {"simd_count": 64, "vendor_id": 0x1002, "device_id": 0x7550}
    found = detect(sdk(), kfd(CPU, old, gpu(90402)))
    assert found.targets == ("gfx942",)
    assert "KFD node 1: a GPU whose target the kernel does not report (device 0x7550)" in found.reasons


def test_a_gpu_that_a_container_was_not_given_is_told() -> None:
    found = detect(sdk(), kfd(CPU, {}))
    assert found.targets == ()
    assert found.reasons == (
        "KFD node 1 cannot be read, so this process cannot use it",
        f"none of the 2 nodes in {NODES} is a GPU",
    )


def test_detection_can_be_forced_and_switched_off() -> None:
    host = kfd(CPU, gpu(90402), environ={"ROCM_SDK_FORCE_GFX_ARCH": "gfx90a:xnack+; gfx1100"})
    assert detect(sdk(), host).targets == ("gfx90a", "gfx1100")
    off = kfd(CPU, gpu(90402), environ={"ROCM_SDK_DISABLE_DETECTION": "1"})
    assert detect(sdk(), off).targets == ()
    on = kfd(CPU, gpu(90402), environ={"ROCM_SDK_DISABLE_DETECTION": "0"})
    assert detect(sdk(), on).targets == ("gfx942",)


class Nvml:
    """NVIDIA's management library on a host with given compute capabilities."""

    def __init__(self, *capabilities: tuple[int, int], code: int = 0) -> None:
        self.capabilities, self.code, self.open = capabilities, code, 0

    def nvmlInit_v2(self) -> int:  # noqa: N802
        self.open += not self.code
        return self.code

    def nvmlShutdown(self) -> int:  # noqa: N802
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.capabilities)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, device: Any) -> int:  # noqa: N802
        device._obj.value = index
        return 0

    def nvmlDeviceGetCudaComputeCapability(self, device: ctypes.c_void_p, major: Any, minor: Any) -> int:  # noqa: N802
        major._obj.value, minor._obj.value = self.capabilities[device.value or 0]
        return 0

    def nvmlDeviceGetUUID(self, device: ctypes.c_void_p, buffer: Any, _size: int) -> int:  # noqa: N802
        buffer.value = f"GPU-{device.value or 0}".encode()
        return 0

    def nvmlDeviceGetName(self, _device: ctypes.c_void_p, buffer: Any, _size: int) -> int:  # noqa: N802
        buffer.value = b"Some GPU"
        return 0


def test_nvidias_gpus() -> None:
    library = Nvml((9, 0), (12, 0))
    found = detect_nvidia(Files(environ={"CUDA_VISIBLE_DEVICES": "1"}), library)
    assert found.targets == ("sm_120",)
    assert library.open == 0
    assert any("CUDA_DEVICE_ORDER" in reason for reason in found.reasons)


def test_without_nvidias_driver_its_library_is_not_looked_for() -> None:
    found = detect(sdk(maker="nvidia"), Files(environ={}))
    assert (found.targets, found.reasons) == ((), ("/proc/driver/nvidia/gpus does not list an NVIDIA GPU",))


def test_a_driver_that_refuses_is_told() -> None:
    assert detect_nvidia(Files(environ={}), Nvml(code=9)).reasons == ("libnvidia-ml.so.1: nvmlInit failed with 9",)
