"""hipify: HIP code made by the source's own script, in a copy, for stages that take it as their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.core.records import StageRecord
from axletree.plan.actions.hipify import HipifyFacts
from axletree.plan.actions.spec import facts_of
from support.faulty import PYTHON, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = f"""\
name = "small"
version = "1.0"

[source]
path = "src"

[axes]
python = ["{PYTHON}"]
gpu = ["cpu", "rocm6.3", "rocm7.1"]

[environments.plain]

[stages.hipify]
action = "hipify"
axes = ["python"]
environment = "plain"

[stages.lib]
action = "run"
axes = ["python", "gpu"]
source-from = "hipify"
commands = ["cat aten/hip/Kernel.hip third_party/CMakeLists.txt > $AXLETREE_OUT/lib.txt"]

[packages.small]
from = "lib"
local = "{{gpu}}"
requires-python = ">=3.9"
"""
SCRIPT = """\
import os, pathlib
# As upstream's: the project by its own place, third parties' files by the folder that it is started in.
project = pathlib.Path(__file__).resolve().parents[2]
for path in sorted(project.glob("aten/cuda/*.cu")):
    made = project / "aten" / "hip" / (path.stem + ".hip")
    made.parent.mkdir(exist_ok=True)
    made.write_text(path.read_text().replace("cuda", "hip"))
    print(f"{path} -> {made} ok")
edited = pathlib.Path("third_party/CMakeLists.txt")
edited.write_text(edited.read_text().replace("HIP_PLATFORM_HCC", "HIP_PLATFORM_AMD"))
if os.path.exists(os.environ.get("HIP_PATH", "/opt/rocm/hip")):
    (project / "aten" / "hip" / "launch.hip").touch()
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path / "project", RECIPE)
    for name, text in {
        "tools/amd_build/build_amd.py": SCRIPT,
        "aten/cuda/Kernel.cu": "cudaMalloc();\n",
        "third_party/CMakeLists.txt": "-DHIP_PLATFORM_HCC\n",
    }.items():
        path = project.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return project


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_hip_code_is_made_once_in_a_copy(project: Project) -> None:
    before = contents(project.source)
    ended = project.build("--json")
    assert ended.code == 0, ended.err
    said = [event["message"] for event in ended.events if event["event"] == "stage-progress"]
    assert "1 file created, 1 edited in place" in said
    hipified = [stage for stage in ended.statuses() if stage.startswith("hipify")]
    assert len(hipified) == 1
    record = msgspec.json.decode(project.records()[hipified[0]].read_bytes(), type=StageRecord)
    assert facts_of(record, HipifyFacts) == HipifyFacts(made=1, edited=("third_party/CMakeLists.txt",), removed=())
    assert contents(project.source) == before
    assert project.sound()
    assert len(project.wheels()) == 3


def test_what_is_installed_on_the_machine_changes_nothing(project: Project, tmp_path: Path) -> None:
    first = project.having(HIP_PATH=str(tmp_path)).build("--json")
    hipify = next(stage for stage in first.statuses() if stage.startswith("hipify"))
    project.edit(
        'axes = ["python"]\nenvironment', f'axes = ["python"]\nenv = {{ HIP_PATH = "{tmp_path}" }}\nenvironment'
    )
    second = project.build("--json")
    trees = [ended.finished(hipify)["tree"] for ended in (first, second)]
    assert trees[0] != trees[1]  # the recipe may say that there is one, and then it is in the key


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("aten/hip/Kernel.hip", "hipMalloc();\n", "tools/amd_build/build_amd.py created no files"),
        ("tools/amd_build/build_amd.py", "raise SystemExit(3)\n", "build_amd.py failed with exit code 3"),
        ("tools/amd_build/build_amd.py", None, "the source does not contain tools/amd_build/build_amd.py"),
    ],
)
def test_what_cannot_be_hipified_is_told(project: Project, file: str, text: str | None, message: str) -> None:
    path = project.source / file
    path.parent.mkdir(exist_ok=True)
    if text is None:
        path.unlink()
    else:
        path.write_text(text, encoding="utf-8")
    ended = project.build("-v", "*-cpu", "--json")
    assert ended.code == 1
    (failed,) = (event for event in ended.events if event.get("status") == "failed" and "stage" in event)
    assert message in failed["message"]
