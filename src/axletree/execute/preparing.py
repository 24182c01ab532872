"""What a recipe does to a source before it is built, without making build tools believe that it changed.

A kept source is as it was in the store before the commands run, so they write their files anew each time. A file that
comes out as it did last time gets back the time that it had then: what was compiled from it stays.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.execute.process import check_program
from axletree.host.archive import digest_file
from axletree.host.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.execute.context import ActionContext
    from axletree.execute.workspace import Workplace
    from axletree.plan.actions.project import CommandParameters

PREPARED = "prepared.json"
"""File of a kept folder: what the commands wrote there, and when it came out otherwise than before."""
_CLOCK = 20_000_000
"""Nanoseconds by which a file system's clock may be behind: it ticks with the kernel's timer."""

_Prepared = dict[str, tuple[str, int]]
"""Path in the source -> digest of the file, and its time in nanoseconds."""


def prepare(
    context: ActionContext[CommandParameters], place: Workplace, source: Path, build: Path, env: Mapping[str, str]
) -> None:
    """Run the stage's commands in the source's folder; files that they wrote as last time keep their time.

    Raises:
        StageError: a command fails.
    """
    commands = context.parameters.commands
    if not commands:
        return
    began = time.time_ns() - _CLOCK
    check_program(
        ["/bin/bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=source,
        env=env,
        log=context.log,
        progress=context.progress,
        what="one of the stage's commands",
    )
    record = place.root / PREPARED
    before = _read(record)
    now: _Prepared = {}
    for path in _written(source, build, since=began):
        name, time_now = path.relative_to(source).as_posix(), path.stat().st_mtime_ns
        digest = digest_file(path)
        last = before.get(name)
        if last is not None and last[0] == digest:
            os.utime(path, ns=(last[1], last[1]))
            time_now = last[1]
        now[name] = (digest, time_now)
    replace_file(record, msgspec.json.encode({**before, **now}))


def _written(source: Path, build: Path, *, since: int) -> Iterator[Path]:
    """Files that were written or put into a source since then."""
    for folder, folders, files in os.walk(source):
        if Path(folder) == build:
            folders.clear()
            continue
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink() and path.stat().st_ctime_ns >= since:
                yield path


def _read(record: Path) -> _Prepared:
    try:
        return msgspec.json.decode(record.read_bytes(), type=_Prepared)
    except (OSError, msgspec.MsgspecError):
        return {}
