"""PyTorch's real source: configured, and its base library built, relocated, packed, audited and linked to.

Debian's 2.6.0 with Debian's libraries, by the recipe that ships. All of it takes hours; this takes minutes once, in
a store in the checkout's ``.cache`` that is kept between runs, and what is asserted holds with a full one too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.clean_host import run_clean
from support.envelopes import events_of
from support.inputs import debian_source

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "pytorch-debian.toml"
NEEDED = ("flatc", "protoc")
HEADERS = ("cpuinfo.h", "onnx/onnx_pb.h", "sleef.h", "httplib.h", "nlohmann/json.hpp", "fp16.h", "pthreadpool.h")

BASE = """\
[stages.base]
action = "relocate"
axes = ["gpu", "blas"]
inputs = ["libtorch"]
[stages.base.relocate]
place = { "torch" = "libc10" }
single = ["torch/lib/lib*.so*"]
graft = ["libcpuinfo.so*"]
graft-to = "libc10/lib"
[packages.libc10]
from = "base"
local = "{gpu}"
requires-python = ">=3.9"
"""
PROGRAM = """\
#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <iostream>
int main() {
  std::cout << c10::Device("cpu").str() << std::endl;
  try { c10::Device("nonsense"); } catch (const c10::Error&) { std::cout << "refused" << std::endl; }
}
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500), pytest.mark.xdist_group("torch-scatter")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The wheel, and the events of its build."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    folders = [Path("/usr/include"), *Path("/usr/include").glob("*-linux-gnu*")]
    missing += [name for name in HEADERS if not any((folder / name).exists() for folder in folders)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: scripts/setup pytorch installs them where apt and root exist")
    source = debian_source("pytorch", "trixie")
    folder = ROOT / ".cache" / "pytorch-base"  # one place: a kept build folder belongs to a recipe's path
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(RECIPE.with_suffix(""), folder / "pytorch-debian")
    shutil.copytree(RECIPE.with_suffix(""), folder / "base")
    text = RECIPE.read_text().partition("# What is for one Python")[0]
    text = text.partition("[environments.bind]")[0] + "# What is for any" + text.partition("# What is for any")[2]
    text = text.replace('driver = "setup.py"\n', 'driver = "setup.py"\ntargets = ["c10/all", "c10/install/local"]\n')
    (folder / "base.toml").write_text(text + BASE)
    out = tmp_path_factory.mktemp("pytorch")
    words = ["build", folder / "base.toml", "--source", source, "-v", "py311-*", "--out", out, "--json"]
    environ = {**os.environ, "AXLETREE_STORE": str(ROOT / ".cache" / "test-store")}
    argv = [sys.executable, "-m", "axletree", *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (wheel,) = out.glob("*.whl")
    return wheel, events_of(done.stdout)


def test_the_audit_found_nothing_wrong(built: tuple[Path, list[dict[str, Any]]]) -> None:
    (audited,) = (
        event for event in built[1] if event["event"] == "stage-finished" and event["stage"].startswith("audit")
    )
    assert audited["status"] in {"done", "cached"}
    assert [each["rule"] for each in audited.get("findings", []) if each["severity"] == "error"] == []


def test_libraries_lie_once_under_plain_names(built: tuple[Path, list[dict[str, Any]]]) -> None:
    with zipfile.ZipFile(built[0]) as archive:
        names = [name.rpartition("/")[2] for name in archive.namelist() if ".so" in name]
    assert "libc10.so" in names
    assert [name.partition("-")[0] for name in names if name != "libc10.so"] == ["libcpuinfo"]


def test_a_program_links_to_it_and_runs_without_debians_library(
    built: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "main.cpp").write_text(PROGRAM)
    base = tmp_path / "libc10"
    command = ["c++", "-std=c++17", "-I", base / "include", tmp_path / "main.cpp", "-o", tmp_path / "program"]
    command += ["-L", base / "lib", "-lc10", f"-Wl,-rpath,{base / 'lib'}"]
    subprocess.run(list(map(str, command)), check=True)
    hidden = list(Path("/usr/lib").rglob("libcpuinfo.so*"))
    assert run_clean(tmp_path / "program", hide=hidden) == "cpu\nrefused\n"
