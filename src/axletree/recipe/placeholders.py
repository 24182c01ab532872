"""Placeholders: ``{torch}`` in a recipe's texts, filled with the value that the axis has at a variant.

====================  ==========================================
``{axis}``            the value, ``2.13.0``
``{axis.major}``      first number of a version, ``2``
``{axis.minor}``      first two numbers of a version, ``2.13``
``{axis.nodot}``      the value without dots, ``311``
``{axis.property}``   what the recipe or its data say of the value
``{name}``            name of the recipe
``{version}``         version of the recipe; has the same parts
``{{`` and ``}}``     a brace
====================  ==========================================

Shell text keeps its meaning: ``$NAME`` and ``${NAME}`` are copied as they stand. Everything else in braces is an error,
so that a misspelt axis cannot end up in a package's metadata.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import Problem, RecipeError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ALWAYS = ("name", "version")
"""What every text may read; no axes."""
PARTS = ("major", "minor", "nodot")

_TOKEN = re.compile(r"(?P<text>[^{}$]+|\$(?!\{))|(?P<brace>\{\{|\}\})|(?P<shell>\$\{)|(?P<open>\{)|(?P<close>\})")
_PLACEHOLDER = re.compile(r"([a-z][a-z0-9_]*)(?:\.([a-z][a-z0-9-]*))?")
_VERSION = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?![0-9])")
_NO_PROPERTIES: Mapping[str, Mapping[str, str]] = {}


class Placeholder(msgspec.Struct, frozen=True):
    """A placeholder as written."""

    name: str
    """Axis, or one of :data:`ALWAYS`."""
    part: str = ""
    """One of :data:`PARTS` or the name of a property; empty for the whole value."""

    @property
    def asks_property(self) -> bool:
        """Whether it reads a property, not the value itself."""
        return self.part not in ("", *PARTS)

    def __str__(self) -> str:
        """As it stands in the text."""
        return "{" + self.name + (f".{self.part}" if self.part else "") + "}"


class Template(msgspec.Struct, frozen=True):
    """A text cut into plain pieces and placeholders."""

    pieces: tuple[str | Placeholder, ...]
    faults: tuple[str, ...] = ()
    """What is no valid placeholder, one sentence each."""

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """All placeholders, in order."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Placeholder))


@lru_cache(maxsize=4096)
def scan(text: str) -> Template:
    """Cut a text into pieces; never fails, but says what is wrong."""
    pieces: list[str | Placeholder] = []
    faults: list[str] = []
    at = 0
    while match := _TOKEN.match(text, at):
        at = match.end()
        if match["text"] is not None:
            pieces.append(match["text"])
        elif match["brace"] is not None:
            pieces.append(match["brace"][0])
        elif match["shell"] is not None:
            end = _shell_end(text, at)
            if end is None:
                faults.append("'${' is not closed")
                break
            pieces.append(text[match.start() : end])
            at = end
        elif match["close"] is not None:
            faults.append("single '}': write '}}' for a brace")
        else:
            end = text.find("}", at)
            if end < 0:
                faults.append("'{' is not closed: write '{{' for a brace")
                break
            piece = _placeholder(text[at:end], faults)
            pieces.extend([piece] if piece else [])
            at = end + 1
    return Template(tuple(pieces), tuple(faults))


def _shell_end(text: str, at: int) -> int | None:
    """Offset behind the brace that closes a shell parameter; parameters may nest: ``${A:-${B}}``."""
    depth = 1
    for offset in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[offset], 0)
        if depth == 0:
            return offset + 1
    return None


def _placeholder(inner: str, faults: list[str]) -> Placeholder | None:
    match = _PLACEHOLDER.fullmatch(inner)
    if match is None:
        faults.append(f"{{{inner}}} is not a placeholder: write '{{{{' and '}}}}' for braces")
        return None
    return Placeholder(match[1], match[2] or "")


def fill(
    template: Template, values: Mapping[str, str], properties: Mapping[str, Mapping[str, str]] = _NO_PROPERTIES
) -> str:
    """Put values into a template that has no faults and reads nothing but ``values``.

    Args:
        template: the text, cut into pieces.
        values: value of every axis, and of ``name`` and ``version``.
        properties: axis -> the properties of its value.

    Raises:
        RecipeError: a value is no version but a part of one is asked for, or it lacks a property.
    """
    problems = []
    text = []
    for piece in template.pieces:
        if isinstance(piece, str):
            text.append(piece)
            continue
        asked, known = values[piece.name], properties.get(piece.name, {})
        value = known.get(piece.part) if piece.asks_property else _part(asked, piece.part)
        if value is None and piece.asks_property:
            problems.append(f"{piece} uses property {piece.part!r}, which {piece.name} {asked!r} does not have")
        elif value is None:
            problems.append(f"{piece} requires {piece.name} to be a version, but it is {asked!r}")
        text.append(value or "")
    if problems:
        raise RecipeError(*problems)
    return "".join(text)


def _part(value: str, part: str) -> str | None:
    if part == "":
        return value
    if part == "nodot":
        return value.replace(".", "")
    match = _VERSION.match(value)
    if match is None:
        return None
    if part == "major":
        return match[1]
    return f"{match[1]}.{match[2]}" if match[2] is not None else None


def render(
    text: str,
    values: Mapping[str, str],
    *,
    allowed: Collection[str],
    properties: Mapping[str, Mapping[str, str]] = _NO_PROPERTIES,
) -> str:
    """Fill the placeholders of a text.

    Args:
        text: the text as the recipe has it.
        values: value of every axis, and of ``name`` and ``version``.
        allowed: axes that the owner of the text declares; reading another is an error that names it.
        properties: axis -> the properties of its value.

    Raises:
        RecipeError: all that is wrong with the text.
    """
    template = scan(text)
    problems = list(template.faults)
    for placeholder in dict.fromkeys(template.placeholders):
        if placeholder.name not in (*ALWAYS, *allowed):
            problems.append(f"{placeholder} uses axis {placeholder.name!r}, which is not declared here")
        elif placeholder.name not in values:
            problems.append(f"{placeholder} uses {placeholder.name!r}, which has no value")
    if problems:
        raise RecipeError(*(Problem(message=problem, excerpt=text) for problem in problems))
    return fill(template, values, properties)
