"""PyTorch 2.5.1 and conda-forge's recipe of it on 2024-11-28, as far as the feedstock's table of versions tells.

Files have the form that upstream's and the feedstock's have; each says what the table says.
"""

from __future__ import annotations

import json
from pathlib import Path

import axletree.backends
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.requires import CONDA_NAMES
from axletree.package.drift.names import DependencyTable, parse_table
from axletree.package.drift.tree import SourceFacts
from axletree.package.drift.vendored import VendoredSubmodule

COMMIT = "a6bfc237255a6bac1513f7c1ebde6d8aed6b5191"

BUILD_SH = """\
case "$image" in
  pytorch-linux-focal-cuda12.4-cudnn9-py3-gcc9)
    CUDA_VERSION=12.4.1
    CUDNN_VERSION=9
    ANACONDA_PYTHON_VERSION=3.10
    ;;
  pytorch-linux-focal-cuda12.1-cudnn9-py3-gcc9)
    CUDA_VERSION=12.1.1
    CUDNN_VERSION=9
    ;;
  pytorch-linux-focal-cuda11.8-cudnn9-py3-gcc9)
    CUDA_VERSION=11.8.0
    ;;
esac
"""
INSTALL_MAGMA = """\
function do_install() {
    cuda_version=$1
    MAGMA_VERSION="2.6.1"
    magma_archive="magma-cuda${cuda_version_nodot}-${MAGMA_VERSION}-1.tar.bz2"
}
"""
INSTALL_MKL = """\
# MKL
MKL_VERSION=2024.2.0
python3 -mpip download -d . mkl-static==${MKL_VERSION}
"""
DOWNLOAD_SIX = """\
CMAKE_MINIMUM_REQUIRED(VERSION 2.8.12 FATAL_ERROR)
PROJECT(six-download NONE)
INCLUDE(ExternalProject)
ExternalProject_Add(six
\tURL https://files.example/packages/16/d8/bc6316cf/six-1.11.0.tar.gz
\tURL_HASH SHA256=70e8a77beed4562e7f14fe23a786b54f6296e34344c23bc42f07b15018ff98e9
\tSOURCE_DIR "${CONFU_DEPENDENCIES_SOURCE_DIR}/six"
)
"""
REQUIREMENTS_CI = """\
# Python dependencies required for unit tests
pyyaml==6.0.2
#pyyaml
requests==2.32.2 ; python_version < "3.10"
typing-extensions==4.12.2
"""
REQUIRES = (
    "filelock",
    "typing-extensions>=4.8.0",
    "networkx",
    "jinja2",
    "fsspec",
    'sympy==1.13.1; python_version >= "3.9"',
    'triton==3.1.0; platform_system == "Linux" and platform_machine == "x86_64" and python_version < "3.13"',
    'opt-einsum>=3.3; extra == "opt-einsum"',
)
META = """\
{% set version = "2.5.1" %}
package:
  name: libtorch
  version: {{ version }}
requirements:
  build:
    - {{ compiler('cxx') }}
    - cmake
  host:
    # GPU requirements
    - cuda-version {{ cuda_compiler_version }}   # [cuda_compiler_version != "None"]
    - cuda-version 12.6         # [cuda_compiler_version == "12.6"]
    - nccl                      # [cuda_compiler_version == "12.6"]
    - libmagma-devel            # [cuda_compiler_version == "12.6"]
    - numpy *
    - six
    - pyyaml
    - requests
    - mkl-devel <2024           # [blas_impl == "mkl"]
    - libabseil
    - libprotobuf
    - sleef
    - libuv
    - libcusomething            # [win]
outputs:
  - name: pytorch
    requirements:
      run:
        - {{ pin_subpackage('libtorch', exact=True) }}
        - __cuda                # [cuda_compiler_version != "None"]
        - filelock
        - fsspec
        - jinja2
        - networkx
        - sympy >=1.13.1,!=1.13.2
        - typing_extensions
    test:
      requires:
        - pytest
"""
NEWEST = {
    "cuda-version": "12.6",
    "libmagma": "2.8.0",
    "libabseil": "20240722.0",
    "libuv": "1.49.2",
    "mkl": "2023.2.0",
    "nccl": "2.23.4.1",
    "libprotobuf": "5.28.2",
    "sleef": "3.7",
    "filelock": "3.16.1",
    "fsspec": "2024.10.0",
    "jinja2": "3.1.4",
    "networkx": "3.4.2",
    "numpy": "2.1.3",
    "pyyaml": "6.0.2",
    "requests": "2.32.3",
    "six": "1.16.0",
    "sympy": "1.13.3",
    "typing_extensions": "4.12.2",
    "triton": "3.1.0",
}
DAY = 1_732_752_000
"""2024-11-28 in seconds since 1970."""


def table() -> DependencyTable:
    """The table that ships."""
    data = Path(axletree.backends.__file__).with_name("data") / "dependencies.toml"
    return parse_table(data.read_bytes(), file=data.name, conda=read_shipped(CONDA_NAMES))


def submodule(path: str, described: str, url: str = "", **others: object) -> VendoredSubmodule:
    """A submodule that is checked out, with tags."""
    fields = {"here": True, "tags": 9, "checked_out": COMMIT, **others}
    return VendoredSubmodule(path=path, commit=COMMIT, url=url, described=described, **fields)  # type: ignore[arg-type]


def pytorch_2_5() -> SourceFacts:
    """The source tree."""
    return SourceFacts(
        folder="pytorch",
        commit=COMMIT,
        files={
            "version.txt": "2.5.1\n",
            ".ci/docker/build.sh": BUILD_SH,
            ".ci/docker/common/install_magma.sh": INSTALL_MAGMA,
            ".ci/docker/common/install_mkl.sh": INSTALL_MKL,
            ".ci/docker/requirements-ci.txt": REQUIREMENTS_CI,
            ".ci/pytorch/build.sh": "python -mpip install numpy==2.0.2\n",
            "third_party/NNPACK/cmake/DownloadSix.cmake": DOWNLOAD_SIX,
        },
        submodules=(
            submodule("third_party/nccl/nccl", f"v2.21.5-1-2-g{COMMIT}", "https://github.com/NVIDIA/nccl"),
            submodule(
                "third_party/protobuf",
                f"v3.7.0-rc.2-1279-g{COMMIT}",
                "https://github.com/protocolbuffers/protobuf.git",
            ),
            submodule("third_party/sleef", f"3.6-18-g{COMMIT}", "https://github.com/shibatch/sleef"),
            submodule("third_party/NNPACK", "", "https://github.com/Maratyszcza/NNPACK.git", tags=0),
        ),
    )


def repodata(versions: dict[str, str], *, later: dict[str, str] | None = None) -> bytes:
    """A channel's index; ``later`` came a day after."""
    lines = {
        f"{name}-{version}-h0_0.conda": {"name": name, "version": version, "timestamp": when * 1000}
        for found, when in ((versions, DAY - 3600), (later or {}, DAY + 86_400 + 3600))
        for name, version in found.items()
    }
    return json.dumps({"info": {"subdir": "linux-64"}, "packages": {}, "packages.conda": lines}).encode()
