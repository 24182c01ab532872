"""CMake's language as far as its files are a list of commands (cmake-language(7)), with the place of each argument.

Nothing is evaluated. What is not to be changed stays as it is, byte for byte: an edit replaces the text between two
places of the file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SPACE = re.compile(r"(?:[ \t\r\n]|#(?!\[=*\[)[^\n]*)+")
_BRACKET = re.compile(r"\[(=*)\[")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"@[A-Za-z_][A-Za-z0-9_]*@")
"""In a template of configure_file, which puts any commands there."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN = re.compile(r'(?:\$\([^)\s]*\)|[^\s()#"\\]|\\[^\n]|"(?:[^"\\]|\\.)*")+')
"""An unquoted argument, with the legacy forms ``-Da="b c"`` and ``$(MAKEVAR)`` inside."""


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of a command."""

    kind: Literal["quoted", "plain", "bracket", "mark"]
    """``mark``: a parenthesis inside the arguments, which CMake passes on as an argument."""
    text: str
    """What stands between its quotes or brackets, escapes as written."""
    start: int
    """Where that text begins in the file."""

    @property
    def end(self) -> int:
        """The first place after the text."""
        return self.start + len(self.text)


class CMakeCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command invocation."""

    name: str
    """In small letters: CMake takes any."""
    arguments: tuple[Argument, ...]
    start: int
    end: int
    """The first place after its closing parenthesis."""

    def words(self) -> tuple[str, ...]:
        """The texts of its arguments."""
        return tuple(argument.text for argument in self.arguments)


class Replacement(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A stretch of a file, and what stands there instead."""

    start: int
    end: int
    text: str


def parse_cmake(text: str, *, file: str) -> tuple[CMakeCommand, ...]:
    """The commands of a file, in its order; also those inside ``if``, ``function`` and the like.

    Raises:
        IntegrityError: it is no CMake file.
    """
    return tuple(_Scanner(text, file).commands())


def replaced(text: str, replacements: Iterable[Replacement]) -> str:
    """A text with some stretches replaced. They must not overlap."""
    pieces: list[str] = []
    at = 0
    for each in sorted(replacements):
        if each.start < at:
            raise IntegrityError(f"two edits change the same place: {each.text!r}")
        pieces += [text[at : each.start], each.text]
        at = each.end
    return "".join([*pieces, text[at:]])


def split_list(text: str) -> tuple[str, ...]:
    r"""The items of a list as it is written in an argument; semicolons of generator expressions divide nothing.

    ``a;\$<$<CONFIG:Release>:b;c>`` has two items. Joined with ``;`` they give the text again.
    """
    items: list[str] = []
    start = depth = at = 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 2] != "$":
            at += 2
            continue
        if text.startswith("$<", at):
            depth += 1
        elif text[at] == ">" and depth:
            depth -= 1
        elif text[at] == ";" and not depth:
            items.append(text[start:at])
            start = at + 1
        at += 1
    return (*items, text[start:])


class _Scanner:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.at = 0

    def commands(self) -> Iterator[CMakeCommand]:
        self.at = len("\ufeff") if self.text.startswith("\ufeff") else 0
        self.skip()
        while self.at < len(self.text):
            start = self.at
            template = _PLACEHOLDER.match(self.text, self.at)
            if template is not None:
                self.at = template.end()
                self.skip()
                continue
            name = _NAME.match(self.text, self.at)
            if name is None:
                raise self.fault("expected a command here")
            self.at = name.end()
            self.skip()
            if not self.text.startswith("(", self.at):
                raise self.fault(f"missing parenthesis after {name[0][:40]}")
            arguments = tuple(self.arguments(name[0]))
            yield CMakeCommand(name=name[0].lower(), arguments=arguments, start=start, end=self.at)
            self.skip()

    def arguments(self, name: str) -> Iterator[Argument]:
        depth = 0
        while True:
            self.skip()
            if self.at >= len(self.text):
                raise self.fault(f"{name[:40]} has no closing parenthesis")
            mark = self.text[self.at]
            if mark in "()":
                depth += 1 if mark == "(" else -1
                self.at += 1
                if depth == 0:
                    return
                if depth > 1 or mark == ")":
                    yield Argument(kind="mark", text=mark, start=self.at - 1)
                continue
            yield self.argument()

    def argument(self) -> Argument:
        if bracket := _BRACKET.match(self.text, self.at):
            end = self.text.find(f"]{bracket[1]}]", bracket.end())
            if end < 0:
                raise self.fault("a bracket argument is not closed")
            self.at = end + len(bracket[1]) + 2
            return Argument(kind="bracket", text=self.text[bracket.end() : end], start=bracket.end())
        if quoted := _QUOTED.match(self.text, self.at):
            self.at = quoted.end()
            return Argument(kind="quoted", text=quoted[1], start=quoted.start(1))
        plain = _PLAIN.match(self.text, self.at)
        if plain is None:
            raise self.fault("an argument is not closed")
        self.at = plain.end()
        return Argument(kind="plain", text=plain[0], start=plain.start())

    def skip(self) -> None:
        """Move behind white space and comments."""
        while True:
            if space := _SPACE.match(self.text, self.at):
                self.at = space.end()
            elif self.text.startswith("#[", self.at) and (bracket := _BRACKET.match(self.text, self.at + 1)):
                end = self.text.find(f"]{bracket[1]}]", bracket.end())
                if end < 0:
                    raise self.fault("a bracket comment is not closed")
                self.at = end + len(bracket[1]) + 2
            else:
                return

    def fault(self, message: str) -> IntegrityError:
        line = self.text.count("\n", 0, self.at) + 1
        return IntegrityError(
            Problem(file=self.file, line=line, message=f"the file is not a valid CMake file: {message}")
        )
