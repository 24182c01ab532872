"""Which view a run gets: drawn on a terminal, plain lines, or JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from axletree.core.events import Event

ViewKind = Literal["live", "plain", "json"]


class EventView:
    """What shows a run while it goes: a context manager that is given every event. This one shows nothing."""

    def __enter__(self) -> Self:
        """Start to show."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was."""

    def handle(self, event: Event, now: float) -> None:
        """Take an event in; ``now`` is in seconds since the epoch."""


def choose_view(environ: Mapping[str, str], *, is_terminal: bool, json: bool, color: bool | None = None) -> ViewKind:
    """The view for an output stream.

    Plain lines for whatever is no terminal, for a terminal that can't move its cursor (``TERM=dumb`` or unset), and
    for whoever asks for no colour.
    """
    if json:
        return "json"
    if not is_terminal or color is False or environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        return "plain"
    return "live"
