"""The relocations of PyTorch's recipe, on upstream's own wheel: a torch in two parts that trains and is linked to.

Its files are what the stages libtorch and bind of that release leave, built by its makers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w

from axletree.host.conda import read_conda
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.beside import foreign_paths
from axletree.package.conda.neighbours import CONDA_NEIGHBOURS
from axletree.store.layout import STORE_VARIABLE
from support.envelopes import events_of
from support.inputs import wheel

RECIPES = Path(__file__).parents[2] / "recipes"
RUN = [
    *("filelock", "fsspec", "jinja2", "networkx", "numpy"),
    *("setuptools <82", "sympy >=1.13.3", "typing_extensions >=4.10.0"),
]
"""What the conda package requires, of what the test's environment has."""
STAGES = ("libtorch-tree", "torch-tree", "libtorch-prefix", "torch-prefix")
UNZIP = "python3 -m zipfile -e {wheel} $AXLETREE_OUT"
TESTS = "rm -rf lib*_test.so libaoti_custom_ops.so libbackend_with_compiler.so"
"""Libraries of upstream's own tests, which no build of the recipe has; the OpenMP runtime is taken in by the recipe."""
PARTS = {
    "libtorch": [
        "rm -rf *.dist-info torchgen functorch",
        "find torch -mindepth 1 -maxdepth 1 ! -name lib ! -name include ! -name share -exec rm -rf {{}} +",
        "cd torch/lib",
        f"{TESTS} libgomp* libtorch_python.so libshm.so",
    ],
    "bind": [
        "chmod +x torch/bin/torch_shm_manager",
        "find torch/bin -type f ! -name torch_shm_manager -delete",
        "cd torch/lib",
        f"{TESTS} libgomp* ../test",
    ],
}

PLACES = """\
import os, subprocess, sysconfig, torch
from torch.utils import cpp_extension

folders = cpp_extension.include_paths()
for header in ("torch/extension.h", "pybind11/pybind11.h", "ATen/ATen.h"):
    assert os.path.isfile(os.path.join(folders[0], header)), header
(libraries,) = cpp_extension.library_paths()
assert {"libtorch_cpu.so", "libc10.so", "libtorch_python.so"} <= set(os.listdir(libraries)), libraries
assert os.path.samefile(torch.utils.cmake_prefix_path, os.path.join(os.environ["CONDA_PREFIX"], "share", "cmake"))
assert os.access(os.path.join(os.path.dirname(torch.__file__), "bin", "torch_shm_manager"), os.X_OK)
includes = [f"-I{folder}" for folder in (*folders, sysconfig.get_path("include"))]
command = ["c++", "-std=c++20", "-fsyntax-only", "-include", "torch/extension.h", "-x", "c++", "-", *includes]
subprocess.run(command, input=b"", check=True)
"""
"""What users of extensions find where, in an environment."""
_WHERE = "python -c 'import os, torch; print(os.path.dirname(torch.__file__))'"
FROM_SITE_PACKAGES = [
    f"cmake -S . -B other -DTorch_DIR=$({_WHERE})/share/cmake/Torch",
    "cmake --build other && other/consumer",
]
VENDORED = {"pybind11", "libprotobuf", "fmt", "onednn", "sleef", "cpuinfo", "pthreadpool"}

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]


def _recipe(file: Path) -> dict[str, Any]:
    """PyTorch's recipe, its compiled trees taken out of a wheel; tested as it tests them."""
    real = tomllib.loads((RECIPES / "pytorch.toml").read_text("utf-8"))
    stages: dict[str, Any] = {
        name: {
            "action": "run",
            "axes": ["gpu", "blas", *(["python"] if name == "bind" else [])],
            "source": False,
            "tools": ["python3"],
            "commands": [UNZIP.format(wheel=file), "cd $AXLETREE_OUT", *part],
        }
        for name, part in PARTS.items()
    }
    stages |= {name: real["stages"][name] for name in STAGES}
    return {
        "name": "pytorch",
        "version": "2.13.0",
        "source": {"path": "src"},
        "axes": {"python": ["3.11"], "gpu": ["cpu"], "blas": ["mkl"]},
        "environments": {"test": {"axes": ["python"], "requires": real["environments"]["test"]["requires"]}},
        "stages": stages,
        "packages": {
            "libtorch": {"from": "libtorch-tree", "local": "{gpu}", "requires-python": ">=3.10"},
            "torch": {name: value for name, value in real["packages"]["torch"].items() if name != "index"},
            "libtorch-conda": {
                "from": "libtorch-prefix",
                "formats": ["conda"],
                "exclude": real["packages"]["libtorch-conda"]["exclude"],
                "conda": {"name": "libtorch", "layout": "prefix", "activate": {"CF_TORCH_CUDA_ARCH_LIST": "9.0"}},
            },
            "pytorch": {
                "from": "torch-prefix",
                "formats": ["conda"],
                "exclude": real["packages"]["pytorch"]["exclude"],
                "requires": ["libtorch-conda=={version}"],
                "conda": {"layout": "prefix", "depends": RUN},
            },
        },
        "tests": {
            "import": {**real["tests"]["import"], "packages": ["libtorch", "torch"]},
            "conda": {
                **real["tests"]["conda"],
                "packages": ["libtorch-conda", "pytorch"],
                "files": [*real["tests"]["conda"]["files"], "places.py"],
                "commands": [*real["tests"]["conda"]["commands"], "python places.py", *FROM_SITE_PACKAGES],
            },
        },
    }


def test_both_layouts_of_a_real_release(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "README").write_text("nothing is compiled\n")
    shutil.copytree(RECIPES / "pytorch-debian", tmp_path / "pytorch-debian")
    (tmp_path / "places.py").write_text(PLACES)
    (tmp_path / "split.toml").write_text(tomli_w.dumps(_recipe(wheel("torch==2.13.0+cpu"))))
    environ = {**os.environ, STORE_VARIABLE: str(tmp_path / "store")}

    def axletree(*words: str | Path) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "axletree", *map(str, words)]
        return subprocess.run(argv, capture_output=True, text=True, env=environ, check=False)

    assert axletree("lock", tmp_path / "split.toml").returncode == 0
    done = axletree("build", tmp_path / "split.toml", "--out", tmp_path / "out", "--json")
    events = events_of(done.stdout)
    failed = [event for event in events if event["event"] == "stage-finished" and event["status"] != "done"]
    assert (done.returncode, failed) == (0, []), done.stderr[-4000:]
    names = {path.name.partition("-")[0] for path in (tmp_path / "out").rglob("*.whl")}
    assert names == {"libtorch", "torch"}
    (package,) = (tmp_path / "out").rglob("libtorch-*.conda")
    facts = read_conda(package)
    known = read_shipped(CONDA_NEIGHBOURS)
    assert foreign_paths(facts, known) == ()
    moved = (
        msgspec.structs.replace(member, path=member.path.replace("include/libtorch/", "include/"))
        for member in facts.members
    )
    planted = foreign_paths(msgspec.structs.replace(facts, members=tuple(moved)), known)
    assert {each.neighbour.package for each in planted} >= VENDORED, "what it would be without its own folder"
    assert facts.index is not None
    wanted = {spec.partition(" ")[0] for spec in facts.index.depends}
    assert {"libstdcxx", "libgcc", "_openmp_mutex"} <= wanted
