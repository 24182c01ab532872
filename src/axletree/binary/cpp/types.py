"""What reading a mangled name needs beside the grammar: characters, references back, types as text. All bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


MAX_TEXT = 16384
_MAX_DEPTH = 80
_MAX_KNOWN = 1000
_MAX_PARTS = 1000


class UnknownNameError(Exception):
    """The name is no mangled one, or uses what is not read."""


class Type(NamedTuple):
    """A type as what stands left and right of a declared name: ``int (*`` and ``)(char)``."""

    left: str
    right: str = ""
    kind: str = ""
    """``function`` and ``array`` (a pointer to one needs parentheses), ``&``, ``&&``; or ``pack``: ``parts`` then holds
    what it expands to."""
    parts: tuple[Type, ...] = ()

    @property
    def text(self) -> str:
        """As where no name is declared."""
        if self.kind == "pack":
            return ", ".join(part.text for part in self.parts if part.text)
        return self.left + self.right


class Name(NamedTuple):
    """A name and what the function type after it must know of it."""

    text: str
    templated: bool = False
    """Whether it ends with template arguments: a return type is then encoded."""
    plain: bool = False
    """Whether it is a constructor, destructor or conversion, which have no return type even then."""
    suffix: str = ""
    """Qualifiers of a member function, with the space before them."""


class Cursor:
    """A place in a mangled name, and the parts before it that later ones may refer to."""

    def __init__(self, text: str, *, at: int) -> None:
        """Begin at a place."""
        self.text = text
        self.at = at
        self.known: list[Type] = []
        self.depth = 0

    def enter(self) -> None:
        """One level deeper."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise UnknownNameError

    def peek(self, count: int = 1) -> str:
        """The next characters; fewer, or none, at the end."""
        return self.text[self.at : self.at + count]

    def accept(self, word: str) -> bool:
        """Go past a word if it is next."""
        found = self.text.startswith(word, self.at)
        self.at += len(word) if found else 0
        return found

    def expect(self, word: str) -> None:
        """Go past a word that must be next."""
        if not self.accept(word):
            raise UnknownNameError

    def number(self) -> int:
        """A decimal number."""
        start = self.at
        while self.peek().isdecimal():
            self.at += 1
        if not 0 < self.at - start < 8:
            raise UnknownNameError
        return int(self.text[start : self.at])

    def sequence(self, base: int = 36) -> int:
        """``_`` is 0, ``0_`` is 1, and so on."""
        end = self.text.find("_", self.at, self.at + 8)
        digits = self.text[self.at : end]
        if end < 0 or not (digits.isalnum() or not digits):
            raise UnknownNameError
        self.at = end + 1
        try:
            return int(digits, base) + 1 if digits else 0
        except ValueError as error:
            raise UnknownNameError from error

    def discriminator(self) -> None:
        """Go past what tells local entities of one name apart; it is not shown."""
        if self.accept("__"):
            self.number()
            self.expect("_")
        elif self.peek() == "_" and self.text[self.at + 1 : self.at + 2].isdecimal():
            self.at += 2

    def source_name(self) -> str:
        """A name as in the source, after its length."""
        size = self.number()
        text = self.peek(size)
        if len(text) != size:
            raise UnknownNameError
        self.at += size
        return "(anonymous namespace)" if text.startswith("_GLOBAL_") and text[8:10] in {"_N", ".N"} else text

    def remember(self, kept: Type) -> Type:
        """A part that may be referred to."""
        if len(self.known) >= _MAX_KNOWN:
            raise UnknownNameError
        limit(kept)
        self.known.append(kept)
        return kept


def limit(*types: Type) -> None:
    """Hold texts within what any real name needs."""
    if len(types) > _MAX_PARTS or sum(_length(each) for each in types) > MAX_TEXT:
        raise UnknownNameError


def _length(type_: Type) -> int:
    return len(type_.left) + len(type_.right) + sum(len(part.left) + len(part.right) for part in type_.parts)


def map_pack(type_: Type, change: Callable[[Type], Type]) -> Type:
    """Change a type, or each of a pack."""
    if type_.kind == "pack":
        return type_._replace(parts=tuple(map(change, type_.parts)))
    return change(type_)


def qualify(inner: Type, words: str) -> Type:
    """A type with qualifiers; on a reference they mean nothing."""
    if inner.kind in {"&", "&&"}:
        return inner
    if inner.kind == "function":
        return inner._replace(right=inner.right + words)
    return inner if inner.left.endswith(words) else inner._replace(left=inner.left + words)


def point(inner: Type, mark: str) -> Type:
    """A pointer or reference to a type; references to references collapse."""
    kind = mark if mark != "*" else ""
    if inner.kind in {"&", "&&"} and mark != "*":
        return inner if inner.kind == "&" or mark == "&&" else Type(inner.left[:-1], inner.right, "&")
    if inner.kind in {"function", "array"}:
        gap = " " if inner.kind == "array" else ""
        return Type(f"{inner.left}{gap}({mark}", f"){inner.right}", kind)
    return Type(inner.left + mark, inner.right, kind)


def apply_arguments(text: str, arguments: str) -> str:
    """A template with its arguments: no ``<<`` comes from ``operator<``."""
    return f"{text} {arguments}" if text.endswith("<") else text + arguments


def declare(result: Type, text: str) -> str:
    """A function after its return type."""
    gap = "" if result.right else " "
    return f"{result.left}{gap}{text}{result.right}"


def last_name(text: str) -> str:
    """What a constructor of a class is called: its name without scope and template arguments."""
    depth, end = 0, len(text)
    while text[:end].endswith(">") or depth:
        end -= 1
        depth += {">": 1, "<": -1}.get(text[end], 0)
        if not depth:
            break
    return text[:end].rpartition("::")[2]
