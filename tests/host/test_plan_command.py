"""``plan`` tells what a build would do, also on a machine that could not do it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING

import pytest

from axletree.app import conda_inputs
from axletree.cli.main import main
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
