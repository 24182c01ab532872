"""What the driver of setup.py refuses before it compiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from axletree.core.errors import StageError
from axletree.execute.drivers.setup_py import _check_targets

if TYPE_CHECKING:
    from pathlib import Path


def test_a_target_whose_files_an_old_cmake_does_not_list_is_refused(tmp_path: Path) -> None:
    lines = [f"CMAKE_CACHE_{part}_VERSION:INTERNAL={n}\n" for part, n in (("MAJOR", 3), ("MINOR", 25), ("PATCH", 1))]
    (tmp_path / "CMakeCache.txt").write_text("".join(lines))
    job: Any = SimpleNamespace(build=tmp_path, targets=("c10/all", "c10/install/local"))
    with pytest.raises(StageError, match=r"CMake 3\.25\.1 does not list the files that target c10/install/local"):
        _check_targets(job)
    (tmp_path / "CMakeCache.txt").write_text("".join(lines).replace("=25", "=31"))
    _check_targets(job)
