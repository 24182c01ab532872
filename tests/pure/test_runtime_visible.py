"""Variables that hide GPUs or order them, read as the GPU runtimes read them."""

from __future__ import annotations

import pytest

from axletree_runtime._visible import visible_amd, visible_nvidia

UUIDS = ["GPU-00aabbccddeeff00", "GPU-00aabbccddeeff11", "", "GPU-1122334455667788"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"ROCR_VISIBLE_DEVICES": ""}, []),  # set but empty hides all
        ({"HIP_VISIBLE_DEVICES": ""}, [0, 1, 2, 3]),  # set but empty is not set
        ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "2"}, [2]),
        ({"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "2"}, [1]),
        ({"HIP_VISIBLE_DEVICES": "3,1"}, [3, 1]),
        ({"HIP_VISIBLE_DEVICES": "0,0,1"}, [0, 1]),  # twice counts once
        ({"ROCR_VISIBLE_DEVICES": "0,0,1"}, [0]),  # twice ends the list
        ({"HIP_VISIBLE_DEVICES": "1,-1,2"}, [1]),
        ({"HIP_VISIBLE_DEVICES": "-1"}, []),
        ({"HIP_VISIBLE_DEVICES": "1, 2"}, [1]),  # " 2" is no number to HIP
        ({"ROCR_VISIBLE_DEVICES": "1, 2"}, [1, 2]),  # to ROCr it is
        ({"HIP_VISIBLE_DEVICES": "01"}, []),
        ({"ROCR_VISIBLE_DEVICES": "0x1,4,0"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "gpu-1122"}, [3]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-00aa"}, []),  # two begin so
        ({"ROCR_VISIBLE_DEVICES": "GPU-00AABBCCDDEEFF11,0"}, [1, 0]),
        ({"HIP_VISIBLE_DEVICES": "GPU-1122334455667788"}, [3]),
        ({"HIP_VISIBLE_DEVICES": "GPU-ffff"}, []),
        ({"ROCR_VISIBLE_DEVICES": "1,2,3", "HIP_VISIBLE_DEVICES": "0,2"}, [1, 3]),  # HIP counts in what ROCr left
        ({"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "0"}, []),
        ({"GPU_DEVICE_ORDINAL": "1"}, [0, 1, 2, 3]),
        ({"ROCR_VISIBLE_DEVICES": "one"}, []),
    ],
)
def test_amd(variables: dict[str, str], expected: list[int]) -> None:
    assert visible_amd(UUIDS, variables)[0] == expected


def test_reasons_name_the_variable_and_what_it_left() -> None:
    _, reasons = visible_amd(UUIDS, {"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "0"})
    assert reasons == ["ROCR_VISIBLE_DEVICES=1,2 exposes 2 of 4 GPUs", "HIP_VISIBLE_DEVICES=0 exposes 1 of 2 GPUs"]
    assert "OpenCL" in visible_amd(UUIDS, {"GPU_DEVICE_ORDINAL": "1"})[1][0]


H200 = ["GPU-97fbb5a7-1a13-ec2a-0b92-4490cd2b390a", "GPU-9159bf73-646a-7348-14f0-1e83cc23df00"]
FIRST, SECOND = H200


@pytest.mark.parametrize(
    ("value", "expected"),
    [  # each as libcuda itself showed it on a host with two H200s
        (None, [0, 1]),
        ("", []),
        ("1", [1]),
        ("1,0", [1, 0]),
        ("1,1", []),
        ("0,1,0", []),
        ("1,2,0", [1]),
        ("2,0", []),
        ("-1,0", []),
        ("1, 0", [1, 0]),
        ("0 ,1", [0, 1]),
        ("00,1", [0, 1]),
        ("+1,0", [1, 0]),
        ("1x,0", [1, 0]),
        ("1.5,0", [1, 0]),
        ("1 0", [1]),
        ("1;0", [1]),
        ("0x1", [0]),
        ("x1,0", []),
        ("1,,0", [1]),
        (",1", []),
        ("1,0,", [1, 0]),
        ("NoDevFiles", []),
        (SECOND, [1]),
        (SECOND.upper(), [1]),
        (SECOND.lower(), []),
        (SECOND[:8], [1]),
        (SECOND[:6], [1]),
        (SECOND[:5], []),  # both begin so
        (f"{SECOND}x", [1]),
        (f" {SECOND}", []),
        (SECOND[4:], []),
        (f"{SECOND},{FIRST}", [1, 0]),
        (f"{SECOND},{SECOND}", []),
        (f"0,{SECOND}", [0]),
        (f"{SECOND},0", [1]),
        (f"{SECOND[:8]} ,{FIRST}", []),
        ("1,GPU-zz,0", [1]),
    ],
)
def test_nvidia(value: str | None, expected: list[int]) -> None:
    variables = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert visible_nvidia(H200, variables)[0] == expected


def test_parts_of_nvidias_gpus_leave_all_visible() -> None:
    indices, reasons = visible_nvidia(H200, {"CUDA_VISIBLE_DEVICES": "MIG-1234"})
    assert indices == [0, 1]
    assert reasons == ["CUDA_VISIBLE_DEVICES=MIG-1234 names GPU partitions, so all GPUs are used"]
