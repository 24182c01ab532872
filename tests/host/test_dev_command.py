"""What ``axletree dev`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.dev import Developed
from axletree.cli import dev as dev_command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("steps", "said"),
    [(0, "it is up to date"), (1, "it is up to date"), (1200, "all 1,200 steps are up to date")],
)
def test_nothing_to_do(steps: int, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = Developed(tree="t", variant="py311", stage="s", way="w", state="current", steps=steps, log="l")
    monkeypatch.setenv("AXLETREE_STORE", str(tmp_path))
    monkeypatch.setattr(dev_command, "rebuild", lambda *_, **__: done)
    shown = CliRunner().invoke(dev_command.command, ["rebuild"], catch_exceptions=False)
    assert shown.output == f"nothing to do: {said} (py311)\n"
