"""What stands around a match: each expression is looked for once in a block, however many matches ask for it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from axletree.check.diagnosis.log import joined

if TYPE_CHECKING:
    from axletree.check.diagnosis.linear import Expression
    from axletree.check.diagnosis.log import LogBlock


class Around:
    """A block, and which expressions are on which of its lines."""

    def __init__(self, block: LogBlock) -> None:
        """Take a block; nothing is looked for yet."""
        self.block = block
        self._text: bytes | None = None
        self._known: dict[Expression, list[tuple[int, int]]] = {}

    def holds(self, wanted: Expression, low: int, high: int) -> bool:
        """Whether an expression matches within the lines from ``low`` to ``high``."""
        places = self._known.get(wanted)
        if places is None:
            if self._text is None:
                self._text = joined(self.block.lines)
            places = self._known[wanted] = [(found.first, found.last) for found in wanted.lines(self._text)]
        at = bisect_left(places, (low,))
        return at < len(places) and places[at][1] <= high
