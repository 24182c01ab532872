"""Many regular expressions over the blocks of a log: an expression is only tried where its fixed text is."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from axletree.check.diagnosis.linear import Expression, expression
from axletree.check.diagnosis.literals import ignores_case, required_texts, spans_lines
from axletree.check.diagnosis.log import REACH, joined
from axletree.check.diagnosis.words import Vocabulary, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.check.diagnosis.log import LogBlock

K = TypeVar("K")

_PIECE = 1 << 15
"""Bytes of a piece, about: the smaller, the fewer words it holds."""


_SPAN = 8
"""Times the reach of a match that are looked at in one go."""


class LogMatch(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """A match."""

    owner: K
    at: int
    """Which of the block's lines it begins on."""
    end: int
    """Which of the block's lines it ends on."""
    groups: dict[str, str]


class _Text(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed text of an expression."""

    text: bytes
    words: frozenset[bytes]
    """Its words, in lower case."""


class _Watch(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    owner: K
    regex: Expression
    reach: int
    """Lines before and after its fixed text over which a match may reach."""
    choices: tuple[tuple[_Text, ...], ...]
    folded: bool


class Scanner(Generic[K]):
    """Expressions, made ready to be looked for together."""

    def __init__(self, patterns: Iterable[tuple[K, str]]) -> None:
        """Take expressions, each with whom it belongs to.

        Raises:
            ValueError: one has no fixed text, or can't be matched in bounded time.
        """
        self._watches: list[_Watch[K]] = []
        for owner, pattern in patterns:
            folded = ignores_case(pattern)
            choices = required_texts(pattern)
            if not choices:
                raise ValueError(pattern)
            self._watches.append(
                _Watch(
                    owner=owner,
                    regex=expression(pattern),
                    reach=REACH if spans_lines(pattern) else 0,
                    choices=tuple(tuple(_text(text, folded=folded) for text in choice) for choice in choices),
                    folded=folded,
                )
            )
        self._vocabulary = Vocabulary(
            word for watch in self._watches for choice in watch.choices for text in choice for word in text.words
        )

    def scan(self, block: LogBlock) -> Iterator[LogMatch[K]]:
        """All matches that begin on a line of the block's own; of one expression at most one a line."""
        pieces = [(start, text, self._vocabulary.parts_in(text)) for start, text in _cut(block.text)]
        present = frozenset(part for *_, parts in pieces for part in parts)
        plain = _Lines(pieces)
        folded = _Lines([(start, text.lower(), parts) for start, text, parts in pieces])
        for watch in self._watches:
            if not all(any(text.words <= present for text in choice) for choice in watch.choices):
                continue
            places = _places(watch, folded if watch.folded else plain)
            if places:
                yield from _matches(watch, block, places)


def _text(text: str, *, folded: bool) -> _Text:
    return _Text(text=(text.lower() if folded else text).encode(), words=words_of(text.lower().encode()))


def _cut(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Pieces that end at the end of a line, each with the number of its first line."""
    line = at = 0
    while at < len(text):
        end = text.find(b"\n", at + _PIECE) + 1 or len(text)
        yield line, text[at:end]
        line += text.count(b"\n", at, end)
        at = end


class _Lines:
    """Which lines of a text hold which words."""

    def __init__(self, pieces: Sequence[tuple[int, bytes, frozenset[bytes]]]) -> None:
        self._pieces = pieces
        self._known: dict[bytes, list[int]] = {}

    def holding(self, choice: tuple[_Text, ...]) -> list[int]:
        """Numbers of the lines, from 0, that hold one of some texts."""
        found = [line for text in choice for line in self._of(text)]
        return sorted(set(found)) if len(choice) > 1 else found

    def _of(self, text: _Text) -> list[int]:
        known = self._known.get(text.text)
        if known is None:
            known = self._known[text.text] = [
                start + line
                for start, piece, parts in self._pieces
                if text.words <= parts
                for line in _lines_with(text.text, piece)
            ]
        return known


def _places(watch: _Watch[K], lines: _Lines) -> list[int]:
    """Lines on which, or near which, there is all the fixed text of an expression."""
    places = lines.holding(watch.choices[0])
    for choice in watch.choices[1:]:
        if not places:
            break
        others = lines.holding(choice)
        places = [place for place in places if _is_near(place, others, watch.reach)]
    return places


def _is_near(place: int, others: Sequence[int], reach: int) -> bool:
    at = bisect_left(others, place - reach)
    return at < len(others) and others[at] <= place + reach


def _lines_with(word: bytes, text: bytes) -> list[int]:
    found: list[int] = []
    line = counted = 0
    at = text.find(word)
    while at >= 0:
        line += text.count(b"\n", counted, at)
        counted = at
        found.append(line)
        end = text.find(b"\n", at)
        at = text.find(word, end) if end >= 0 else -1
    return found


def _matches(watch: _Watch[K], block: LogBlock, places: Sequence[int]) -> Iterator[LogMatch[K]]:
    begin, begun, ended = block.own.start, -1, -1
    for start, end in _merged([begin + place for place in places], watch.reach, len(block.lines)):
        for low, stop, high in _pieces(start, end, watch.reach):
            for found in watch.regex.lines(joined(block.lines[low:high])):
                first = low + found.first
                if first >= stop:
                    break
                if first in block.own and first > begun and first >= ended:
                    begun, ended = first, low + found.last
                    yield LogMatch(owner=watch.owner, at=begun, end=ended, groups=found.groups)


def _pieces(start: int, end: int, reach: int) -> Iterator[tuple[int, int, int]]:
    """Ranges of lines to look at: first, that from which on the next one has the matches, end.

    A log that is full of what an expression begins with must not make each match look through all that follows.
    """
    most = _SPAN * reach
    while most and end - start > most:
        yield start, start + most - 2 * reach, start + most
        start += most - 2 * reach
    yield start, end, end


def _merged(places: Sequence[int], reach: int, length: int) -> Iterator[tuple[int, int]]:
    """Ranges of lines around places, those that touch put together."""
    low = high = -1
    for place in places:
        if low >= 0 and place - reach <= high:
            high = min(length, place + reach + 1)
            continue
        if low >= 0:
            yield low, high
        low, high = max(0, place - reach), min(length, place + reach + 1)
    if low >= 0:
        yield low, high
