"""Which build a conda client takes: a recipe's packages, published by us, solved by py-rattler for several machines."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from axletree.app.publish import publish
from axletree.core.errors import PublishError, StageError
from axletree.core.records import StageRecord
from axletree.host.conda_install import solve_and_install
from axletree.plan.actions.pack_conda import CondaParameters
from axletree.store.store import Store
from support.conda import index, put_python
from support.requests import run_action
from support.store import write_files
from support.targets import plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.plan.graph import Plan, PlannedStage

RECIPE = """\
name = "pytorch"
version = "2.6.0"
license = "BSD-3-Clause"
[source]
path = "src"
[axes]
python = ["3.11"]
gpu = ["cpu", "cu126", "cu130"]
blas = ["mkl", "generic"]
[environments.bind]
[stages.libtorch]
action = "run"
axes = ["gpu", "blas"]
commands = ["make"]
[stages.bind]
action = "run"
axes = ["python", "gpu", "blas"]
environment = "bind"
inputs = ["libtorch"]
commands = ["make"]

[packages.libtorch]
from = "libtorch"
formats = ["conda"]
[packages.libtorch.conda]
build = "{gpu}_{blas}_{hash}_{number}"
build-number = 2
run-exports = { weak = ["libtorch {pin}"] }

[packages.torch]
from = "bind"
formats = ["conda"]
requires = ["libtorch=={version}"]
[packages.torch.conda]
build = "{gpu}_{blas}_py{python.nodot}_{hash}_{number}"
build-number = 2

[packages.pytorch-gpu]
formats = ["conda"]
when = { gpu = ["cu126", "cu130"] }
[packages.pytorch-gpu.conda]
depends = ["pytorch =={version} cu*"]
constrains = ["pytorch-cpu <0.0a0"]

