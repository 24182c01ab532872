"""``plan`` tells what a build would do, also on a machine that could not do it."""

from __future__ import annotations

from functools import partial
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING

import pytest

from axletree.app import conda_inputs, planning
from axletree.app.planning import PlanRequest
from axletree.cli.main import main
from axletree.host.tools import find_toolchain
from axletree.store.store import Store
from support.envelopes import result_of
from support.recipes import SMALL

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = SMALL.replace('["3.11", "3.12"]', '["3.98", "3.99t"]').replace('requires = ["setuptools"]', "requires = []")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a recipe for Pythons that no machine has."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.c").write_text("int a;\n")
    (tmp_path / "small.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXLETREE_STORE", str(tmp_path / "store"))
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    """Exit code and stdout."""
    with pytest.raises(SystemExit) as caught:
        main(args)
    said = capsys.readouterr()
    return int(caught.value.code or 0), said.out or said.err


def test_a_missing_python_is_named_with_its_variants(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = call(capsys, "plan", "--json", "small.toml")
    assert code == 0
    plan = result_of(out)
    found = {finding["where"]: finding for finding in plan["findings"]}
    assert set(found) == {"Python 3.98", "Python 3.99t"}
    free = found["Python 3.99t"]
    assert free["message"] == "not installed"
    assert free["fix"] == "$ uv python install 3.99t"
    assert free["variants"] == ["py399t-cpu", "py399t-cu130"]
    stages = {row["stage"]: row for row in plan["stages"]}
    assert stages["environment:build[py399t]"]["why"] == ["Python 3.99t is not installed"]
    assert stages["environment:build[py399t]"]["status"] == "run"
    assert stages["lib[cpu]"]["why"] == ["it has not run yet"]
    _, out = call(capsys, "plan", "small.toml")
    assert "warning Python 3.99t: not installed [build/not-installed]\n      for py399t-cpu, py399t-cu130\n" in out
    assert call(capsys, "build", "small.toml", "--out", "there")[0] == 3  # whoever builds needs them


def test_a_missing_conda_client_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "py-rattler":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(conda_inputs, "version", version)
    recipe = RECIPE.replace("[tests.smoke]", '[tests.smoke]\ninstallers = ["conda"]')
    recipe = recipe.replace("\nlocal", '\nformats = ["wheel", "conda"]\nlocal')
    (folder / "small.toml").write_text(recipe)
    code, out = call(capsys, "plan", "--json", "small.toml")
    assert code == 0, out
    (found,) = (each for each in result_of(out)["findings"] if each["where"] == "py-rattler")
    assert found["fix"] == "$ pip install 'py-rattler>=0.20'"


UNLOCKED = """\
name = "small"
version = "1.0"
[source]
pypi = "small"
[axes]
python = ["3.11", "3.98"]
[environments.build]
axes = ["python"]
requires = ["setuptools"]
[stages.lib]
action = "build"
axes = ["python"]
environment = "build"
tools = ["no-such-compiler"]
[packages.small]
from = "lib"
"""


@pytest.mark.parametrize("source", ['pypi = "small"', 'git = "https://host.invalid/small"\nref = "main"'])
def test_a_recipe_without_locks_and_tools_is_planned_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    (folder / "small.toml").write_text(UNLOCKED.replace('pypi = "small"', source))
    code, out = call(capsys, "plan", "--json", "small.toml", "-v", "py*")
    assert code == 0, out
    plan = result_of(out)
    found = {finding["where"]: finding for finding in plan["findings"]}
    assert set(found) == {"Python 3.98", "no-such-compiler", "locks"}
    assert found["locks"]["message"] == "the source and 2 environments are not locked yet"
    assert found["locks"]["fix"] == "run `axletree lock small.toml -v 'py*'`"
    assert found["no-such-compiler"]["variants"] == ["py311", "py398"]
    why = {row["stage"]: row["why"] for row in plan["stages"]}
    assert why["fetch"] == why["environment:build[py311]"] == ["the stage is not locked yet"]
    assert why["environment:build[py398]"] == ["Python 3.98 is not installed"]
    assert why["lib[py311]"] == ["no-such-compiler is not installed"]
    assert plan["downloads"] == []
    code, out = call(capsys, "build", "--locked", "small.toml", "-v", "py311")
    assert code == 2
    assert "the source is not locked" in out
    assert "hint: run `axletree lock small.toml -v py311`" in out


def test_the_lock_of_one_environment_that_is_missing_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "small.toml").write_text(RECIPE.replace("requires = []", 'requires = ["setuptools"]'))
    code, out = call(capsys, "plan", "small.toml", "-v", "py398-cpu")
    assert code == 0, out
    assert "warning locks: 1 environment is not locked yet [build/not-locked]" in out
    assert "small.toml -v py398-cpu`" in out


def test_another_gpu_compiler_of_the_system_is_a_reason_for_stages_that_see_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = folder / "bin"
    system.mkdir()
    monkeypatch.setattr(planning, "find_toolchain", partial(find_toolchain, folders=[str(system)]))
    text = RECIPE.replace("[stages.lib]", '[stages.lib]\ntools = ["nvcc"]', 1)
    (folder / "small.toml").write_text(text)

    def tools_of() -> dict[str, dict[str, dict[str, str]]]:
        store = Store.open(folder / "store")
        prepared = planning.prepare(PlanRequest(recipe="small.toml", out=folder), store, environ={}, only_plan=True)
        return {stage: resolved.ingredients.tools for stage, resolved in prepared.resolved.items()}

    assert "hipcc" not in tools_of()["lib[cpu]"]
    (system / "hipcc").write_text("#!/bin/sh\necho HIP version: 6.4\n")
    (system / "hipcc").chmod(0o755)
    seen = {stage for stage, tools in tools_of().items() if tools.get("hipcc") == {"version": "HIP version: 6.4"}}
    assert seen == {"lib[cpu]", "lib[cu130]"}


PURE = """\
name = "small"
version = "1.0"
source = { path = "src" }
[stages.lib]
action = "run"
commands = ["mkdir $AXLETREE_OUT/small", "cp a.c $AXLETREE_OUT/small/"]
[packages.small]
from = "lib"
"""


def test_other_content_under_a_published_name_is_said_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "small.toml").write_text(PURE)
    assert call(capsys, "build", "small.toml")[0] == 0
    assert "published" not in call(capsys, "plan", "small.toml")[1]
    (folder / "src" / "a.c").write_text("int b;\n")
    (found,) = result_of(call(capsys, "plan", "small.toml", "--json")[1])["findings"]
    assert found["rule"] == "build/published-before"
    assert found["where"] == "dist/small-1.0-py3-none-any.whl"
    assert found["evidence"] == ["fetch: parameter files: the content of a.c changed"]
    code, out = call(capsys, "build", "small.toml")
    assert code == 2
    assert out.index("[build/published-before]") < out.index("  started")
    for other in ("1.0.post1", "1.0"):  # called otherwise; and as before, with the content of before
        (folder / "small.toml").write_text(PURE.replace('"1.0"', f'"{other}"'))
        (folder / "src" / "a.c").write_text("int a;\n" if other == "1.0" else "int c;\n")
        assert "published" not in call(capsys, "plan", "small.toml")[1]
