"""Sizes as people write them: ``1.6 GB`` (powers of 1000), ``512 MiB`` (powers of 1024)."""

from __future__ import annotations

import re
from decimal import Decimal

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


def parse_size(text: str) -> int:
    """Bytes of a size; a fraction of a byte is cut off.

    Raises:
        ValueError: it is not a number with a unit; the message says what is expected.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is no size, such as '1.6 GB' or '512 MiB'")
    return int(Decimal(match[1]) * _UNITS[match[2]])
