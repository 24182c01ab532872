"""Platform tags of wheels and the folders of a channel."""

from __future__ import annotations

import re

from axletree.core.errors import IntegrityError

_MACHINES = {"x86_64": "64", "amd64": "64", "i686": "32", "win32": "32"}
_PLATFORM = re.compile(r"(?:many|musl)?(linux|macosx|win)\w*?_?(x86_64|amd64|i686|aarch64|arm64|ppc64le|s390x|win32)")


def conda_subdir(platform: str) -> str:
    """``linux-64`` for ``manylinux_2_28_x86_64``.

    Raises:
        IntegrityError: conda has no such platform.
    """
    if platform == "any":
        return "noarch"
    found = _PLATFORM.fullmatch(platform.partition(".")[0])
    if found is None:
        raise IntegrityError(f"conda has no platform for {platform!r}")
    system = {"linux": "linux", "macosx": "osx", "win": "win"}[found[1]]
    return f"{system}-{_MACHINES.get(found[2], found[2])}"
