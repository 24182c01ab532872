"""A command that was interrupted exits with the same code wherever the signal met it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

INTERRUPTED = """
from axletree.cli import main as module


def main(**_: object) -> int:
    try:
        exec({code})
    except KeyboardInterrupt as error:
        {then}


module.cli.main = main
module.main()
"""
CODES = {
    "code as a string": "'raise KeyboardInterrupt'",
    "compiled code": "compile('raise KeyboardInterrupt', '', 'exec')",
}
THENS = {"raise module.click.exceptions.Abort from error": 130, "return 130": 130, "return 0": 0}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("then", THENS)
def test_an_interruption_that_was_caught_is_no_death_by_signal(code: str, then: str, tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED.format(code=CODES[code], then=then))
    command = [sys.executable, "-m", "interrupted"]  # a module, since only then Python kills itself
    assert subprocess.run(command, cwd=tmp_path, check=False, stderr=subprocess.DEVNULL).returncode == THENS[then]
