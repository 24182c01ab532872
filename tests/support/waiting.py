"""Waiting for what another process does, never for ever."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

SECONDS = 120.0


def until(
    happened: Callable[[], object], process: subprocess.Popen[Any] | None = None, *, seconds: float = SECONDS
) -> None:
    """Wait for something; it fails when the process that leads to it has ended, or when the time is over."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert process is None or process.poll() is None, f"it ended with {process.returncode}"
        assert time.monotonic() < deadline, f"nothing in {seconds:.0f} s"
        time.sleep(0.02)
