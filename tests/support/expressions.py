"""Lines that an expression finds hard: made of the expression itself."""

from __future__ import annotations

import re
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_OFTEN = 40
_CLASSES = {op.CATEGORY_SPACE: " ", op.CATEGORY_NOT_SPACE: "a", op.CATEGORY_WORD: "a", op.CATEGORY_DIGIT: "1"}


def lines_for(pattern: str) -> Iterator[str]:
    """A text that nearly matches, one many of these, one whose repeated parts are long."""
    tree = list(parser.parse(pattern, re.MULTILINE))
    once, often = "".join(_made(tree, 1)), "".join(_made(tree, _OFTEN))
    yield once[:-1]
    yield once * _OFTEN
    yield once[:-1] * _OFTEN
    yield often[:-1] + "\x01"
    yield often.replace(" ", "  " * 50)


def _made(items: list[Any], times: int) -> Iterator[str]:
    for code, argument in items:
        if code is op.LITERAL:
            yield chr(argument)
        elif code in (op.ANY, op.NOT_LITERAL):
            yield "a" if code is op.ANY or argument != ord("a") else "b"
        elif code is op.IN:
            yield _member(argument)
        elif code is op.SUBPATTERN:
            yield from _made(list(argument[3]), times)
        elif code is op.BRANCH:
            yield from _made(list(argument[1][0]), times)
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, body = argument
            most = times if high is op.MAXREPEAT else min(high, times)
            yield "".join(_made(list(body), 1)) * max(low, most)


def _member(members: list[Any]) -> str:
    negated = members[0][0] is op.NEGATE
    for code, value in members:
        if code is op.LITERAL and not negated:
            return chr(value)
        if code is op.RANGE and not negated:
            return chr(value[0])
        if code is op.CATEGORY and not negated:
            return _CLASSES.get(value, "-")
    taken = {chr(value) for code, value in members if code is op.LITERAL}
    return next(char for char in "a1-=" if char not in taken)
