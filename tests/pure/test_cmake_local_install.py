"""Which CMake lists what a target of one folder installs."""

from __future__ import annotations

import pytest

from axletree.buildsystem.cmake.cache import parse_cache
from axletree.buildsystem.cmake.local_install import unlisted_target


@pytest.mark.parametrize(
    ("version", "targets", "found"),
    [
        ("3.25", ("c10/all", "c10/install/local"), "c10/install/local"),
        ("3.30", ("install/local/strip",), "install/local/strip"),
        ("3.30", ("c10/all", "install"), None),
        ("3.31", ("c10/install/local",), None),
        ("4.0", ("c10/install/local",), None),
        ("", ("c10/install/local",), None),
    ],
)
def test_targets_whose_files_nobody_lists(version: str, targets: tuple[str, ...], found: str | None) -> None:
    major, _, minor = version.partition(".")
    text = f"CMAKE_CACHE_MAJOR_VERSION:INTERNAL={major}\nCMAKE_CACHE_MINOR_VERSION:INTERNAL={minor}\n"
    assert unlisted_target(targets, parse_cache(text, file="CMakeCache.txt")) == found
