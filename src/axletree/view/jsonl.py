"""Events as lines of JSON, one event a line: what ``build --json`` writes and other programs read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from axletree.core.events import Event

_ENCODER = msgspec.json.Encoder()


def encode(event: Event) -> str:
    """One line without its newline; the ``event`` field names the kind."""
    return _ENCODER.encode(event).decode()


class JsonView:
    """Writes each event as a line; see :class:`axletree.view.choose.EventView`."""

    def __init__(self, write: Callable[[str], object]) -> None:
        """``write`` takes one line without its newline and should not buffer it for long: readers wait for it."""
        self._write = write

    def __enter__(self) -> Self:
        """Nothing to start."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to end: the report comes behind the last event, and a stream that stops without it was cut."""

    def handle(self, event: Event, now: float) -> None:
        """Write the event."""
        del now
        self._write(encode(event))
