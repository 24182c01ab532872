"""TOML text -> values, and faults -> problems with their lines: what every file that people write has in common."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from axletree.core.errors import Problem, RecipeError
from axletree.recipe.faults import dotted, visible
from axletree.recipe.locate import line_of, locate, source_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.recipe.faults import Fault

_AT_LINE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_AT_END = " (at end of document)"
_CREDENTIALS = re.compile(r"(://)[^/@\s\"']+@")
_EXCERPT = 120
_TOML_HINTS = {
    "Illegal character '\\n'": "a quoted string must end on the same line; use three quotes for several lines",
    "Cannot overwrite a value": "a key can be set only once",
    "Cannot declare": "a table can be defined only once; use [[name]] to add to an array of tables",
}


def decode_toml(text: str, filename: str) -> dict[str, Any]:
    """Values of a TOML text.

    Raises:
        RecipeError: it is no TOML; with the line where reading it stopped.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise RecipeError(
            Problem(message="the tables or arrays in the file are nested too deeply", file=filename)
        ) from None
    except ValueError as error:  # TOMLDecodeError, and Python's limit on the digits of a number
        lines = source_lines(text)
        message = str(error)
        line = None
        if match := _AT_LINE.search(message):
            line = int(match[1])
        elif message.endswith(_AT_END):
            line = max((number for number, content in enumerate(lines, 1) if content.strip()), default=1)
        message = _AT_LINE.sub("", message).removesuffix(_AT_END)
        excerpt = excerpt_of(lines, line)
        hint = next((hint for start, hint in _TOML_HINTS.items() if message.startswith(start)), None)
        message = f"the file is not valid TOML: {shown(message)}"
        raise RecipeError(Problem(message=message, file=filename, line=line, excerpt=excerpt, hint=hint)) from error


def tables_of(text: str) -> dict[str, Any]:
    """Values of a TOML text of others; empty if it is broken, which those that it is meant for will say."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # TOMLDecodeError is a ValueError, Python's limit on digits is one too
        return {}


def table_of(values: dict[str, Any], name: str) -> dict[str, Any]:
    """A table by its name; empty if something else has the name, or nothing."""
    table = values.get(name)
    return table if isinstance(table, dict) else {}


def locate_faults(faults: Iterable[Fault], text: str, filename: str) -> list[Problem]:
    """Faults of a valid TOML text as problems with their lines, in the order of the text."""
    lines, places = source_lines(text), locate(text)
    order = {path: number for number, path in enumerate(places)}
    located = [(line_of(places, fault.path), fault) for fault in dict.fromkeys(faults)]
    located.sort(key=lambda item: (item[0] or 0, order.get(item[1].path, -1)))
    return [
        Problem(
            message=shown(fault.message),
            file=filename,
            line=line,
            key=dotted(fault.path),
            excerpt=excerpt_of(lines, line),
            hint=shown(fault.hint) if fault.hint is not None else None,
        )
        for line, fault in located
    ]


def shown(text: str) -> str:
    """Text of the recipe, fit for a terminal: no credentials, no control characters."""
    return visible(_CREDENTIALS.sub(r"\1***@", text))


def excerpt_of(lines: Sequence[str], line: int | None) -> str | None:
    """A line of the file, fit to be shown: no credentials, no control characters, not endless."""
    if line is None or line > len(lines):
        return None
    text = shown(lines[line - 1].replace("\t", "    ")).rstrip()
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 3] + "..."
