"""MAGMA's conda package and the linear algebra of PyTorch: packed as their recipes say, solved by py-rattler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from rattler.exceptions import SolverError

from axletree.core.records import StageRecord
from axletree.plan.actions.pack_conda import CondaParameters, PackedConda
from axletree.plan.graph import build_plan
from axletree.recipe.axes import expand, variant_id
from axletree.recipe.parse import parse_recipe
from axletree.recipe.properties import DataFile
from axletree.recipe.target import resolve
from axletree.store.store import Store
from support.conda import demo, put, solve
from support.requests import run_action
from support.store import write_files
from support.targets import ids, inputs_of, parameters_of

if TYPE_CHECKING:
    from axletree.plan.graph import Plan

FOLDER = Path(__file__).parents[2] / "recipes"
DATA = tuple(f"pytorch/{path.name}" for path in sorted((FOLDER / "pytorch").glob("*.toml")))
PARTS = {
    "12.6": {"cuda-cudart": "12.6.77", "libcublas": "12.6.4.1", "libcusolver": "11.7.1.2", "libcusparse": "12.5.4.2"},
    "13.0": {"cuda-cudart": "13.0.96", "libcublas": "13.1.0.3", "libcusolver": "12.0.4.66", "libcusparse": "12.6.3.3"},
}
"""CUDA -> the packages of its parts, as conda-forge numbers them."""


def plan_of(name: str, *variants: str) -> Plan:
    files = [DataFile(name=each, filename=each, text=(FOLDER / each).read_text("utf-8")) for each in DATA]
    if name == "magma":
        files = [each for each in files if each.name == "pytorch/cuda.toml"]
    recipe = parse_recipe((FOLDER / f"{name}.toml").read_text("utf-8"), filename=f"{name}.toml", data=files)
    targets = [resolve(recipe, each) for each in expand(recipe) if each.id in variants]
    assert len(targets) == len(variants)
    inputs = inputs_of(targets, platform="linux-x86_64")
    return build_plan(targets, inputs, label=lambda values: variant_id(values, recipe.axes))


class Packed:
    """Packs into a channel, from trees that have no code."""

    def __init__(self, root: Path) -> None:
        self.channel = root / "channel"
        self.store = Store.open(root / "store")
        for cuda, parts in PARTS.items():
            (self.channel / "noarch").mkdir(parents=True, exist_ok=True)
            put(self.channel, demo(name="cuda-version", version=cuda, build="0", subdir="noarch", noarch="generic"), [])
            major = int(cuda.partition(".")[0])
            bound = f"cuda-version >={cuda},<{major + 1}.0a0"
            for name, version in parts.items():
                put(self.channel, demo(name=name, version=version, depends=(bound,)), [])
        put(self.channel, demo(name="libopenblas", version="0.3.30"), [])

    def pack(self, plan: Plan, package: str) -> dict[str, PackedConda]:
        """Build string -> what was packed, of all variants of a package."""
        packed = {}
        for stage in ids(plan, f"pack-conda:{package}["):
            parameters = msgspec.structs.replace(parameters_of(plan, stage, CondaParameters), python=None)
            axes = plan.stages[stage].step.axes  # type: ignore[index]
            path = "lib/libmagma.so" if package == "magma" else "lib/libtorch_cuda_linalg.so"
            folder = write_files(self.store.root / "in", {path: f"{axes}".encode()})
            tree = self.store.ingest(folder, adopt=True)
            done = run_action(self.store, "pack-conda", parameters, {"tree": tree}, stage=stage, axes=axes, epoch=0)
            assert isinstance(done, StageRecord), done.message
            self.store.materialise(done.tree, self.store.root / "out" / stage)
            (made,) = (self.store.root / "out" / stage).rglob("*.conda")
            (self.channel / made.parent.name).mkdir(parents=True, exist_ok=True)
            (self.channel / made.parent.name / made.name).write_bytes(made.read_bytes())
            packed[parameters.conda.build] = msgspec.convert(done.facts, PackedConda)
        return packed


def chosen(channel: Path, *specs: str, driver: str = "13.0") -> dict[str, str]:
    """Name -> build string, or version of CUDA."""
    found = solve(channel, *specs, virtual={"__cuda": driver})
    return {each.name.normalized: str(each.version if each.name.normalized == "cuda-version" else each.build)
            for each in found}  # fmt: skip


def test_magma_of_another_cuda_is_refused(tmp_path: Path) -> None:
    packed = Packed(tmp_path)
    both = packed.pack(plan_of("magma", "cu126-OpenBLAS", "cu130-OpenBLAS"), "magma")
    parts = {"cuda-cudart", "libcublas", "libcusparse", "libopenblas"}
    assert set(both["cuda126_2"].depends) == {"cuda-version >=12.6,<13", *parts}
    assert "cuda-version >=13.0,<14" in both["cuda130_2"].depends
    magma = plan_of("pytorch", "py312-cu126-mkl-magma", "py312-cu130-mkl-magma", "py312-cu130-mkl-nomagma")
    linalg = packed.pack(magma, "libtorch-cuda-linalg-conda")
    assert len(linalg) == 3
    for cuda in ("126", "130"):
        found = chosen(packed.channel, f"libtorch-cuda-linalg * cuda{cuda}_magma_*")
        assert found["magma"] == f"cuda{cuda}_2"
        assert found["cuda-version"] == f"{cuda[:2]}.{cuda[2]}"
        other = "130" if cuda == "126" else "126"
        with pytest.raises(SolverError, match="magma"):
            chosen(packed.channel, f"libtorch-cuda-linalg * cuda{cuda}_magma_*", f"magma * cuda{other}_*")
    with pytest.raises(SolverError, match="cuda-version"):
        chosen(packed.channel, "magma * cuda126_*", "cuda-version 13.0.*")
    assert "magma" not in chosen(packed.channel, "libtorch-cuda-linalg * cuda130_nomagma_*")


def test_without_a_magma_of_its_cuda_there_is_no_solution(tmp_path: Path) -> None:
    """One for CUDA 13 was planted, as any `magma` once would have done."""
    packed = Packed(tmp_path)
    packed.pack(plan_of("magma", "cu130-OpenBLAS"), "magma")
    packed.pack(plan_of("pytorch", "py312-cu126-mkl-magma"), "libtorch-cuda-linalg-conda")
    with pytest.raises(SolverError, match="magma"):
        chosen(packed.channel, "libtorch-cuda-linalg")


def test_what_is_built_against_magma_requires_it_for_the_same_cuda() -> None:
    plan = plan_of("magma", "cu126-OpenBLAS", "cu128-OpenBLAS", "cu129-OpenBLAS", "cu130-OpenBLAS")
    exported = {}
    for stage in ids(plan, "pack-conda:magma["):
        conda = parameters_of(plan, stage, CondaParameters).conda
        (exported[conda.build],) = conda.weak
        assert conda.strong == ()
    assert exported == {
        f"cuda{cuda}_2": f"magma >=2.10.0,<2.11.0a0 cuda{cuda}_*" for cuda in ("126", "128", "129", "130")
    }
    torch = plan_of("pytorch", *(f"py312-{gpu}-mkl-magma" for gpu in ("cu126", "cu128", "cu130")))
    for stage in ids(torch, "pack-conda:libtorch-cuda-linalg-conda["):
        conda = parameters_of(torch, stage, CondaParameters).conda
        assert exported[f"{conda.build.partition('_')[0]}_2"] in conda.depends
