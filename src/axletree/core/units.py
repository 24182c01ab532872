"""Sizes, durations, numbers of things and lists as people write them."""

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


def some_of(items: Sequence[str], most: int = 8, *, separator: str = ", ", what: str = "") -> str:
    """The first of several things, each a ``what``, and how many more there are: ``a, b and 7 more``."""
    more = len(items) - most
    return separator.join(items[:most]) + (f" {and_more(more, what)}" if more > 0 else "")


def some_lines(lines: Sequence[str], most: int, *, what: str = "") -> list[str]:
    """The first of several lines, and one that says how many more there are: ``and 7 more``."""
    more = len(lines) - most
    return [*lines[:most], *([and_more(more, what)] if more > 0 else [])]


def and_more(more: int, what: str = "") -> str:
    """How many there are that are not shown: ``and 7 more``, ``and 7 more files``."""
    return f"and {plural(more, f'more {what}') if what else f'{more:,} more'}"


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


def format_duration(seconds: float) -> str:
    """Seconds as people say them: ``0.4 s``, ``42 s``, ``3 min 05 s``, ``2 h 07 min``."""
    if seconds < 0.05:
        return "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_clock(seconds: float) -> str:
    """Seconds since a start as ``4:09`` or ``1:02:33``."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def plural(count: int, noun: str) -> str:
    """``1 stage``, ``2 stages``, ``2 repositories``."""
    if count == 1:
        return f"{count:,} {noun}"
    return f"{count:,} {noun.removesuffix('y')}ies" if re.search(r"[^aeiou]y$", noun) else f"{count:,} {noun}s"
