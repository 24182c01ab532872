"""Our rules of the setup.py era against PyTorch's own code, on hundreds of environments."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.buildsystem.era import TELLING_FILES, Era, detect_era
from axletree.buildsystem.pytorch.forwarding import forward
from axletree.core.errors import StageError
from axletree.execute.kept import check_variables
from support.inputs import debian_source

if TYPE_CHECKING:
    from pathlib import Path

ASK = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
for environ in json.load(sys.stdin):
    for name in [name for name in sys.modules if name.partition(".")[0] == "tools"]:
        del sys.modules[name]
    os.environ.clear()
    os.environ.update(environ, PATH=sys.argv[3])
    from tools.setup_helpers import cmake
    from tools.setup_helpers.cmake import CMake
    CMake._get_cmake_command = staticmethod(lambda: "cmake")
    CMake.run = lambda self, args, env: print("-D", json.dumps(args))
    CMake(sys.argv[2]).generate("2.6.0", None, True, True, dict(os.environ), False)
"""
ADDED = {"BUILD_PYTHON", "BUILD_TEST", "CMAKE_INSTALL_PREFIX", "Python_EXECUTABLE", "TORCH_BUILD_VERSION", "USE_NUMPY"}
WORDS = """
BLAS WITH_BLAS UBSAN_FLAGS CUDA_HOST_COMPILER CUDA_NVCC_EXECUTABLE CUDA_SEPARABLE_COMPILATION CUDNN_LIBRARY
CUDNN_INCLUDE_DIR CUDNN_ROOT CUDNN_LIB_DIR INSTALL_TEST JAVA_HOME INTEL_MKL_DIR INTEL_OMP_DIR MKL_THREADING
MKLDNN_CPU_RUNTIME MSVC_Z7_OVERRIDE CAFFE2_USE_MSVC_STATIC_RUNTIME Numa_INCLUDE_DIR Numa_LIBRARIES ONNX_ML
ONNX_NAMESPACE ATEN_THREADING WERROR OPENSSL_ROOT_DIR STATIC_DISPATCH_BACKEND SELECTED_OP_LIST TORCH_CUDA_ARCH_LIST
TORCH_XPU_ARCH_LIST TRACING_BASED PYTHON_LIB_REL_PATH EXPERIMENTAL_SINGLE_THREAD_POOL _GLIBCXX_USE_CXX11_ABI
USE_CUDA_STATIC_LINK CUDAHOSTCXX CUDACXX CMAKE_CUDA_HOST_COMPILER CMAKE_CUDA_COMPILER CMAKE_PREFIX_PATH CMAKE_BUILD_TYPE
DEBUG REL_WITH_DEB_INFO USE_CUDA USE_NINJA BUILD_BINARY CMAKE_CXX_FLAGS C_EXITCODE C_EXITCODE__TRYRUN_OUTPUT MAX_JOBS
CMAKE_ONLY CMAKE_FRESH CFLAGS CXXFLAGS CC MAGMA_HOME PYTORCH_ROCM_ARCH DEBUG_CUDA HOME USER FLASH_ATTENTION_MAX_JOBS
BUILD_ USE_ xUSE_CUDA EXITCODE SOVERSION CUDA_HOME NCCL_ROOT ACL_ROOT_DIR VERBOSE
"""
NAMES = sorted(set(re.findall(r"\S+", WORDS)))
VALUES = ("1", "0", "ON", "off", "", "/a/b", "/a:/b", "8.0;9.0+PTX", "x=y", "yes")
ALIASES = {"CUDACXX", "CUDAHOSTCXX", "CUDA_HOST_COMPILER", "CMAKE_CUDA_COMPILER", "CMAKE_CUDA_HOST_COMPILER"}


def environments(count: int) -> list[dict[str, str]]:
    """Environments of a few variables each; at most one of those whose order decides in upstream's loop."""
    chosen = random.Random(26)
    found = []
    for _ in range(count):
        names = [name for name in NAMES if name not in ALIASES]
        picked = chosen.sample(names, chosen.randint(0, 12)) + chosen.sample(sorted(ALIASES), chosen.randint(0, 1))
        chosen.shuffle(picked)
        found.append({name: chosen.choice(VALUES) for name in picked})
    return found


def test_what_pytorch_2_6_passes_to_cmake(tmp_path: Path) -> None:
    source = debian_source("pytorch", "trixie")
    asked = environments(200)
    command = [sys.executable, "-B", "-c", ASK, str(source), str(tmp_path / "build"), "/usr/bin:/bin"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line[3:]) for line in done.stdout.splitlines() if line.startswith("-D ")]
    purelib = subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for environ, words in zip(asked, answers, strict=True):
        printed = dict(word[2:].split("=", 1) for word in words if word.startswith("-D"))
        found = dict(forward(environ, "setup.py").options)
        searched = printed.pop("CMAKE_PREFIX_PATH").removeprefix(purelib).removeprefix(";")
        assert found.pop("CMAKE_PREFIX_PATH", "") == searched
        kept = {name: value for name, value in printed.items() if name not in ADDED and name != "CMAKE_GENERATOR"}
        assert {name: value for name, value in found.items() if name not in ADDED} == kept, environ


def test_a_stage_tells_what_has_no_effect_and_refuses_what_upstream_refuses() -> None:
    era = Era(driver="setup.py", evidence=(), pytorch=True, rules="setup.py", libtorch_wheel=True, libtorchless=True)
    newer = msgspec.structs.replace(era, driver="scikit-build-core", rules="scikit-build-core")
    said: list[str] = []
    check_variables({"USE_NINJA": "0", "USE_CUDA": "0"}, newer, "scikit-build-core", say=said.append)
    assert said == ["USE_NINJA has no effect when scikit-build-core builds PyTorch: set CMAKE_GENERATOR instead"]
    wrong = {"BUILD_LIBTORCH_WHL": "ON", "CMAKE_INSTALL_PREFIX": "/x"}
    with pytest.raises(StageError) as caught:
        check_variables(wrong, era, "setup.py", say=said.append)
    assert [problem.key for problem in caught.value.problems] == list(wrong)
    check_variables(wrong, msgspec.structs.replace(era, pytorch=False, rules=None), "setup.py", say=said.append)
    check_variables(wrong, era, "cmake", say=said.append)
    old = msgspec.structs.replace(era, libtorchless=False, libtorch_wheel=False)
    with pytest.raises(StageError, match="BUILD_PYTHON_ONLY: this version of PyTorch does not recognize the variable"):
        check_variables({"BUILD_PYTHON_ONLY": "1"}, old, "setup.py", say=said.append)
    check_variables({"BUILD_PYTHON_ONLY": "0"}, old, "setup.py", say=said.append)
    assert len(said) == 1


def test_the_real_tree() -> None:
    source = debian_source("pytorch", "trixie")
    texts = {name: (source / name).read_text() for name in TELLING_FILES if (source / name).exists()}
    era = detect_era(texts)
    assert (era.driver, era.pytorch, era.libtorch_wheel, era.libtorchless) == ("setup.py", True, True, True)
