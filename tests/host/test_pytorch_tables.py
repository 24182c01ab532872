"""PyTorch's recipe and its tables of CUDA releases, compared with what official wheels hold and say of themselves."""

from __future__ import annotations

import ast
import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from support.inputs import wheel

TABLE = Path(__file__).parents[2] / "recipes" / "pytorch" / "cuda.toml"
Member = dict[str, str]


@pytest.fixture(scope="module")
def members() -> Member:
    """Texts of the wheel of PyTorch 2.14.1, which was built for CUDA 13.0."""
    names = ("torch/cuda/__init__.py", "torch/utils/cpp_extension.py", "torch-2.14.1.dist-info/METADATA")
    with zipfile.ZipFile(wheel("torch==2.14.1")) as archive:
        return {name: archive.read(name).decode() for name in names}


@pytest.fixture(scope="module")
def gpus() -> dict[str, dict[str, str]]:
    """GPU -> the properties that stand under its own name."""
    table: dict[str, dict[str, str]] = tomllib.loads(TABLE.read_text("utf-8"))["properties"]["gpu"]
    return {texts["cuda"]: texts for texts in table.values() if "cuda" in texts}


def constant(source: str, name: str) -> Any:
    """The value of a literal that a module assigns to a name."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            assert node.value is not None
            return node.value
    raise AssertionError(f"no {name}")


def test_arch_lists(members: Member, gpus: dict[str, dict[str, str]]) -> None:
    told = ast.literal_eval(constant(members["torch/cuda/__init__.py"], "PYTORCH_RELEASES_CODE_CC"))
    compared = [release for release in told if release in gpus]
    assert {"12.6", "13.0", "13.2"} <= set(compared)
    for release in compared:
        for name, machine in (("arch-list", "x86_64"), ("arch-list-aarch64", "aarch64")):
            codes = {int(re.sub(r"\.|\+PTX", "", each)) for each in gpus[release][name].split(";")}
            assert codes == told[release][machine], (release, machine)


def test_compilers(members: Member, gpus: dict[str, dict[str, str]]) -> None:
    source = members["torch/utils/cpp_extension.py"]
    for compiler, name in (("gcc", "CUDA_GCC_VERSIONS"), ("clang", "CUDA_CLANG_VERSIONS")):
        bounds = {
            ast.literal_eval(key): ast.unparse(value)
            for key, value in zip(constant(source, name).keys, constant(source, name).values, strict=True)
        }
        compared = [release for release in gpus if release in bounds]
        assert len(compared) >= 4
        for release in compared:
            below = gpus[release][f"{compiler}-below"].replace(".", ", ")
            assert bounds[release].endswith(f"({below}))"), (compiler, release)
        assert not [release for release in gpus if release not in bounds and f"{compiler}-below" in gpus[release]]


def test_requirements(members: Member, gpus: dict[str, dict[str, str]]) -> None:
    lines = re.findall(r"^Requires-Dist: (.*)$", members["torch-2.14.1.dist-info/METADATA"], re.MULTILINE)
    pins = {each.name: str(each.specifier) for each in map(Requirement, lines)}
    assert pins["cuda-toolkit"] == f"=={gpus['13.0']['cuda-toolkit']}"
    assert pins["nvidia-nvshmem-cu13"] == f"=={gpus['13.0']['nvshmem']}"
    comments = TABLE.read_text("utf-8")
    for name in ("cudnn", "nccl", "cusparselt"):
        assert f"{pins[f'nvidia-{name}-cu13'].removeprefix('==')} in [2.14.1]" in comments, (
            "what is other there is said"
        )


@pytest.mark.parametrize("requirement", ["torch==2.13.0+cpu", "torch==2.14.1"])
def test_texts_that_the_relocations_replace_are_there(requirement: str) -> None:
    stages = tomllib.loads((TABLE.parent.with_suffix(".toml")).read_text("utf-8"))["stages"]
    edits = [edit for stage in ("torch-tree", "torch-prefix") for edit in stages[stage]["relocate"]["edits"]]
    assert len(edits) == 7
    with zipfile.ZipFile(wheel(requirement)) as archive:
        for edit in edits:
            assert archive.read(edit["file"]).decode().count(edit["find"]) == 1, edit["file"]
