"""Targets that install a single folder of a CMake project, such as ``c10/install/local``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.buildsystem.cmake.cache import Cache

_LISTS_SINCE = (3, 31)
"""The first CMake that writes ``install_local_manifest.txt``; tried with 3.25, 3.28 to 3.31."""
_ENDS = ("install/local", "install/local/strip")


def unlisted_target(targets: Sequence[str], cache: Cache) -> str | None:
    """The first target whose installed files the CMake that wrote a cache does not list; ``None`` if there is none."""
    parts = [cache.get(f"CMAKE_CACHE_{part}_VERSION") or "" for part in ("MAJOR", "MINOR")]
    if not all(part.isdecimal() for part in parts) or tuple(map(int, parts)) >= _LISTS_SINCE:
        return None
    return next((target for target in targets if target.endswith(_ENDS)), None)
