"""What the files of a root tell about its system."""

from __future__ import annotations

import re
import shlex

from axletree.core.images import OsRelease

_GLIBC = re.compile(rb"GNU C Library [^\0\n]{0,200}? (?:stable|development) release version (\d{1,3}\.\d{1,3})")
_LONGEST = 200


def parse_os_release(text: str) -> OsRelease:
    """The fields of an ``os-release`` file; what can't be read is left out."""
    found = dict(_pairs(text))
    return OsRelease(
        id=found.get("ID", ""), version_id=found.get("VERSION_ID", ""), pretty_name=found.get("PRETTY_NAME", "")
    )


def glibc_version(library: bytes) -> str | None:
    """The version that the text of a C library states: ``2.31``."""
    match = _GLIBC.search(library)
    return match[1].decode() if match else None


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in text.splitlines()[:_LONGEST]:
        name, equals, value = line.strip().partition("=")
        if not equals or name.startswith("#"):
            continue
        try:
            words = shlex.split(value)
        except ValueError:
            continue
        pairs.append((name, "".join(char for char in " ".join(words) if char.isprintable())[:_LONGEST]))
    return pairs
