"""What lies in the folders above the store must not matter: a store may be inside somebody's project."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from support.elfs import need
from support.faulty import BOUND, LIBRARY, make_project

if TYPE_CHECKING:
    from pathlib import Path


def test_a_stage_sees_no_repository_above_the_store(tmp_path: Path) -> None:
    need("git")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    recipe = LIBRARY.replace('"mkdir -p', '"! git rev-parse --show-toplevel", "mkdir -p')
    ended = make_project(tmp_path / "project", recipe).build()
    assert ended.code == 0, ended.out + ended.err


def test_a_test_sees_no_pytest_settings_above_the_store(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    first = 'commands = ["python -c'
    assert first in BOUND
    check = 'commands = ["test -e pytest.ini && ! grep no-such-option pytest.ini", "python -c'
    recipe = BOUND.replace(first, check)
    ended = make_project(tmp_path / "project", recipe).build()
    assert ended.code == 0, ended.out + ended.err
