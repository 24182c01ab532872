"""What a command says while it works, beside its result: notes on stderr, and now and then that it is still at work."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from axletree.core.units import format_duration
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SILENCE = 60.0
"""Seconds after which a command that has said nothing says that it is still at work: CI systems end what is silent."""
_LOOK = 1.0
"""Seconds between two looks at the clock."""


class Heartbeat:
    """Knows when a command spoke last, and what it is doing."""

    def __init__(
        self, name: str, say: Callable[[str], object], *, what: str = "", now: Callable[[], float] = time.monotonic
    ) -> None:
        """``say`` takes what is to be said of the command ``name``, ``now`` tells the time in seconds."""
        self._name, self._say, self._now = name, say, now
        self._began = self._spoke = now()
        self._what = what

    def at_work(self, what: str) -> None:
        """Note what the command does now; that is told with the next beat."""
        self._what = what

    def spoke(self) -> None:
        """The command said something itself."""
        self._spoke = self._now()

    def beat(self) -> None:
        """Say that the command is at work if nothing was said for :data:`SILENCE`."""
        now = self._now()
        if now - self._spoke < SILENCE:
            return
        self._spoke = now
        what = f": {self._what}" if self._what else ""
        self._say(f"still running {self._name}{what}, {format_duration(now - self._began)}")


class _Speech:
    """How the command of this process speaks. Not click's context: notes come from threads, too, which have none."""

    quiet = False
    heartbeat: Heartbeat | None = None


_SPEECH = _Speech()


@contextmanager
def speaking(name: str, *, quiet: bool, what: str = "") -> Iterator[None]:
    """Let a command speak: notes, and a heartbeat where it is silent for long; quiet means neither.

    Args:
        name: The command.
        quiet: Whether it says nothing beside its result and errors.
        what: What it works on, until it says more.
    """
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK) and (heartbeat := _SPEECH.heartbeat) is not None:
            heartbeat.beat()

    _SPEECH.quiet = quiet
    if not quiet:
        _SPEECH.heartbeat = Heartbeat(name, _say, what=what)
        threading.Thread(target=watch, name="heartbeat", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        _SPEECH.quiet, _SPEECH.heartbeat = False, None


def is_quiet() -> bool:
    """Whether the command was called with ``--quiet``."""
    return _SPEECH.quiet


def say_aside(text: str) -> None:
    """Say it on stderr, if the command may speak: what is on stdout is the result."""
    if not _SPEECH.quiet:
        at_work(text.partition("\n")[0].strip())
        _say(text)


def print_line(line: str) -> None:
    """Print a line of the result that is known before the rest."""
    click.echo(line)
    if _SPEECH.heartbeat is not None:
        _SPEECH.heartbeat.spoke()


def hush() -> None:
    """No heartbeat from here on: the command draws what it does."""
    _SPEECH.heartbeat = None


def at_work(what: str) -> None:
    """Note what is being done; it is told if it takes long."""
    if _SPEECH.heartbeat is not None:
        _SPEECH.heartbeat.at_work(what)


def _say(text: str) -> None:
    click.echo(printable(text), err=True)
    if _SPEECH.heartbeat is not None:
        _SPEECH.heartbeat.spoke()
