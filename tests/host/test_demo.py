"""``make demo`` and what `make` needs of a machine: the recipe for a Python, and what is said of what is missing."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from axletree.app.recipes import load_recipe
from support import projects
from support.index_server import write_wheel
from support.projects import info, sdist_bytes
from support.tiny import another_python

if TYPE_CHECKING:
    from axletree.core.records import Interpreter

ROOT = Path(__file__).parents[2]
OWN = f"cp{sys.version_info.major}{sys.version_info.minor}"
NEEDS = {
    "setuptools": "80.9.0",
    "setuptools-scm": "9.0",
    "wheel": "0.45",
    "numpy": "2.4",
    "pytest": "9.0",
    "cppy": "1.3.1",
    "scipy": "1.17",
}
"""What the two recipes, or the small projects in their place, ask for beside PyTorch."""
TOOLS = ("bash", "id", "dirname", "cat", "sed", "grep", "head", "tail", "env")


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    """scripts/demo.py as a module."""
    spec = importlib.util.spec_from_file_location("demo", ROOT / "scripts" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def surroundings(folder: Path, *torch: str) -> dict[str, str]:
    """Variables of a machine without a network, whose folder of wheels has PyTorch for some Pythons."""
    wheels = folder / "wheels"
    wheels.mkdir()
    for name, version in NEEDS.items():
        write_wheel(wheels, name, version)
    for python in torch:
        write_wheel(wheels, "torch", "2.13.0+cpu", tag=f"{python}-{python}-linux_x86_64")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYENV_ROOT": os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")),
        "AXLETREE_STORE": str(folder / "store"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }


def with_sources(demo: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Let the demo's recipes be copies whose sdists are among the wheels; their folder."""
    recipes = folder / "recipes"
    files = {"torch_scatter-2.1.2": projects.TORCH, "kiwisolver-1.5.1": projects.SETUPTOOLS}
    for stem, project in files.items():
        name = stem.partition("-")[0].replace("_", "-")
        shutil.copytree(ROOT / "recipes" / name, recipes / name)
        shutil.copy(ROOT / "recipes" / f"{name}.toml", recipes)
        data = sdist_bytes(stem, project | {"PKG-INFO": info(name, stem.partition("-")[2])})
        (folder / "wheels" / f"{stem}.tar.gz").write_bytes(data)
        lock = recipes / name / "source.lock.toml"
        sha256 = hashlib.sha256(data).hexdigest()
        lock.write_text(re.sub('sha256 = "[0-9a-f]+"', f'sha256 = "{sha256}"', lock.read_text()))
    monkeypatch.setattr(demo, "RECIPES", recipes)
    return recipes


