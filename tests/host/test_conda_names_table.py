"""The table of conda names that ships."""

from axletree.host.shipped_data import read_shipped
from axletree.package.conda.requires import CONDA_NAMES, CondaTarget, convert_requires
from axletree.package.wheel.metadata import create_metadata

LINUX = CondaTarget(subdir="linux-64", python="3.11")


def test_what_torch_for_cuda_13_requires() -> None:
    requires = [
        "filelock",
        "typing-extensions>=4.10.0",
        "cuda-toolkit[cublas,nvrtc]==13.0.3; platform_system == 'Linux'",
        "nvidia-cudnn-cu13==9.24.0.43",
        "nvidia-nvshmem-cu13==3.4.5",
        "triton~=3.8.0",
    ]
    metadata = create_metadata(name="torch", version="2.14.1", requires=requires)
    found = convert_requires(metadata, LINUX, read_shipped(CONDA_NAMES))
    assert found.guessed == ()
    assert found.depends == (
        "filelock",
        "typing_extensions >=4.10.0",
        "libcublas",
        "cuda-nvrtc",
        "cuda-version >=13.0,<14",
        "libcudnn >=9.24.0.43,<10",
        "libnvshmem3 >=3.4.5,<4",
        "triton >=3.8.0,3.8.*",
    )


def test_every_line_makes_a_dependency() -> None:
    for name in read_shipped(CONDA_NAMES):
        for pin in ("==13.0.3", ">=1", ""):
            metadata = create_metadata(name="demo", version="1.0", requires=[f"{name}{pin}"])
            assert all("{" not in spec for spec in convert_requires(metadata, LINUX, read_shipped(CONDA_NAMES)).depends)
