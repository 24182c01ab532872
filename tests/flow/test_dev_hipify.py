"""hipify in an editable tree, by PyTorch's own code: said before anything is written, with the way back."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from support.envelopes import result_of
from support.inputs import official_cpu_wheel
from support.repositories import git
from support.tiny import need_pythons
from support.tug import make_tug

if TYPE_CHECKING:
    from pathlib import Path

    from support.tiny import Tiny

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]

STAGES = """\
[stages.hipify]
action = "hipify"
environment = "tools"
[stages.core]
action = "compile"
environment = "tools"
source-from = "hipify"
tools = ["c++", "cmake", "ninja"]
options = { BUILD_PYTHON = "OFF" }
"""
SCRIPT = """\
# As upstream's: hipify from the tree itself, without the rest of torch; files beside the CUDA files, and one edited.
import os, sys
here = os.path.dirname(os.path.realpath(__file__))
project = os.path.dirname(os.path.dirname(here))
sys.path.append(os.path.join(project, "torch", "utils"))
from hipify import hipify_python
hipify_python.hipify(
    project_directory=project, output_directory=project, includes=[os.path.join(project, "aten/*")],
    extensions=(".cu", ".cuh"), is_pytorch_extension=False, show_detailed=False,
)
with open("third_party.cmake", "r+") as file:
    text = file.read().replace("HIP_PLATFORM_HCC", "HIP_PLATFORM_AMD")
    file.seek(0)
    file.write(text)
"""
CUDA = "#include <cuda_runtime.h>\nvoid reserve(void** to) { cudaMalloc(to, 8); }\n"


def make(root: Path) -> Tiny:
    tug = make_tug(root, "cmake", STAGES, versions=need_pythons(1))
    with zipfile.ZipFile(official_cpu_wheel()) as wheel:
        for name in wheel.namelist():
            if name.startswith("torch/utils/hipify/"):
                wheel.extract(name, tug.source)
    texts = {"tools/amd_build/build_amd.py": SCRIPT, "aten/src/Reserve.cu": CUDA}
    for name, text in {**texts, "third_party.cmake": "# HIP_PLATFORM_HCC\n"}.items():
        (tug.source / name).parent.mkdir(parents=True, exist_ok=True)
        (tug.source / name).write_text(text)
    git(tug.source, "init", "-q")
    git(tug.source, "add", "-A")
    git(tug.source, "commit", "-q", "-m", "as upstream has it")
    return tug


def answer(tug: Tiny, *words: str) -> tuple[dict[str, Any], str]:
    done = tug.call(*words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = result_of(done.stdout)
    return found, done.stderr


def test_what_hipify_will_write_is_said_before_and_can_be_undone(tmp_path: Path) -> None:
    tug = make(tmp_path)
    done = tug.call("dev", str(tug.recipe), "-v", "*-nomagma")
    assert done.returncode == 0, done.stderr
    made = git(tug.source, "ls-files", "--others", "--exclude-standard").split()
    hip = [name for name in made if "Reserve" in name]
    assert len(hip) == 1, made
    assert "hipMalloc" in (tug.source / hip[0]).read_text()
    assert git(tug.source, "diff", "--name-only").split() == ["third_party.cmake"]
    said = done.stderr.splitlines()
    first = next(number for number, line in enumerate(said) if line.startswith("hipify will create 1 file and edit 1"))
    undo = f"axletree clean --hipify --yes {tug.source}"
    assert said[first + 1 : first + 4] == [f"  create {hip[0]}", "  edit third_party.cmake", f"undo it with: {undo}"]
    assert first < said.index("configuring")
    assert f"undo: {undo}" in done.stdout
    listed = (tug.source / ".axletree" / "hipify.txt").read_text().splitlines()
    assert listed == [f"create {hip[0]}", "edit third_party.cmake"]
    assert answer(tug, "rebuild", str(tug.source))[0]["state"] == "current"
    (tug.source / "aten" / "src" / "Reserve.cu").write_text(CUDA.replace("cudaMalloc(to, 8)", "cudaFree(*to)"))
    answer(tug, "rebuild", str(tug.source))
    assert "hipFree" in (tug.source / hip[0]).read_text()
    assert tug.call(*undo.split()[1:]).returncode == 0
    assert not (tug.source / hip[0]).exists()
    assert git(tug.source, "diff", "--name-only").split() == ["aten/src/Reserve.cu"]


def test_a_variant_without_hipify_leaves_the_tree_as_it_is(tmp_path: Path) -> None:
    tug = make(tmp_path)
    tug.change('source-from = "hipify"\n', "")
    tug.change('[stages.hipify]\naction = "hipify"\nenvironment = "tools"\n', "")
    report, said = answer(tug, "dev", str(tug.recipe), "-v", "*-nomagma")
    assert "hipify" not in said
    assert report["notes"] == []
    assert git(tug.source, "status", "--short") == ""
