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

import pytest
import tomli_w

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
                "conda": {"name": "libtorch", "layout": "prefix"},
            },
            "pytorch": {
                "from": "torch-prefix",
                "formats": ["conda"],
                "requires": ["libtorch-conda=={version}"],
                "conda": {"layout": "prefix", "depends": RUN},
            },
        },
        "tests": {
            "import": {**real["tests"]["import"], "packages": ["libtorch", "torch"]},
            "conda": {**real["tests"]["conda"], "packages": ["libtorch-conda", "pytorch"]},
        },
    }


def test_both_layouts_of_a_real_release(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "README").write_text("nothing is compiled\n")
    shutil.copytree(RECIPES / "pytorch-debian", tmp_path / "pytorch-debian")
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
