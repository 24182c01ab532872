"""Sizes and lists as people write them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([A-Za-z]{1,3})")
_UNITS = {
    "B": 1,
    "kB": 1000,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}


def some_of(items: Sequence[str], most: int, *, separator: str = ", ") -> str:
    """The first of several things, and how many more there are: ``a, b and 7 more``."""
    more = len(items) - most
    return separator.join(items[:most]) + (f" and {more} more" if more > 0 else "")


def format_bytes(size: int) -> str:
    """Bytes in decimal units (as package indexes have them) with three digits: ``812 B``, ``1.70 GB``."""
    if abs(size) < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
        if abs(value) < 999.5 or unit == "TB":
            return f"{value:.{digits}f} {unit}"
    raise AssertionError  # the last unit always returns


def parse_size(text: str) -> int:
    """Bytes of a size as people write it: ``1.6 GB`` (powers of 1000), ``512 MiB`` (powers of 1024).

    A fraction of a byte is cut off.

    Raises:
        ValueError: it is not a number with a unit; the message says what is expected.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is not a size such as '1.6 GB' or '512 MiB'")
    whole, _, part = match[1].partition(".")
    scale: int = 10 ** len(part)
    return int(whole + part) * _UNITS[match[2]] // scale
