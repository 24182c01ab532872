"""Axletree as others get it: a wheel made of the sdist, installed somewhere else; and a checkout with a stale copy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from axletree.core.errors import HostError
from axletree.host.indexes import uv_program
from axletree.host.interpreters import find_interpreter
from support.envelopes import result_of

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"


class Installation:
    """A virtual environment that sees the packages of this one, with Axletree installed into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "venv"
        self.cwd = folder
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.environ |= {"AXLETREE_STORE": str(folder / "store"), "COLUMNS": "200"}
        uv("venv", "--quiet", f"--python={sys.executable}", str(self.folder))
        python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.packages = self.folder / "lib" / python / "site-packages"
        (self.packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    def install(self, *what: str) -> None:
        # Not by hard links into uv's cache: a test changes what it installed.
        uv("pip", "install", "--quiet", "--no-deps", "--link-mode=copy", f"--python={self.folder}", *what)

    def axletree(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.folder / "bin" / "axletree", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.cwd,
            env=self.environ,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def uv(*arguments: str) -> None:
    """Run uv; without Axletree's own build backend nothing here can be tested."""
    done = subprocess.run([uv_program(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0 and re.search(r"hatchling|build-system\.requires", done.stderr):
        pytest.skip(f"the build backend cannot be had: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("wheel")
    uv("build", "--quiet", f"--out-dir={folder / 'dist'}", str(ROOT))
    (wheel,) = (folder / "dist").glob("*.whl")
    installation = Installation(folder)
    installation.install(str(wheel))
    return installation


def test_recipes_come_with_all_that_belongs_to_them(installed: Installation) -> None:
    listed = result_of(installed.axletree("recipes", "--json"))
    assert [recipe["name"] for recipe in listed["recipes"]] == [path.stem for path in sorted(RECIPES.glob("*.toml"))]
    there = installed.packages / "axletree" / "_recipes"
    for path in RECIPES.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (there / path.relative_to(RECIPES)).read_bytes() == path.read_bytes()


def test_a_shipped_environment_is_found_by_name_with_its_data(installed: Installation) -> None:
    file = installed.packages / "axletree" / "_recipes" / "env" / "pytorch-cuda.toml"
    assert "ok: pytorch-cuda, 6 variants" in installed.axletree("check", str(file))
    command = [str(installed.folder / "bin" / "axletree"), "env", "run", "pytorch-cuda", "-v", "cu124", "--", "true"]
    done = subprocess.run(
        command, cwd=installed.cwd, env=installed.environ, capture_output=True, text=True, check=False
    )
    assert "create it: axletree env create pytorch-cuda -v cu124" in done.stderr


def test_a_shipped_recipe_is_checked_and_planned_by_name(installed: Installation) -> None:
    assert "torch-scatter" in installed.axletree("check", "torch-scatter")
    try:
        find_interpreter("3.11", environ=os.environ)
    except HostError:
        pytest.skip("needs Python 3.11, which the recipe is for")
    planned = installed.axletree("plan", "torch-scatter")
    assert "fetch" in planned
    assert "test:imports" in planned


def test_the_report_has_its_templates(installed: Installation) -> None:
    templates = Path("axletree", "view", "templates")
    names = sorted(path.name for path in (ROOT / "src" / templates).iterdir() if path.is_file())
    assert sorted(path.name for path in (installed.packages / templates).iterdir()) == names


def test_the_recipes_of_a_checkout_win_over_a_copy_beside_an_editable_installation(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    installation.install("--editable", str(ROOT))
    copy = installation.packages / "axletree" / "_recipes"
    copy.mkdir(parents=True, exist_ok=True)
    (copy / "torch-scatter.toml").write_text("stale")
    (copy / "another.toml").write_text("stale")
    listed = result_of(installation.axletree("recipes", "--json"))
    assert [recipe["name"] for recipe in listed["recipes"]] == [path.stem for path in sorted(RECIPES.glob("*.toml"))]
