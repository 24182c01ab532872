"""PyTorch's real source with CUDA: configured against a CUDA 12.4 toolkit, features checked, kernels of ATen compiled.

Nothing is linked and nothing runs: there is no GPU here. What is compiled is looked into with our own reader and with
NVIDIA's cuobjdump.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from axletree.store.layout import STORE_VARIABLE
from support.cuda_toolkit import make_cuda_toolkit
from support.envelopes import events_of
from support.inputs import debian_source

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "pytorch-debian.toml"
KERNELS = (
    "AbsKernel",
    "ActivationGeluKernel",
    "BinaryMulKernel",
    "CumsumKernel",
    "FillKernel",
    "IndexKernel",
    "Lerp",
    "LogAddExpKernel",
    "SoftMax",
    "UnarySignKernels",
)
ARCHITECTURES = {"sm_80", "sm_90"}
FOLDER = "caffe2/CMakeFiles/torch_cuda.dir/__/aten/src/ATen/native/cuda"
TARGETS = [*(f"{FOLDER}/{kernel}.cu.o" for kernel in KERNELS), "c10/all", "c10/install/local"]
"""Objects, and what is small and installs something: a stage must have a result."""
CHANGES = {
    'driver = "setup.py"\n': f'driver = "setup.py"\npass-env = ["CUDA_HOME"]\ntargets = {json.dumps(TARGETS)}\n',
    'tools = ["c++", "cc", "flatc", "protoc"]': 'tools = ["c++", "cc", "flatc", "protoc", "nvcc"]',
    'expect = { USE_CUDA = "OFF", ': 'expect = { USE_CUDA = "ON", USE_CUDNN = "ON", TORCH_CUDA_ARCH_LIST = "8.0;9.0", ',
    'USE_CUDA = "0"': 'USE_CUDA = "1"\nUSE_CUDNN = "1"\nUSE_NCCL = "0"\nUSE_MAGMA = "0"\nUSE_CUSPARSELT = "0"\n'
    'USE_CUFILE = "0"\nUSE_FLASH_ATTENTION = "0"\nUSE_MEM_EFF_ATTENTION = "0"\nTORCH_CUDA_ARCH_LIST = "8.0;9.0"',
}

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cuda_toolkit(tmp_path_factory.mktemp("cuda") / "cuda-12.4")


def build_kernels(folder: Path, toolkit: Path) -> subprocess.CompletedProcess[str]:
    shutil.copytree(RECIPE.with_suffix(""), folder / "pytorch-debian")
    shutil.copytree(RECIPE.with_suffix(""), folder / "kernels")
    (folder / "kernels.toml").write_text(_recipe())
    words = ["build", folder / "kernels.toml", "--source", debian_source("pytorch", "trixie"), "-v", "py311-*"]
    environ = {
        **os.environ,
        STORE_VARIABLE: str(folder / "store"),
        "CUDA_HOME": str(toolkit),
        "PATH": f"{toolkit / 'bin'}:{os.environ['PATH']}",
    }
    argv = [sys.executable, "-m", "axletree", *map(str, words), "--out", str(folder / "out"), "--json"]
    return subprocess.run(argv, capture_output=True, text=True, env=environ, check=False)


def test_kernels_of_aten_compile_for_two_architectures(tmp_path: Path, toolkit: Path) -> None:
    done = build_kernels(tmp_path, toolkit)
    stages = [event for event in events_of(done.stdout) if event["event"] == "stage-finished"]
    states = {event["stage"].partition("[")[0]: event["status"] for event in stages}
    assert states["libtorch"] == "done", done.stdout[-4000:] + done.stderr[-4000:]
    (build,) = (tmp_path / "store" / "workspaces").glob("*/source/build")
    objects = sorted(build.glob(f"{FOLDER}/*.cu.o"))
    assert [path.name.removesuffix(".cu.o") for path in objects] == sorted(KERNELS)
    for path in objects:
        listed = subprocess.run([toolkit / "bin/cuobjdump", "-lelf", path], capture_output=True, text=True, check=True)
        assert {line.split(".")[-2] for line in listed.stdout.splitlines()} == ARCHITECTURES, path.name


def test_a_toolkit_without_cudnn_is_refused_before_anything_compiles(tmp_path: Path, toolkit: Path) -> None:
    poorer = tmp_path / "cuda-12.4"
    shutil.copytree(toolkit, poorer, symlinks=True, ignore=shutil.ignore_patterns("libcudnn*", "cudnn*.h", "wheels"))
    done = build_kernels(tmp_path, poorer)
    assert done.returncode == 1
    assert "USE_CUDNN is" in done.stdout
    assert "CUDNN_ROOT" in done.stdout
    assert list((tmp_path / "store" / "workspaces").glob("*/source/build/**/*.cu.o")) == []


def _recipe() -> str:
    """The shipped recipe's first stage, with CUDA and with kernels instead of everything."""
    text = RECIPE.read_text().partition("# What is for one Python")[0]
    text = text.partition("[environments.bind]")[0] + "# What is for any" + text.partition("# What is for any")[2]
    for old, new in CHANGES.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text + '\n[packages.kernels]\nfrom = "libtorch"\nlocal = "{gpu}"\nrequires-python = ">=3.9"\n'
