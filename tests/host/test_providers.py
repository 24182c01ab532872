"""The lists of providers that ship: complete, and true of the wheels that can be had."""

from __future__ import annotations

import pytest

from axletree.binary.zip.directory import read_directory
from axletree.host.archive import map_file
from axletree.host.shipped_data import read_shipped, shipped_digest
from axletree.package.libraries.providers import LIBRARY_PROVIDERS, find_providers
from support.inputs import wheel


def test_what_torch_needs_has_owners() -> None:
    owners = {
        "libcublasLt.so.13": "nvidia-cublas",
        "libcudnn.so.9": "nvidia-cudnn",
        "libcusparseLt.so.0": "nvidia-cusparselt",
        "libnvshmem_host.so.3": "nvidia-nvshmem",
        "libcudart.so.14": "nvidia-cuda-runtime",
        "libcuda.so.1": "NVIDIA driver",
        "libc10_cuda.so": "torch",
        "libamdhip64.so.7": "rocm-sdk-core",
        "librocblas.so.5": "rocm-sdk-libraries",
        "libiomp5.so": "intel-openmp",
    }
    found = {soname: find_providers(read_shipped(LIBRARY_PROVIDERS), soname)[:1] for soname in owners}
    assert {soname: [provider.name for provider in first] for soname, first in found.items()} == {
        soname: [name] for soname, name in owners.items()
    }


def test_the_lists_contradict_nothing() -> None:
    providers = read_shipped(LIBRARY_PROVIDERS)
    names = [provider.name for provider in providers]
    assert len(set(names)) == len(names)
    for provider in providers:
        assert provider.sonames
        assert set(provider.loads) <= set(names)
        assert bool(provider.distributions) == (provider.kind == "distribution")
        assert bool(provider.folders) == (provider.kind == "distribution")
    assert len(shipped_digest(LIBRARY_PROVIDERS)) == 64


@pytest.mark.parametrize(
    "requirement",
    [
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-cuda-nvrtc-cu12==12.6.77",
        "nvidia-nvjitlink-cu12==12.6.85",
        "nvidia-nvtx-cu12==12.9.79",
    ],
)
def test_a_real_wheel_brings_what_the_list_says_where_it_says(requirement: str) -> None:
    path = wheel(requirement)
    distribution = requirement.partition("==")[0]
    libraries = [entry.name for entry in read_directory(map_file(path), archive=path.name) if ".so" in entry.name]
    assert libraries
    for library in libraries:
        folder, _, soname = library.rpartition("/")
        owners = find_providers(read_shipped(LIBRARY_PROVIDERS), soname)
        assert any(owner.declared_by([distribution]) and owner.lies_in(folder) for owner in owners), library
