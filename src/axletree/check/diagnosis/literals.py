"""Fixed text that every match of a regular expression contains.

A log of 100 MB is searched for hundreds of expressions. Plain substrings are found a hundred times faster than
expressions are tried, so an expression is only tried where one of its substrings is.
"""

from __future__ import annotations

import re

MIN_LENGTH = 3
"""Shorter text is too frequent to be worth a search."""

_ESCAPED = {"t": "\t", "f": "\f", "v": "\v", "a": "\a"}
_NO_TEXT = frozenset("dDwWsSAZBrnxuUN0123456789")
_LOOK = ("?=", "?!", "?<=", "?<!", "?P=", "?#")
_REPEAT = re.compile(r"\{(\d*)(?:,(\d*))?\}|[*+?]")

Choice = tuple[str, ...]
"""Texts one of which a match contains."""


def required_texts(pattern: str) -> tuple[Choice, ...]:
    """What every match contains: one text of each choice. The choice whose shortest text is longest comes first.

    Args:
        pattern: An expression that :func:`axletree.check.diagnosis.linear.expression` takes.

    Returns:
        Choices whose texts have three characters or more; none where nothing of that length is certain.
    """
    choices = {tuple(dict.fromkeys(choice)) for choice in _Reader(pattern).alternatives()}
    return tuple(sorted((choice for choice in choices if _shortest(choice) >= MIN_LENGTH), key=_order, reverse=True))


def ignores_case(pattern: str) -> bool:
    """Whether any part of an expression ignores case."""
    return re.search(r"\(\?[a-zA-Z]*i", pattern) is not None


def spans_lines(pattern: str) -> bool:
    """Whether a match may reach over the end of a line."""
    return re.search(r"\\[sWDSnrxuU]|\[\^|\(\?[a-zA-Z]*s", pattern) is not None


class _Reader:
    """A reader of one expression: no more of the grammar than what decides which text is certain."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def alternatives(self) -> list[Choice]:
        """Branches up to a closing parenthesis or the end."""
        branches = [self._branch()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._branch())
        if len(branches) == 1:
            return branches[0]
        best = [max(branch, key=_order, default=()) for branch in branches]
        return [tuple(text for choice in best for text in choice)] if all(best) else []

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _branch(self) -> list[Choice]:
        """A sequence: what each of its parts makes certain; characters that follow each other are one text."""
        certain: list[Choice] = []
        run = ""
        while (char := self._peek()) and char not in "|)":
            part, literal = self._atom()
            least = self._repeat()
            if literal is not None and least is None:
                run += literal
                continue
            if literal and least:
                run += literal
            certain += [(run,)] if run else []
            certain += part if least is None or least else []
            run = ""
        return [*certain, (run,)] if run else certain

    def _repeat(self) -> int | None:
        """How often the last part occurs at least; ``None`` where nothing is said, so once."""
        found = _REPEAT.match(self._text, self._at)
        if found is None or (found[0][0] == "{" and found[1] == "" and found[2] is None):
            return None
        self._at = found.end()
        if self._peek() in ("?", "+"):
            self._at += 1
        return {"*": 0, "+": 1, "?": 0}.get(found[0][0], int(found[1] or 0))

    def _atom(self) -> tuple[list[Choice], str | None]:
        """One part: what it makes certain, or its text where it is nothing but text."""
        char = self._peek()
        self._at += 1
        if char == "(":
            return self._group(), None
        if char == "[":
            self._class()
            return [], None
        if char == "\\":
            return [], self._escape()
        return [], (None if char in ".^$" else char)

    def _escape(self) -> str | None:
        char = self._peek()
        self._at += 1
        if char == "b":
            return ""  # takes no room: the text goes on
        if char in _NO_TEXT:
            self._at += {"x": 2, "u": 4, "U": 8}.get(char, 0)
            return None
        return _ESCAPED.get(char, char)

    def _class(self) -> None:
        self._at += self._peek() == "^"
        self._at += self._peek() == "]"  # a bracket that comes first is a member
        while self._peek() != "]":
            self._at += 2 if self._peek() == "\\" else 1
        self._at += 1

    def _group(self) -> list[Choice]:
        look = next((mark for mark in _LOOK if self._text.startswith(mark, self._at)), None)
        if self._peek() == "?":
            if self._text.startswith("?P<", self._at):
                self._at = self._text.index(">", self._at) + 1
            elif look is None:
                colon = re.compile(r"\?[a-zA-Z-]*([:)])").match(self._text, self._at)
                if colon is None:  # (?>...) and conditions
                    look = "?>"
                    self._at += 1
                else:
                    self._at = colon.end()
                    if colon[1] == ")":
                        return []
            else:
                self._at += len(look)
        inner = self.alternatives()
        self._at += 1
        return [] if look else inner


def _shortest(choice: Choice) -> int:
    return min(map(len, choice), default=0)


def _order(choice: Choice) -> tuple[int, Choice]:
    return _shortest(choice), choice
