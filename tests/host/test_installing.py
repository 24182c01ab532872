"""Which command lines install what a run published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.app.installing import install_commands, wanted
from support.targets import plan_of, targets_at

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """\
name = "ferry"
version = "1.2.0"
[source]
path = "src"
[axes]
python = ["3.11", "3.12"]
blas = ["mkl", "openblas"]
[environments.build]
axes = ["python"]
[stages.lib]
action = "run"
commands = ["make"]
[stages.build]
action = "run"
axes = ["python", "blas"]
environment = "build"
commands = ["make"]
[packages.libferry]
from = "lib"
formats = FORMATS
[packages.ferry]
from = "build"
formats = FORMATS
local = "{blas}"
[packages.ferry-mkl]
formats = FORMATS
when = { blas = "mkl" }
requires = ["ferry=={version}"]
[packages.ferry-openblas]
formats = FORMATS
when = { blas = "openblas" }
requires = ["ferry=={version}"]
"""


def commands(folder: Path, formats: str, *, without: str = "nothing", recipe: str = RECIPE) -> list[tuple[str, str]]:
    text = recipe.replace("FORMATS", formats)
    plan = plan_of(text, platform="linux-x86_64")
    published = [stage for stage in plan.stages if without not in stage]
    found = wanted(plan, targets_at(text), published, conda_names={"ferry": "py-ferry"})
    return [(each.what, each.command) for each in install_commands(folder, found)]


def test_versions_that_exclude_each_other_have_commands_of_their_own(tmp_path: Path) -> None:
    url = (tmp_path / "simple").as_uri()
    mkl, openblas = (
        f"pip install --extra-index-url {url} 'libferry==1.2.0' 'ferry==1.2.0+{blas}' 'ferry-{blas}==1.2.0'"
        for blas in ("mkl", "openblas")
    )
    assert commands(tmp_path, '["wheel"]') == [
        ("py311-mkl, py312-mkl", mkl),
        ("py311-mkl, py312-mkl", f"uv {mkl}"),
        ("py311-openblas, py312-openblas", openblas),
        ("py311-openblas, py312-openblas", f"uv {openblas}"),
    ]


def test_what_was_not_published_is_not_offered(tmp_path: Path) -> None:
    found = commands(tmp_path, '["wheel"]', without="mkl]")
    assert [what for what, _ in found] == [".", "."]
    assert all("+openblas" in command and "mkl" not in command for _, command in found)


def test_packages_that_only_some_variants_have(tmp_path: Path) -> None:
    url = (tmp_path / "conda").as_uri()
    both = commands(tmp_path, '["conda"]')
    assert [what for what, _ in both] == ["py311-mkl, py312-mkl"] * 3 + ["py311-openblas, py312-openblas"] * 3
    text = RECIPE.partition("[packages.ferry-openblas]")[0]
    assert [command for _, command in commands(tmp_path, '["conda"]', recipe=text)] == [
        f"conda install -c {url} 'libferry=1.2.0' 'py-ferry=1.2.0' 'ferry-mkl=1.2.0'",
        f"micromamba install -c {url} 'libferry=1.2.0' 'py-ferry=1.2.0' 'ferry-mkl=1.2.0'",
        f"pixi workspace channel add {url} && pixi add 'libferry=1.2.0' 'py-ferry=1.2.0' 'ferry-mkl=1.2.0'",
    ]