[packages.pytorch-cpu]
formats = ["conda"]
when = { gpu = "cpu" }
[packages.pytorch-cpu.conda]
depends = ["pytorch =={version} cpu*"]
constrains = ["pytorch-gpu <0.0a0"]
track-features = ["pytorch-cpu"]
"""
LADDER = {("cpu", "mkl"): 102, ("cu126", "generic"): 202, ("cu126", "mkl"): 302, ("cu130", "generic"): 212,
          ("cu130", "mkl"): 312}  # fmt: skip
DRIVER = {"cu126": "12.6", "cu130": "13.0"}


def recipe() -> str:
    """The recipe with a build number for each combination, and what CUDA builds need of the driver."""
    text = RECIPE
    for (gpu, blas), number in LADDER.items():
        depends = f', depends = ["__cuda >={DRIVER[gpu]}"]' if gpu in DRIVER else ""
        for package in ("libtorch", "torch"):
            text += (
                f'[[override]]\npackage = "{package}"\nwhen = {{ gpu = "{gpu}", blas = "{blas}" }}\n'
                f"conda = {{ build-number = {number}{depends} }}\n"
            )
    return text


class Made:
    """The channel, and the stages that made it."""

    def __init__(self, root: Path) -> None:
        self.out = root / "out"
        self.store = Store.open(root / "store")
        self.plan: Plan = plan_of(recipe(), conda_names={"torch": "pytorch"}, platform="linux-x86_64")
        self.records: list[StageRecord] = []
        self._root = root
        done: dict[str, StageRecord] = {}
        for stage in self.plan.stages.values():
            if stage.action == "pack-conda":
                done[stage.id] = self.run(stage, {"tree": self.tree(stage)} if stage.needs else {})
            elif stage.action == "channel":
                inputs = {name: done[needed].tree for name, needed in stage.needs.items() if name.startswith("conda:")}
                self.records.append(self.run(stage, inputs))

    def tree(self, stage: PlannedStage) -> Any:
        folder = self._root / "tree"
        shutil.rmtree(folder, ignore_errors=True)
        assert isinstance(stage.step.parameters, CondaParameters)
        (name, *_) = stage.step.parameters.part.siblings
        path = "lib/libtorch.so" if name == "libtorch" else "torch/__init__.py"
        return self.store.ingest(write_files(folder, {path: f"{stage.step.axes}".encode()}))

    def run(self, stage: PlannedStage, inputs: dict[str, Any]) -> StageRecord:
        parameters = stage.step.parameters
        if isinstance(parameters, CondaParameters):
            parameters = msgspec.structs.replace(parameters, python=None)  # nothing to compile
        axes = stage.step.axes
        made = run_action(self.store, stage.action, parameters, inputs, stage=stage.id, axes=axes, epoch=0)
        assert isinstance(made, StageRecord), made.message
        return made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("ladder")
    made = Made(root)
    publish(made.out, made.records, made.store)
    (root / "python").mkdir()
    put_python(root / "python")
    index(root / "python")
    return made


def chosen(made: Made, *specs: str, cuda: str | None = None) -> dict[str, str]:
    """What a client takes on a machine whose driver is for a CUDA release: name -> build string without hash."""
    solved = solve_and_install(
        None,
        specs,
        channels=[made.out / "conda", made.out.parent / "python"],
        subdir="linux-64",
        cache=made.out.parent / "cache",
        virtual={"__cuda": cuda} if cuda else {},
        environ={"PATH": "/usr/bin:/bin", "HOME": str(made.out.parent)},
    )
    return {one.name: "_".join(one.build.split("_")[:2]) for one in solved if "torch" in one.name}


@pytest.mark.parametrize(
    ("cuda", "build"),
    [(None, "cpu_mkl"), ("11.8", "cpu_mkl"), ("12.6", "cu126_mkl"), ("12.9", "cu126_mkl"), ("13.1", "cu130_mkl")],
)
def test_a_client_takes_the_best_that_the_machine_can_run(made: Made, cuda: str | None, build: str) -> None:
    assert chosen(made, "pytorch", cuda=cuda) == {"pytorch": build, "libtorch": build}
    assert chosen(made, "libtorch", cuda=cuda) == {"libtorch": build}
    assert chosen(made, "pytorch", "libtorch", cuda=cuda) == {"pytorch": build, "libtorch": build}


def test_whoever_asks_for_one_gets_it(made: Made) -> None:
    assert chosen(made, "pytorch-cpu", cuda="13.1")["libtorch"] == "cpu_mkl"
    assert chosen(made, "pytorch-gpu", cuda="13.1")["libtorch"] == "cu130_mkl"
    assert chosen(made, "pytorch * *generic*")["libtorch"] == "cpu_generic"
    assert chosen(made, "pytorch", "libtorch * cu126_generic*", cuda="13.1")["pytorch"] == "cu126_generic"


@pytest.mark.parametrize(
    ("specs", "cuda"),
    [(("pytorch-gpu",), None), (("pytorch-gpu", "pytorch-cpu"), "13.1"), (("pytorch * cu*", "pytorch-cpu"), "13.1"),
     (("pytorch * cu130*", "libtorch * cu126*"), "13.1"), (("pytorch", "libtorch * cpu_mkl*", "pytorch-gpu"), "13.1")],
)  # fmt: skip
def test_builds_never_mix(made: Made, specs: tuple[str, ...], cuda: str | None) -> None:
    with pytest.raises(StageError, match="Cannot solve"):
        chosen(made, *specs, cuda=cuda)


def said(record: dict[str, Any]) -> dict[str, Any]:
    """A line without what is empty, its exact versions written in one way."""
    given = {key: value for key, value in record.items() if value not in ([], "", None)}
    exact = {key: [spec.replace(" ==", " ") for spec in given.get(key, ())] for key in ("depends", "constrains")}
    return given | exact


def test_the_index_is_the_one_that_rattler_makes(made: Made, tmp_path: Path) -> None:
    copy = tmp_path / "conda"
    shutil.copytree(made.out / "conda", copy, ignore=shutil.ignore_patterns("repodata*"))
    index(copy)
    for subdir in ("linux-64", "noarch"):
        ours, theirs = (json.loads((folder / subdir / "repodata.json").read_text()) for folder in
                        (made.out / "conda", copy))  # fmt: skip
        assert len(ours["packages.conda"]) == {"linux-64": 6, "noarch": 8}[subdir]
        for name, record in theirs["packages.conda"].items():
            record.pop("indexed_timestamp", None)
            assert said(ours["packages.conda"][name]) == said(record)
        assert ours["packages.conda"].keys() == theirs["packages.conda"].keys()


def test_publishing_again_changes_nothing_and_another_build_of_the_same_name_is_refused(
    made: Made, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first, *others = made.records
    publish(out, [first], made.store)
    few = json.loads((out / "conda" / "linux-64" / "repodata.json").read_text())["packages.conda"]
    stale = out / "conda" / "linux-64" / "current_repodata.json"
    stale.write_text("{}")
    files = publish(out, others, made.store)
    assert all(file.fresh for file in files if "cpu_mkl" not in file.path and "pytorch-cpu" not in file.path)
    assert not stale.exists()
    many = json.loads((out / "conda" / "linux-64" / "repodata.json").read_text())["packages.conda"]
    assert few.items() <= many.items()
    assert {path.name for path in (out / "conda" / "linux-64").glob("*.conda")} == set(many)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.json*")}
    assert not any(file.fresh for file in publish(out, made.records, made.store))
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*.json*")}
    package = next((out / "conda" / "noarch").glob("libtorch-*.conda"))
    for page in out.rglob("repodata.json*"):
        page.unlink()
    package.write_bytes(b"something else")
    with pytest.raises(PublishError, match="the package is already in the channel with different content"):
        publish(out, made.records, made.store)
    assert not list(out.rglob("repodata.json"))
    assert package.read_bytes() == b"something else"
