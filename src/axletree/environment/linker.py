"""Which files a linker takes: what GNU ld, gold, lld and mold print for ``--trace``, one path a line."""

from __future__ import annotations

import posixpath
import re

import msgspec

_FILE = re.compile(r"(?:(?:trace|[\w./+-]*ld[\w.-]*): )?(?P<path>/?\S.*?\.(?:so(?:\.[\w.]+)?|a))(?:\(.*\))?")
_MEMBER = re.compile(r"\((?P<archive>\S+\.a)\)\S+")


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A library that the linker opened."""

    name: str
    """File name as ``-l`` finds it: ``libstdc++.so``, ``libgcc.a``."""
    path: str


def libraries_linked(text: str) -> tuple[Linked, ...]:
    """Libraries in the order in which they were opened, each once."""
    found: dict[str, Linked] = {}
    for line in text.splitlines():
        text = line.strip()
        match = _MEMBER.fullmatch(text)
        path = match["archive"] if match else None
        if path is None and (whole := _FILE.fullmatch(text)) and " " not in text.partition(": ")[2]:
            path = whole["path"]
        if path is not None and "/" in path:
            found.setdefault(path, Linked(name=posixpath.basename(path), path=path))
    return tuple(found.values())