def for_python(demo: Any, monkeypatch: pytest.MonkeyPatch, other: Interpreter) -> str:
    """Let the demo be one for another Python; its tag."""
    version = ".".join(other.version.split(".")[:2])
    monkeypatch.setattr(demo, "PYTHON", version)
    return f"cp{version.replace('.', '')}"


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_without_pytorch_the_first_line_says_what_is_built_and_why(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = surroundings(tmp_path, "cp39", "cp310")
    with_sources(demo, monkeypatch, tmp_path)
    recipe = demo.choose(tmp_path / "copies", environ)
    first = capsys.readouterr().out.splitlines()[0]
    assert first == (
        f"demo: builds kiwisolver instead of torch-scatter: no torch==2.13.0+cpu for Python {demo.PYTHON} was found: "
        f"{tmp_path}/wheels has it for cp310, cp39 only"
    )
    loaded = load_recipe(recipe)
    assert (loaded.recipe.name, loaded.recipe.axes) == ("kiwisolver", {"python": (demo.PYTHON,)})


def test_a_place_that_does_not_answer_or_has_nothing_is_named(demo: Any, tmp_path: Path) -> None:
    environ = surroundings(tmp_path)
    settings = demo.IndexSettings(index_url="http://127.0.0.1:9", find_links=(environ["PIP_FIND_LINKS"],))
    with pytest.raises(demo.HostError) as caught:
        demo.find_wheel(demo.Requirement("torch==2.13.0+cpu"), (), settings, further=())
    (problem,) = caught.value.problems
    assert "was found: no response from 127.0.0.1: " in problem.message
    assert problem.message.endswith(f"; not in {tmp_path}/wheels")
    assert "\n" not in problem.message


def test_a_python_without_a_shipped_lock_is_locked_beside_the_checkout(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = another_python()
    environ = surroundings(tmp_path, for_python(demo, monkeypatch, other))
    recipes = with_sources(demo, monkeypatch, tmp_path)
    shipped = content(recipes)
    recipe = demo.choose(tmp_path / "copies", environ)
    assert recipe == tmp_path / "copies" / "torch-scatter.toml"
    loaded = load_recipe(recipe)
    assert loaded.recipe.axes["python"] == (demo.PYTHON,)
    locks = sorted(
        path.name for path in loaded.places.companion.glob("pylock.*") if demo.PYTHON.replace(".", "") in path.name
    )
    assert [name.split("-")[0] for name in locks] == ["pylock.build", "pylock.test"]
    before = content(tmp_path / "copies")
    shutil.rmtree(tmp_path / "wheels")
    (tmp_path / "wheels").mkdir()
    write_wheel(tmp_path / "wheels", "torch", "2.13.0+cpu", tag=f"{OWN}-{OWN}-linux_x86_64")
    monkeypatch.setattr(demo, "need_torch", lambda *_: None)
    assert demo.choose(tmp_path / "copies", environ) == recipe
    assert content(tmp_path / "copies") == before
    assert content(recipes) == shipped


def test_a_recipe_whose_locks_fit_is_built_as_it_is(demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PYTHON", "3.11")
    try:
        found = demo.choose(tmp_path / "copies", surroundings(tmp_path, "cp311"))
    except demo.HostError as error:
        pytest.skip(f"needs Python 3.11: {error}")
    assert found == ROOT / "recipes" / "torch-scatter.toml"


def setup(folder: Path, *words: str, python: str = "", **environ: str) -> tuple[int, str]:
    """``scripts/setup`` on a machine that has a Python as given, and neither a compiler nor the right to install."""
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup", folder / "scripts")
    programs = folder / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool) or pytest.skip(f"needs {tool}"))
    if python:
        (programs / "python3").write_text(f"#!/bin/sh\ncase $* in {python}\nesac\n")
        (programs / "python3").chmod(0o755)
    command = [str(programs / "bash"), str(folder / "scripts" / "setup"), *words]
    done = subprocess.run(
        command, env={"PATH": str(programs), **environ}, capture_output=True, text=True, check=False, cwd=folder
    )
    return done.returncode, done.stdout + done.stderr


OLD = "*platform*) echo 3.10.12;; *) exit 1;;"
NO_VENV = "*platform*) echo 3.12.3;; *ensurepip*) exit 1;; *) exit 0;;"


@pytest.mark.parametrize(
    ("python", "named", "says"),
    [
        ("", "", "setup: no python3 here, and Axletree needs Python 3.11 or later: "),
        (OLD, "", "setup: python3 is 3.10.12, and Axletree needs Python 3.11 or later: "),
        (OLD, "python3", "setup: python3 is 3.10.12, and Axletree needs 3.11 or later: name another with make PYTHON="),
        (
            "",
            "/none/python3",
            "setup: no /none/python3 here, and Axletree needs 3.11 or later: name another with make ",
        ),
        (NO_VENV, "", "setup: python3 (3.12.3) cannot make environments: "),
    ],
)
def test_what_a_machine_lacks_is_one_line(python: str, named: str, says: str, tmp_path: Path) -> None:
    code, said = setup(tmp_path / "clone", "venv", "run", python=python, PYTHON=named)
    assert code == 3
    assert said.startswith(says)
    assert said.count("\n") == 1
    assert not (tmp_path / "clone" / ".venv").exists()


def test_no_compiler_is_one_line(tmp_path: Path) -> None:
    code, said = setup(tmp_path / "clone", "compiler")
    assert code == 3
    assert said.startswith("setup: no C++ compiler (c++) here: ")
    assert said.count("\n") == 1
