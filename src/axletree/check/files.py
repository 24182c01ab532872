"""What rules ask of paths in a wheel."""

from __future__ import annotations

import re

_GRAFTED = re.compile(
    r"(?:^|/)(?:[^/]+\.libs|\.dylibs)/[^/]+$|[-.][0-9a-f]{8}(?:\.so(?:\.[0-9.]+)?|\.dylib|\.dll)$", re.IGNORECASE
)


def is_grafted(path: str) -> bool:
    """Whether ``auditwheel`` or the like put a library there, by their folders and the hashes in their names."""
    return _GRAFTED.search(path) is not None
