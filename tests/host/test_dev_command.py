"""What ``axletree dev`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.dev import Developed
from axletree.cli import rebuild as rebuild_command
from axletree.cli.dev import Steps
from axletree.cli.main import cli

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("steps", "said"),
    [(0, "it is up to date"), (1, "it is up to date"), (1200, "all 1,200 steps are up to date")],
)
def test_nothing_to_do(steps: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = Developed(tree="t", variant="py311", stage="s", way="w", state="current", steps=steps, log="l")
    monkeypatch.setenv("AXLETREE_STORE", str(tmp_path))
    monkeypatch.setattr(rebuild_command, "rebuild", lambda *_, **__: done)
    shown = CliRunner().invoke(rebuild_command.command, [], catch_exceptions=False)
    assert shown.output == f"nothing to do: {said} (py311)\n"


def test_steps_without_a_known_total_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps(quiet=False)
    steps("compiling a.cpp", done=1)
    steps("[2/4] linking", done=2, total=4)
    assert capsys.readouterr().err.splitlines() == ["[1] compiling a.cpp", "[2/4] linking"]


def test_its_former_name_leads_to_it() -> None:
    for words in (["dev", "rebuild", "src", "--json"], ["dev", "rebuild"]):
        shown = CliRunner().invoke(cli, words)
        assert shown.exit_code == 2
        assert f"'dev rebuild' is now a separate command: axletree {' '.join(words[1:])}\n" in shown.output
