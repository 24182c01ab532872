r"""Regular expressions for the text of strangers: the work grows with the text, whatever the text is.

Python's engine goes back and tries again, so that some expressions take years for a line of a hundred characters. RE2
takes at most as many steps as the text has bytes times the size of the expression. Nothing that meets a log is matched
by anything else; what RE2 does not take is refused where it is read.

The grammar is what Python and RE2 share. RE2 has no look-arounds: they are cut out, and asked where they stood of each
match. So a look-around refuses a match, it never makes the engine look for another one at the same place.
``\w`` takes all letters that ASCII lacks, too.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import re2

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SIZE = 5000
"""Instructions of an expression: what a byte of the text may cost."""
TRIES = 16
"""Matches on one line that look-arounds may refuse, before the rest of the line is passed over."""
_MEMORY = 1 << 19
"""Bytes that an expression may take, for what it remembers of texts, too; there are a thousand of them."""
_BEHIND = 64
"""Bytes over which a look-behind may reach."""

_BEYOND = r"\x{80}-\x{10ffff}"
_LOOKS = {"(?=": "ahead", "(?!": "ahead", "(?<=": "behind", "(?<!": "behind"}
_LOOK = re.compile(r"\(\?<?[=!]")
_OPENING = re.compile(r"\(\?(?:P<[A-Za-z_]\w*>|[ims]*(?:-[ims]+)?[:)])|\((?!\?)")
_ESCAPES = re.compile(r"\\(?:[^A-Za-z0-9]|[wWdDsSbBAZntrfva]|x[0-9A-Fa-f]{2})", re.DOTALL)
_OFTEN = re.compile(r"[*+]|\{\d*,\}|\{(?:\d+,)?(?:[2-9]|\d\d+)\}")
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|.", re.DOTALL)
_QUANTIFIER = re.compile(r"[*+?]|\{\d*(?:,\d*)?\}")


class Match(msgspec.Struct, frozen=True):
    """Where an expression is."""

    start: int
    """In bytes of UTF-8, as ``end``."""
    end: int
    groups: dict[str, str]
    """The named groups that took part."""


class Lines(msgspec.Struct, frozen=True):
    """Which lines a match takes up, counted from 0."""

    first: int
    last: int
    groups: dict[str, str]


class _Look(msgspec.Struct, frozen=True, kw_only=True):
    """A look-around that was cut out."""

    group: int
    """The empty group that stands in its place."""
    behind: bool
    wanted: bool
    body: Expression


class Expression:
    """An expression, made ready; :func:`expression` makes it."""

    def __init__(self, pattern: str) -> None:
        """Compile.

        Raises:
            ValueError: it is none, or can't be matched in bounded time; says why.
        """
        text, self._looks = _Reader(pattern).read()
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            self._regex = re2.compile(f"(?m){text}", options)
        except re2.error as error:
            raise ValueError(_reason(error)) from error
        if self._regex.programsize > MAX_SIZE:
            raise ValueError(f"it is too large ({self._regex.programsize} instructions, of at most {MAX_SIZE})")
        self._names: dict[str, int] = self._regex.groupindex

    @property
    def names(self) -> frozenset[str]:
        """Its named groups."""
        return frozenset(self._names)

    def search(self, text: str | bytes, start: int = 0) -> Match | None:
        """The first match.

        Args:
            text: Text, or its UTF-8.
            start: Bytes to leave out; the expression sees them as what comes before.
        """
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        tries, line_end = 0, -1
        while (found := self._regex.search(data, start)) is not None:
            if all(_holds(look, data, found.start(look.group)) for look in self._looks):
                return self._match(data, found)
            if found.start() > line_end:
                tries, line_end = 0, _end_of_line(data, found.start())
            tries += 1
            start = max(found.end(), found.start() + 1)
            start = max(start, line_end + 1) if tries == TRIES else start
            if start > len(data):
                break
        return None

    def match(self, text: str | bytes, start: int = 0) -> Match | None:
        """The match at the beginning of a text, or where ``start`` says."""
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        found = self._regex.match(data, start)
        if found is None or not all(_holds(look, data, found.start(look.group)) for look in self._looks):
            return None
        return self._match(data, found)

    def lines(self, text: bytes) -> Iterator[Lines]:
        """Where it is in a text of several lines: one match after the other, of those on one line the first."""
        start = line = counted = 0
        while start <= len(text) and (found := self.search(text, start)) is not None:
            line += text.count(b"\n", counted, found.start)
            counted = found.start
            more = text[found.start : found.end].rstrip().count(b"\n")
            yield Lines(line, line + more, found.groups)
            start = max(found.end, _end_of_line(text, found.start) + 1)

    def _match(self, data: bytes, found: re2._Match) -> Match:
        spans = ((name, found.span(group)) for name, group in self._names.items())
        groups = {name: data[low:high].decode("utf-8", "replace") for name, (low, high) in spans if low >= 0}
        return Match(found.start(), found.end(), groups)


@cache
def expression(pattern: str) -> Expression:
    """An expression, made ready once.

    Args:
        pattern: In the grammar that Python's ``re`` and RE2 share, with look-arounds outside of what is repeated;
            ``^`` and ``$`` stand for the beginning and end of a line.

    Raises:
        ValueError: it is none, or can't be matched in bounded time; says why.
    """
    return Expression(pattern)


def _end_of_line(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _holds(look: _Look, data: bytes, at: int) -> bool:
    """Whether a look-around lets a match pass; one that took no part does."""
    if at < 0:
        return True
    if look.behind:
        return (look.body.search(data[max(0, at - _BEHIND) : at]) is not None) == look.wanted
    return (look.body.match(data, at) is not None) == look.wanted


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


class _Reader:
    """Python's grammar -> RE2's."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._made: list[str] = []
        self._groups = 0
        self._looks: list[_Look] = []

    def read(self) -> tuple[str, tuple[_Look, ...]]:
        """The expression without look-arounds, and these."""
        opened: list[int] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\\":
                self._escape(r"[\w" + _BEYOND + "]", r"[^\w" + _BEYOND + "]")
            elif char == "[":
                self._class()
            elif char == "(" and _LOOK.match(self._text, self._at):
                self._look()
            elif char == "(":
                self._open(opened)
            else:
                self._take(char)
                if char == ")":
                    self._close(opened)
        return "".join(self._made), tuple(self._looks)

    def _take(self, text: str, made: str | None = None) -> None:
        self._at += len(text)
        self._made.append(text if made is None else made)

    def _escape(self, word: str, other: str | None) -> None:
        found = _ESCAPES.match(self._text, self._at)
        if found is None or (found[0] == r"\W" and other is None):
            raise ValueError(f"{self._text[self._at : self._at + 2]} is not supported")
        self._take(found[0], {r"\w": word, r"\W": other, r"\Z": r"\z"}.get(found[0]))

    def _class(self) -> None:
        for start in ("[^]", "[]", "[^", "["):
            if self._text.startswith(start, self._at):
                self._take(start, start.replace("]", r"\]"))
                break
        while not self._text.startswith("]", self._at):
            if self._at == len(self._text) or self._text.startswith("[:", self._at):
                raise ValueError("a character class is not closed, or contains [:")
            if self._text[self._at] == "\\":
                self._escape(r"\w" + _BEYOND, None)
            else:
                self._take(self._text[self._at])
        self._take("]")

    def _open(self, opened: list[int]) -> None:
        found = _OPENING.match(self._text, self._at)
        if found is None:
            raise ValueError(f"{self._text[self._at : self._at + 3]} is not supported")
        self._groups += found[0] == "(" or found[0].startswith("(?P")
        if not found[0].endswith(")"):
            opened.append(len(self._looks))
        self._take(found[0])

    def _close(self, opened: list[int]) -> None:
        looks = opened.pop() if opened else 0
        if len(self._looks) > looks and _OFTEN.match(self._text, self._at):
            raise ValueError("a repeated group contains a lookaround")

    def _look(self) -> None:
        end = _closing(self._text, self._at)
        start = next(start for start in _LOOKS if self._text.startswith(start, self._at))
        behind = _LOOKS[start] == "behind"
        body = self._text[self._at + len(start) : end]
        if _QUANTIFIER.match(self._text, end + 1):
            raise ValueError("a lookaround is repeated")
        self._groups += 1
        compiled = Expression(rf"(?:{body})\Z" if behind else body)
        self._looks.append(_Look(group=self._groups, behind=behind, wanted=start[-1] == "=", body=compiled))
        self._take(self._text[self._at : end + 1], "()")


def _closing(text: str, at: int) -> int:
    """Where the group that begins at a place ends."""
    depth = 0
    for part in _PARTS.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if depth == 0:
            return part.start()
    raise ValueError("a group is not closed")
