"""Which files of a wheel the rules of an audit read as text."""

from __future__ import annotations

import re

_SMALL = 256 << 10
_SBOM = 8 << 20
_PURE = r"(?:[^/]+\.data/(?:purelib|platlib)/)?"
_TEXTS = re.compile(
    rf"{_PURE}(?:[^/]+/){{1,3}}_?_?version(?:__)?\.py"  # version.py, _version.py, __version__.py of packages
    rf"|{_PURE}[^/]+/__init__\.py"
    rf"|{_PURE}_?_?version(?:__)?\.py"
    r"|[^/]+\.dist-info/variant\.json"
)
_SBOMS = re.compile(r"[^/]+\.dist-info/sboms/.+")


def is_read_by_rules(path: str, size: int) -> bool:
    """Whether the audit keeps the content of a member: it is one that rules ask for, and not unreasonably large."""
    if not path.endswith((".py", ".json", ".xml")) and "/sboms/" not in path:
        return False
    if size <= _SMALL and _TEXTS.fullmatch(path):
        return True
    return size <= _SBOM and _SBOMS.fullmatch(path) is not None
