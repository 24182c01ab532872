"""Dotted keys as people write them outside of a file: ``stages.build.env.FORCE_CUDA``, ``properties.gpu."cu12*".x``."""

from __future__ import annotations

import re
import tomllib

_PART = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^.="'\s]+)"""
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*")
_PARTS = re.compile(_PART)


def read_key(text: str) -> tuple[str, ...] | None:
    """The parts of a dotted key; ``None`` where it is none. A part that contains a dot is quoted, as in TOML."""
    match = _KEY.fullmatch(text)
    return _parts(match[1]) if match is not None else None


def split_setting(text: str) -> tuple[str, tuple[str, ...], str] | None:
    """``KEY=VALUE`` -> the key as it was written, its parts, and the value; ``None`` where it is no such text."""
    match = _KEY.match(text)
    if match is None or text[match.end() : match.end() + 1] != "=":
        return None
    parts = _parts(match[1])
    return None if parts is None else (match[1], parts, text[match.end() + 1 :].strip())


def _parts(key: str) -> tuple[str, ...] | None:
    found = []
    for part in _PARTS.findall(key):
        if part[0] not in "\"'":
            found.append(part)
            continue
        try:
            found.append(tomllib.loads(f"key = {part}")["key"])
        except tomllib.TOMLDecodeError:
            return None
    return tuple(found)
