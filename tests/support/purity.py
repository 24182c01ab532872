"""A guard for pure tests: while it is on, writing a file, starting a process or using a socket fails the test.

An audit hook cannot be removed, so there is one for the process, with a switch. Reading stays allowed: imports and test
data are read; so is what the interpreter and Hypothesis write for themselves (bytecode, tables of characters).
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
OF_THE_TOOLS = ("__pycache__", ".hypothesis")
FORBIDDEN = {
    *("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
    *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pty.spawn"),
    *("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"),
}

_on = False
_installed = False


def offence(event: str, args: tuple[object, ...]) -> str | None:
    """What is wrong with an audit event, or ``None``."""
    if event == "open":
        path, _, flags = args
        if not isinstance(flags, int) or not flags & WRITING or not isinstance(path, str | bytes):
            return None
    elif event not in FORBIDDEN:
        return None
    if any(name in str(argument) for argument in args for name in OF_THE_TOOLS):
        return None
    return f"a pure test did {event} {args!r}"


def _hook(event: str, args: tuple[object, ...]) -> None:
    global _on  # noqa: PLW0603 (one hook and one switch for the process)
    if not _on:
        return
    problem = offence(event, args)
    if problem is not None:
        _on = False  # rendering the failure may need what is forbidden
        pytest.fail(problem)


@contextmanager
def _switched(on: bool) -> Generator[None]:  # noqa: FBT001
    global _on  # noqa: PLW0603
    before, _on = _on, on
    try:
        yield
    finally:
        _on = before


@contextmanager
def guarded() -> Generator[None]:
    """Fail the running test on the first thing that is not pure."""
    global _installed  # noqa: PLW0603
    if not _installed:
        sys.addaudithook(_hook)
        _installed = True
    with _switched(True):  # noqa: FBT003
        yield


@contextmanager
def lifted() -> Generator[None]:
    """Let a fixture write in the middle of a guarded test."""
    with _switched(False):  # noqa: FBT003
        yield
