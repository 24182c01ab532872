"""Changes of a recipe without a copy of it: ``--set``, and files that extend another recipe, as commands see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from axletree.app.recipes import files_of, load_recipe, problem_at
from axletree.core.errors import RecipeError
from axletree.recipe.axes import expand
from axletree.recipe.target import resolve
from support.envelopes import result_of
from support.faulty import Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.recipe.target import Target

TEXT = """\
name = "small"
version = "1.0"
summary = "A library."
source = { path = "src" }
axes = { blas = ["mkl", "openblas"] }

[stages.lib]
action = "run"
axes = ["blas"]
env = { LEVEL = "1" }
commands = ["mkdir $AXLETREE_OUT/lib; echo {blas} $LEVEL > $AXLETREE_OUT/lib/{blas}.txt"]

[packages.small]
from = "lib"
formats = ["wheel", "conda"]
local = "{blas}"
requires-python = ">=3.9"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project", TEXT)


def target_of(recipe: str | Path, variant: str, *sets: str) -> Target:
    loaded = load_recipe(recipe, sets)
    return next(resolve(loaded.recipe, each) for each in expand(loaded.recipe) if each.id == variant)


@pytest.mark.parametrize("variant", ["py312-cu130-mkl-nomagma", "py310-cu126-generic-magma"])
def test_gpu_architectures_of_the_shipped_pytorch(variant: str) -> None:
    for stage in ("libtorch", "bind"):
        (before, after) = (
            next(each for each in target.stages if each.name == stage).env["TORCH_CUDA_ARCH_LIST"]
            for target in (target_of("pytorch", variant), target_of("pytorch", variant, "gpu.arch-list=8.0"))
        )
        assert after == "8.0" != before


def test_a_recipe_that_extends_a_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('extends = "pytorch"\n[axes]\ngpu = ["cu130"]\n[[patches]]\nfile = "mine.patch"\n')
    loaded = load_recipe(own)
    files = [loaded.file(patch.file) for patch in loaded.recipe.patches]
    assert [file.name for file in files] == ["linalg.patch", "aten-config.patch", "mine.patch"]
    assert [file.is_file() for file in files] == [True, True, False]
    assert files[-1] == tmp_path / "mine.patch"
    assert loaded.places.companion == tmp_path / "mine"
    assert {variant.values["gpu"] for variant in expand(loaded.recipe)} == {"cu130"}
    names = [file.name for file in files_of(own)]
    assert names[:2] == ["mine.toml", "pytorch.toml"]
    assert "cuda.toml" in names


def test_paths_are_relative_to_the_file_that_names_them(project: Project) -> None:
    """A base in a folder below: its source is found from there, and what it says is told with its own line."""
    (project.folder / "base").mkdir()
    (project.folder / "small.toml").rename(project.folder / "base" / "small.toml")
    (project.folder / "src").rename(project.folder / "base" / "src")
    (project.folder / "own.toml").write_text('extends = "base/small.toml"\naxes.blas = ["mkl"]\n')
    done = project.run("build", "own.toml", "--format", "wheel", "--out", "dist")
    assert done.code == 0, done.err
    assert [path.name for path in project.out.glob("*.whl")] == ["small-1.0+mkl-py3-none-any.whl"]
    loaded = load_recipe(project.folder / "own.toml")
    base, own = (problem_at(loaded, path, "") for path in (("stages", "lib"), ("axes", "blas", 0)))
    assert (base.file, base.line) == (str(project.folder / "base" / "small.toml"), 7)
    assert (own.file, own.line, own.excerpt) == (str(project.folder / "own.toml"), 2, 'axes.blas = ["mkl"]')


BASES = [
    ("pytroch", "e.toml:1: extends: no recipe named 'pytroch' ships with Axletree", "did you mean 'pytorch'?"),
    ("small", "e.toml:1: extends: no recipe named 'small' ships with Axletree", "write small.toml"),
    ("smal.toml", "e.toml:1: extends: recipe file smal.toml does not exist", "did you mean small.toml?"),
    ("e.toml", "e.toml:1: extends: the recipe extends itself: e.toml -> e.toml", ""),
    ("f.toml", "f.toml:1: extends: the recipe extends itself: e.toml -> f.toml -> e.toml", ""),
    (
        "../secret.toml",
        "e.toml:1: extends: '../secret.toml' must be a relative path inside",
        "beside",
    ),
]


