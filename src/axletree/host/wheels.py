"""Wheels on disk: unpacking one, checked."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from axletree.binary.members import iter_member
from axletree.binary.zips import read_directory
from axletree.core.errors import IntegrityError, Problem
from axletree.host.archive import map_file
from axletree.package.wheel import scan_wheel

if TYPE_CHECKING:
    from axletree.package.wheel import WheelFacts

_SCHEMES_AT_ROOT = frozenset({"purelib", "platlib"})


def unpack_wheel(path: Path, folder: Path) -> None:
    """Unpack a wheel into a folder laid out like site-packages; scripts, headers and data stay below ``*.data``.

    Raises:
        IntegrityError: it is no wheel, its RECORD does not hold, or a member would land outside of the folder.
    """
    with map_file(path) as view:
        facts = scan_wheel(view, filename=path.name).wheel
        _require_sound(facts, path.name)
        for entry in read_directory(view, archive=path.name):
            if entry.directory:
                continue
            target = folder / _place(entry.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as stream:
                for chunk in iter_member(view, entry, archive=path.name, limit=entry.size):
                    stream.write(chunk)
            if entry.executable:
                os.chmod(target, 0o755)  # noqa: PTH101, S103 (wheels carry the execute bit)


def _place(name: str) -> Path:
    parts = PurePosixPath(name).parts
    if len(parts) > 2 and parts[0].endswith(".data") and parts[1] in _SCHEMES_AT_ROOT:
        return Path(*parts[2:])
    return Path(*parts)


def _require_sound(facts: WheelFacts, name: str) -> None:
    problems = [
        Problem(file=name, key=issue.path, message=f"{issue.kind}: {issue.detail}") for issue in facts.record_issues
    ]
    if problems:
        raise IntegrityError(*problems)
