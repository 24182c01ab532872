"""A stage is run by hand, under a debugger too: what CONTRIBUTING.md says of debugging one."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """\
name = "hello"
version = "1.0"
[source]
path = "src"
[stages.lib]
action = "run"
commands = ["mkdir $AXLETREE_OUT/hello", "cp greeting $AXLETREE_OUT/hello/__init__.py"]
[packages.hello]
from = "lib"
files = ["hello/**"]
"""
PDB = """\
import axletree.execute.actions.run
break axletree.execute.actions.run.run
continue
p f"here is {context.request.stage} in {context.work.name}"
continue
quit
"""


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, of which a stage failed."""
    folder = tmp_path_factory.mktemp("hello")
    (folder / "src").mkdir()
    (folder / "src" / "notes").write_text("greeting is missing\n")
    (folder / "recipe.toml").write_text(RECIPE)
    done = axletree(folder, "build", "recipe.toml", "--out", "dist")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "inspect it: axletree shell hello:lib" in done.stdout
    return folder


def axletree(
    folder: Path, *words: str, python: tuple[str, ...] = (), said: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", *python, "-m", "axletree", *words]
    environ = {**os.environ, "HOME": str(folder), "AXLETREE_STORE": str(folder / "store")}
    return subprocess.run(command, cwd=folder, input=said, capture_output=True, text=True, check=False, env=environ)


def test_a_stage_runs_again_by_its_id(failed: Path) -> None:
    again = axletree(failed, "run-stage", "lib")
    assert (again.returncode, again.stdout.startswith("lib: failed: ")) == (1, True), again.stderr
    unknown = axletree(failed, "run-stage", "libs")
    assert unknown.returncode == 2
    assert "this store has never run a stage 'libs'" in unknown.stderr
    assert "did you mean 'lib'?" in unknown.stderr


def test_a_debugger_stops_in_the_stages_own_process(failed: Path) -> None:
    done = axletree(failed, "run-stage", "lib", python=("-m", "pdb"), said=PDB)
    assert "Breakpoint 1 at " in done.stdout, done.stderr
    assert "'here is lib in " in done.stdout
    assert "lib: failed: " in done.stdout