@pytest.mark.parametrize(("base", "message", "hint"), BASES[:-1], ids=[base for base, *_ in BASES[:-1]])
def test_a_base_that_there_is_not(project: Project, base: str, message: str, hint: str) -> None:
    (project.folder / "e.toml").write_text(f'extends = "{base}"\n')
    (project.folder / "f.toml").write_text('extends = "e.toml"\n')
    done = project.run("check", "e.toml")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert hint in done.err
    assert done.err.count("error:") == 1
    assert len([line for line in done.err.splitlines() if "extends:" in line]) == 1


def test_nothing_outside_of_the_folder_is_read(project: Project) -> None:
    (project.folder.parent / "secret.toml").write_text("password = 'hunter2'\n")
    own = project.folder / "e.toml"
    for text in ('extends = "../secret.toml"\n', 'extends = "small.toml"\ndata = ["../secret.toml"]\n'):
        own.write_text(text)
        with pytest.raises(RecipeError, match=r"path inside the (recipe's )?folder") as caught:
            load_recipe(own)
        assert "hunter2" not in str(caught.value)


def test_the_ledger_tells_builds_with_other_options_apart(project: Project) -> None:
    changed = ("--set", "stages.lib.env.LEVEL=3", "--format", "wheel")
    assert project.run("build", "small.toml", "-v", "mkl", *changed, "--out", "dist").code == 0
    done = project.run("ledger", "small.toml", "--out", "dist")
    assert done.code == 1
    text = " ".join(done.out.split())
    assert "done, with --set" in text
    assert "2 variants: 2 never built; 1 build with other options" in text
    again = project.run("build", "small.toml", "-v", "mkl", *changed, "--remaining", "--out", "dist")
    assert "nothing remains: 1 variant in" in again.out
    rows = result_of(project.run("ledger", "small.toml", "--out", "dist", "--json").out)["variants"]
    assert [(row["variant"], row["state"], row.get("changes", [])) for row in rows] == [
        ("mkl", "never built", []),
        ("openblas", "never built", []),
        ("mkl", "done", list(changed)),
    ]
    asked = project.run("ledger", "small.toml", "--out", "dist", "-v", "mkl", *changed)
    assert asked.code == 0, asked.out
    names = set(json.loads((project.out / "ledger.json").read_text())["recipes"])
    assert names == {"small 1.0 --set stages.lib.env.LEVEL=3 --format wheel"}
    (project.folder / "small.toml").write_text(TEXT.replace('LEVEL = "1"', 'LEVEL = "1", OTHER = "2"'))
    rows = result_of(project.run("ledger", "small.toml", "--out", "dist", "--json").out)["variants"]
    assert [row["state"] for row in rows] == ["never built", "never built", "stale"]


def test_a_build_names_what_the_shell_says_in_vain(project: Project) -> None:
    words = ("build", "small.toml", "-v", "mkl", "--format", "wheel", "--out", "dist")
    done = project.having(CPU_COUNT="2", PYTORCH_BUILD_VERSION="1.8.0").run(*words)
    assert [line for line in done.err.splitlines() if line.startswith("note:")] == [
        "note: CPU_COUNT=2 in your shell does not limit the build; to limit it, use -j 2",
        "note: PYTORCH_BUILD_VERSION=1.8.0 in your shell does not affect the build; use --release 1.8.0",
    ]
    assert "note:" not in project.run(*words).err
    assert "note:" not in project.having(CPU_COUNT="2").run(*words, "-j", "1").err


def test_a_missing_lock_is_made_with_the_same_changes(project: Project) -> None:
    text = TEXT.replace(
        "[stages.lib]", "[environments.tools]\naxes = []\npython = '3'\nrequires = ['wheel']\n\n[stages.lib]"
    )
    (project.folder / "small.toml").write_text(
        text.replace("python = '3'", 'python = "3.11"').replace("env = {", 'environment = "tools"\nenv = {')
    )
    done = project.run("plan", "small.toml", "--set", "stages.lib.env.A=1 2")
    assert "axletree lock small.toml --set 'stages.lib.env.A=1 2'" in done.out
