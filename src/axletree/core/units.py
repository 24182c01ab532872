"""Numbers for people."""

from __future__ import annotations


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
