"""Who brings a library: patterns of SONAMEs, and the requirements that install their owner."""

from __future__ import annotations

import pytest

from axletree.binary.elf.facts import read_elf
from axletree.core.errors import IntegrityError
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.providers import (
    LIBRARY_PROVIDERS,
    Provider,
    find_providers,
    parse_providers,
    required_names,
)
from axletree.package.libraries.unused import driver_symbols_taken
from support.wheels import make_elf

CUBLAS = Provider(
    name="nvidia-cublas",
    distributions=("nvidia-cublas", "nvidia-cublas-cu*", "cuda-toolkit[cublas]"),
    sonames=("libcublas.so*", "libcublasLt.so*"),
    folders=("nvidia/cu13/lib", "nvidia/cublas/lib"),
)


@pytest.mark.parametrize("soname", ["libcublas.so", "libcublas.so.12", "libcublasLt.so.99"])
def test_a_family_covers_every_major_version(soname: str) -> None:
    assert CUBLAS.brings(soname)


@pytest.mark.parametrize("soname", ["libcublas-a1b2c3d4.so.12", "libcublasXt.so.12", "libfoo.so"])
def test_renamed_copies_and_others_are_not_in_it(soname: str) -> None:
    assert not CUBLAS.brings(soname)


@pytest.mark.parametrize(
    "requirement",
    [
        "nvidia-cublas",
        "NVIDIA_cublas==13.*",
        "nvidia-cublas-cu12 (==12.6.4.1) ; platform_system == 'Linux'",
        "cuda-toolkit[cudart,CUBLAS]==13.0.3",
    ],
)
def test_requirements_that_install_it(requirement: str) -> None:
    assert CUBLAS.declared_by(required_names([requirement]))


@pytest.mark.parametrize("requirement", ["cuda-toolkit==13", "cuda-toolkit[cufft]", "nvidia-cublasmp", "== broken"])
def test_requirements_that_do_not(requirement: str) -> None:
    assert not CUBLAS.declared_by(required_names([requirement]))


@pytest.mark.parametrize(
    ("soname", "names"),
    [
        (
            "libcuda.so.1",
            "cuInit cuMemAlloc_v2 cuGetProcAddress cuGLInit cudbgApiInit cuTensorMapEncodeTiled",
        ),
        ("libnvidia-ml.so.1", "nvmlInit_v2 nvmlDeviceGetCount nvmlErrorString"),
        ("libnvcuvid.so.1", "cuvidCreateDecoder cuvidGetDecoderCaps cuvidParseVideoData"),
    ],
)
def test_symbols_of_a_driver_are_told_from_those_of_cudas_libraries(soname: str, names: str) -> None:
    """As driver 580.159.04 exports them; what reads ELF files must keep all that the table knows."""
    providers = read_shipped(LIBRARY_PROVIDERS)
    others = ("cudaMalloc", "cublasCreate_v2", "cufftPlan1d", "cuptiSubscribe", "curandInit", "nvrtcCompileProgram",
              "cusparseCreate", "cuFileRead", "cudnnCreate", "nvml", "cutlass")  # fmt: skip
    for undefined, weak in ((tuple(names.split()), ()), ((), tuple(names.split()))):
        facts = read_elf(make_elf(needed=(soname,), undefined=(*undefined, *others), weak=weak))
        assert driver_symbols_taken(facts, soname, providers) == tuple(sorted(names.split()))
        assert driver_symbols_taken(facts, "libcudadebugger.so.1", providers) is None
    assert driver_symbols_taken(read_elf(make_elf(undefined=others)), soname, providers) == ()


def test_what_an_extra_requires_counts_only_on_request() -> None:
    requires = ['nvidia-cublas; extra == "gpu"']
    assert required_names(requires) == frozenset()
    assert required_names(requires, extras=True) == {"nvidia-cublas"}


def test_a_folder_holds_for_every_version_in_its_name() -> None:
    assert CUBLAS.lies_in("nvidia/cu14/lib")
    assert CUBLAS.lies_in("nvidia/cublas/lib")
    assert not CUBLAS.lies_in("nvidia/cudnn/lib")


def test_several_may_bring_the_same_library() -> None:
    other = Provider(name="mkl", distributions=("mkl",), sonames=("libcublas.so.*",))
    assert find_providers([CUBLAS, other], "libcublas.so.12") == (CUBLAS, other)
    assert find_providers([CUBLAS, other], "libz.so.1") == ()


def test_a_data_file_is_read() -> None:
    data = b'[[provider]]\nname = "x"\ndistributions = ["x"]\nsonames = ["libx.so*"]\n'
    assert parse_providers(data, file="p.toml") == (Provider(name="x", distributions=("x",), sonames=("libx.so*",)),)


@pytest.mark.parametrize(
    "data",
    [b"x = ", b"[other]\n", b'[[provider]]\nname = "x"\n', b'[[provider]]\nname="x"\nsonames=[]\nextra=1\n', b"\xff"],
)
def test_a_broken_data_file_is_named(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"^p\.toml: "):
        parse_providers(data, file="p.toml")
