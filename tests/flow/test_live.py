"""What a build shows on a terminal."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from support.faulty import make_project

if TYPE_CHECKING:
    from pathlib import Path


def test_the_memory_of_the_machine_is_shown_at_a_terminal(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "axletree", "build", "small.toml"],
        cwd=project.folder,
        env={**project.variables(), "TERM": "xterm", "COLUMNS": "120"},
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while data := os.read(ours, 65536):
            said += data
    os.close(ours)
    assert process.wait(60) == 0, said
    assert b"  memory " in said
