"""What hipify did to a file, told from what people do."""

from __future__ import annotations

import pytest

from axletree.buildsystem.pytorch.hipified import BREADCRUMB, is_edited_by_hipify, is_made_by_hipify


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("#ifdef HIP_PLATFORM_HCC\nx\n", "#ifdef HIP_PLATFORM_AMD\nx\n"),
        ("set(HIP_HCC_FLAGS -O2)", "set(HIP_CLANG_FLAGS -O2)"),
        ("#include <cuda_runtime.h>\ncudaMalloc(&p, 1);", "#include <hip_runtime.h>\nhipMalloc(&p, 1);"),
        ("c10::cuda::CUDAStream s;", "c10::hip::HIPStream s;"),
        ("cudnnHandle_t h; ncclComm_t c;", "miopenHandle_t h; rcclComm_t c;"),
    ],
)
def test_hipifys_edits(before: str, after: str) -> None:
    assert is_edited_by_hipify(before, after)
    assert not is_edited_by_hipify(after, before), "only in this direction"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\n", "a\n"),
        ("cudaMalloc(&p, 1);", "hipMalloc(&p, 2);"),
        ("cudaFree(p);\nx = 1;\n", "hipFree(p);\nx = 2;\n"),
        ("cudaFree(p);\n", "hipFree(p);\n// mine\n"),
        ("cudaFree(p);\n// mine\n", "hipFree(p);\n"),
    ],
)
def test_peoples_edits(before: str, after: str) -> None:
    assert not is_edited_by_hipify(before, after)


def test_files_that_hipify_made() -> None:
    assert is_made_by_hipify(BREADCRUMB + b"\nint x;\n")
    assert is_made_by_hipify(BREADCRUMB + b"\r\nint x;\n")
    assert not is_made_by_hipify(b"int x;\n" + BREADCRUMB)
    assert not is_made_by_hipify(b"")
