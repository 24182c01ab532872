"""Plain aligned tables, and how foreign text is written everywhere."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text of a log or a package without terminal escapes, control characters and direction overrides; tabs stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def render_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int, right: Sequence[int] = (), indent: str = ""
) -> str:
    """Columns under their headers, two spaces apart.

    Words are never cut, so ids and file names stay whole and can be copied: where the table is wider than ``width``,
    its widest column that has several words is wrapped at spaces. A table that still does not fit is simply wider.

    Args:
        headers: Titles, one a column.
        rows: Cells, as many a row as there are headers.
        width: Columns of the terminal.
        right: Numbers of the columns that are aligned right.
        indent: Put before each line.
    """
    table = [[printable(cell) for cell in row] for row in (headers, *rows)]
    widths = _fit([[cell.split("\n") for cell in column] for column in zip(*table, strict=True)], width - len(indent))
    lines: list[str] = []
    for row in table:
        cells = [_wrap(cell, columns) for cell, columns in zip(row, widths, strict=True)]
        for index in range(max(len(cell) for cell in cells)):
            parts = [
                text.rjust(columns) if number in right else text.ljust(columns)
                for number, (cell, columns) in enumerate(zip(cells, widths, strict=True))
                for text in [cell[index] if index < len(cell) else ""]
            ]
            lines.append((indent + "  ".join(parts)).rstrip())
    return "\n".join(lines)


def _fit(columns: Sequence[Sequence[Sequence[str]]], width: int) -> list[int]:
    """Width of each column: natural where it fits, else the widest ones narrowed down to their longest word."""
    natural = [max(len(line) for cell in column for line in cell) for column in columns]
    floors = [
        max((len(word) for cell in column for line in cell for word in line.split()), default=0) for column in columns
    ]
    # Below about 24 columns running text is harder to read than a table that is too wide.
    floors = [min(wide, max(floor, 24)) for floor, wide in zip(floors, natural, strict=True)]
    excess = sum(natural) + 2 * (len(natural) - 1) - width
    for number in sorted(range(len(natural)), key=lambda column: -natural[column]):
        if excess <= 0:
            break
        given = min(excess, natural[number] - floors[number])
        natural[number] -= given
        excess -= given
    return natural


def _wrap(cell: str, width: int) -> list[str]:
    lines: list[str] = []
    for line in cell.split("\n"):
        if len(line) <= width:
            lines.append(line)
        else:
            lines += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return lines
