"""Where the keys and array items of a TOML document stand: path -> line.

``tomllib`` gives values without positions. This scanner reads a document *that tomllib has accepted* (TOML 1.0) and
notes positions only; it decides nothing about values or validity.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axletree.recipe.faults import Path

_SPACE = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
# Long strings first; one closes at the first three quotes, and up to two more then still belong to its content.
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)


def source_lines(text: str) -> list[str]:
    """Lines as TOML counts them: only a line feed (with or without a carriage return) ends one."""
    return text.replace("\r\n", "\n").split("\n")


def locate(text: str) -> dict[Path, int]:
    """Map the path of every table, key and array item to its line, counted from 1.

    A table's line is that of its header; where it has none (``a.b = 1``), that of the first key that implies it.
    ``text`` must be valid TOML.
    """
    return _Scanner(text.replace("\r\n", "\n")).document()


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a path; of the innermost table around it where the path itself is not written down."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


class _Scanner:
    """One pass over a document: a position, and what was found up to it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, int] = {}
        self.lengths: dict[Path, int] = {}  # arrays of tables: how many elements were opened so far
        self.breaks = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> dict[Path, int]:
        table: Path = ()
        self.skip(_SPACE)
        while self.at < len(self.text):
            if self.text.startswith("[", self.at):
                table = self.header()
            else:
                self.pair(table)
            self.skip(_SPACE)
        return self.found

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Move behind what matches here, and return it."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def take(self, mark: str) -> bool:
        """Move behind a mark if it stands here."""
        found = self.text.startswith(mark, self.at)
        self.at += len(mark) if found else 0
        return found

    def note(self, path: Path, start: int) -> None:
        """Keep the first line of a path."""
        self.found.setdefault(path, bisect_left(self.breaks, start) + 1)

    def header(self) -> Path:
        """``[a.b]`` or ``[[a.b]]``: the path of the table that it opens."""
        start = self.at
        many = self.take("[[") or not self.take("[")
        parts = self.key()
        self.take("]]" if many else "]")
        path: Path = ()
        for number, part in enumerate(parts, 1):
            path = (*path, part)
            last = number == len(parts)
            if last and not many:
                self.found.pop(path, None)  # so far only implied by a table inside it
            self.note(path, start)
            if last and many:
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
                self.note(path, start)
        return path

    def key(self) -> list[str]:
        """A dotted key: its parts, unquoted."""
        parts = []
        while True:
            self.skip(_BLANK)
            if self.text.startswith(("'", '"'), self.at):
                parts.append(tomllib.loads(f"key = {self.skip(_STRING)}")["key"])
            else:
                parts.append(self.skip(_BARE_KEY))
            self.skip(_BLANK)
            if not self.take("."):
                return parts

    def pair(self, table: Path) -> None:
        """``key = value`` inside a table."""
        start = self.at
        path = table
        for part in self.key():
            path = (*path, part)
            self.note(path, start)
        if not self.take("="):
            raise ValueError(f"no '=' at offset {self.at}: not valid TOML")  # never endless on what it cannot read
        self.skip(_BLANK)
        self.value(path)

    def value(self, path: Path) -> None:
        """A value: only arrays and inline tables have something inside."""
        if self.take("["):
            self.items(path)
        elif self.take("{"):
            self.inline(path)
        elif not self.skip(_STRING):
            self.skip(_SCALAR)

    def items(self, path: Path) -> None:
        """The items of an array, behind its bracket."""
        number = 0
        self.skip(_SPACE)
        while self.at < len(self.text) and not self.take("]"):
            item = (*path, number)
            self.note(item, self.at)
            self.value(item)
            self.skip(_SPACE)
            self.take(",")
            self.skip(_SPACE)
            number += 1

    def inline(self, path: Path) -> None:
        """The pairs of an inline table, behind its brace."""
        self.skip(_SPACE)
        while self.at < len(self.text) and not self.take("}"):
            self.pair(path)
            self.skip(_SPACE)
            self.take(",")
            self.skip(_SPACE)
