"""Which variables start a kept build folder from nothing."""

from __future__ import annotations

import pytest

from axletree.buildsystem.variables import names_compiler, starts_afresh


@pytest.mark.parametrize(
    "name", ["CC", "CXX", "CUDA_HOME", "CMAKE_CUDA_COMPILER", "CMAKE_TOOLCHAIN_FILE", "CMAKE_GENERATOR"]
)
@pytest.mark.parametrize("pytorch", [True, False])
def test_another_compiler_starts_from_nothing(name: str, pytorch: bool) -> None:  # noqa: FBT001
    assert names_compiler(name)
    assert starts_afresh(name, pytorch=pytorch)


@pytest.mark.parametrize(
    "name",
    [
        "USE_CUDNN",
        "BUILD_PYTHON",
        "CMAKE_BUILD_TYPE",
        "CMAKE_PREFIX_PATH",
        "CXXFLAGS",
        "LDFLAGS",
        "NCCL_ROOT",
        "fmt_DIR",
    ],
)
@pytest.mark.parametrize("pytorch", [True, False])
def test_what_a_configure_acts_on_does_not(name: str, pytorch: bool) -> None:  # noqa: FBT001
    assert not names_compiler(name)
    assert not starts_afresh(name, pytorch=pytorch)


@pytest.mark.parametrize("name", ["CPATH", "NVCC_APPEND_FLAGS", "LD_LIBRARY_PATH", "SOMETHING"])
def test_what_nobody_knows_does(name: str) -> None:
    assert starts_afresh(name)
    assert starts_afresh(name, pytorch=True)


@pytest.mark.parametrize(
    "name",
    ["BLAS", "TORCH_CUDA_ARCH_LIST", "PYTORCH_BUILD_VERSION", "DEBUG", "GENERIC_BLAS_LIBRARIES", "ONNX_NAMESPACE"],
)
def test_pytorchs_own_are_known_in_its_tree_only(name: str) -> None:
    assert starts_afresh(name)
    assert not starts_afresh(name, pytorch=True)
