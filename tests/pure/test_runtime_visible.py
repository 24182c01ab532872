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
    assert reasons == ["ROCR_VISIBLE_DEVICES=1,2 shows 2 of 4 GPUs", "HIP_VISIBLE_DEVICES=0 shows 1 of 2 GPUs"]
    assert "OpenCL" in visible_amd(UUIDS, {"GPU_DEVICE_ORDINAL": "1"})[1][0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, [0, 1, 2]), ("", []), ("2,0", [2, 0]), ("1,9,0", [1]), ("GPU-bb", [1]), ("GPU-", []), ("0,0", [])],
)
def test_nvidia(value: str | None, expected: list[int]) -> None:
    variables = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert visible_nvidia(["GPU-aa11", "GPU-bb22", "GPU-cc33"], variables)[0] == expected
