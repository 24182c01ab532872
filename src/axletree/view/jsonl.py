"""Events as lines of JSON, one event a line: what ``build --json`` writes and other programs read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from axletree.core.events import MemorySampled, StageProgress
from axletree.view.choose import EventView

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.core.events import Event
    from axletree.core.values import StageId

    _Stream = tuple[type[StageProgress | MemorySampled], StageId]

SPACING = 0.5
"""Seconds between two lines of one kind about one stage."""

_ENCODER = msgspec.json.Encoder()


def encode(event: Event) -> str:
    """One line without its newline; the ``event`` field names the kind."""
    return _ENCODER.encode(event).decode()


class JsonView(EventView):
    """Writes events as lines; see :class:`axletree.view.choose.EventView`.

    Of a stage's counted steps and of its memory a reader gets a few a second: the latest step, and the most memory
    since the line before. Everything else is written as it comes, and a stage ends with nothing held back.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        """``write`` takes one line without its newline and should not buffer it for long: readers wait for it."""
        self._write = write
        self._times: dict[_Stream, float] = {}
        """Kind and stage -> when the latest line of them was written."""
        self._held: dict[_Stream, StageProgress | MemorySampled] = {}

    def handle(self, event: Event, now: float) -> None:
        """Write the event, hold it back, or drop it for a later one."""
        del now
        for stream in [stream for stream in self._held if self._is_due(stream, event.time)]:
            self._put(stream, self._held.pop(stream))
        if isinstance(event, MemorySampled) or (isinstance(event, StageProgress) and event.done is not None):
            stream = (type(event), event.stage)
            if self._is_due(stream, event.time):
                self._put(stream, event)
            else:
                self._held[stream] = _telling(self._held.get(stream), event)
            return
        stage = getattr(event, "stage", None)
        for stream in [stream for stream in self._held if stage in {None, stream[1]}]:
            self._put(stream, self._held.pop(stream))
        self._write(encode(event))

    def _is_due(self, stream: _Stream, time: float) -> bool:
        return time - self._times.get(stream, -math.inf) >= SPACING

    def _put(self, stream: _Stream, event: StageProgress | MemorySampled) -> None:
        self._times[stream] = event.time
        self._write(encode(event))


def _telling(
    before: StageProgress | MemorySampled | None, event: StageProgress | MemorySampled
) -> StageProgress | MemorySampled:
    """Which of two events says more: the later step, the larger sample."""
    if isinstance(before, MemorySampled) and isinstance(event, MemorySampled) and before.memory > event.memory:
        return before
    return event
