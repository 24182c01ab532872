"""Running a program to its end and taking what it prints: the one way in which Axletree asks another program.

What streams, supervises or talks with a process starts it itself; `tests/pure/test_layout.py` lists those modules.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LINES = 6


class Finished(msgspec.Struct, frozen=True):
    """How a program ended, and what it printed."""

    code: int
    """Exit code; below zero: the signal that killed it."""
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Its output. Line ends are as it wrote them; bytes that are no UTF-8 survive as surrogates."""
        return self.out.decode("utf-8", "surrogateescape")

    def ending(self, lines: int = _LINES) -> str:
        """Its exit code, with the last lines of its messages, else of its output."""
        text = (self.err.strip() or self.out).decode(errors="replace")
        said = [line.rstrip() for line in text.splitlines() if line.strip()]
        return ": ".join([f"exit code {self.code}", *filter(None, ["\n    ".join(said[-lines:])])])


def finish(
    command: Sequence[str | Path],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: str | bytes = b"",
    seconds: float | None = None,
    held: Sequence[int] = (),
    hint: str | None = None,
) -> Finished:
    """Run a program; what its exit code means is the caller's business.

    Args:
        command: program and arguments.
        environ: exactly its variables; ``None``: those of this process.
        cwd: where it runs.
        text: what it reads; a text as UTF-8. It never gets the terminal.
        seconds: when to kill it.
        held: file descriptors that it inherits.
        hint: what to do where it can't be run.

    Raises:
        HostError: it can't be started, or the time is up.
    """
    try:
        done = subprocess.run(
            command,
            env=None if environ is None else dict(environ),
            cwd=cwd,
            input=text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text,
            capture_output=True,
            check=False,
            timeout=seconds,
            pass_fds=held,
        )
    except OSError as error:
        raise HostError(f"cannot run {command[0]}: {error.strerror}", hint=hint) from error
    except subprocess.TimeoutExpired as error:
        raise HostError(f"{command[0]} did not respond within {seconds:g} s", hint=hint) from error
    return Finished(done.returncode, done.stdout, done.stderr)


def run(
    command: Sequence[str | Path],
    *,
    what: str | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text: str | bytes = b"",
    seconds: float | None = None,
    hint: str | None = None,
) -> str:
    """Run a program that has to succeed, as :func:`finish` does, and return its output.

    Args:
        command: program and arguments.
        what: how an error names it; its path where nothing is said.
        environ: see :func:`finish`.
        cwd: see :func:`finish`.
        text: see :func:`finish`.
        seconds: see :func:`finish`.
        hint: what to do where it fails.

    Raises:
        HostError: it can't be started, fails, or the time is up; with its last lines.
    """
    done = finish(command, environ=environ, cwd=cwd, text=text, seconds=seconds, hint=hint)
    if done.code != 0:
        raise HostError(f"{what or command[0]} failed with {done.ending()}", hint=hint)
    return done.text


def output_of(
    command: Sequence[str | Path], *, environ: Mapping[str, str], seconds: float, cwd: Path | None = None
) -> str:
    """What a program prints; nothing where it can't be started, fails, or the time is up."""
    try:
        return run(command, environ=environ, seconds=seconds, cwd=cwd)
    except HostError:
        return ""
