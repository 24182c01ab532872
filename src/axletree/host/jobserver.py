"""A GNU make job server over a FIFO: tokens that compile processes take, for tools that are clients of it.

Protocol: GNU make manual, "POSIX Jobserver Interaction". Each client owns one implicit token, so ``jobs`` processes at
once need ``jobs - 1`` bytes in the pipe. A tool that is also given an explicit ``-j`` ignores the job server, so where
tokens rule, ``MAX_JOBS`` and ``CMAKE_BUILD_PARALLEL_LEVEL`` must stay unset.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from axletree.host.run import output_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_SECONDS = 10
_NINJA_CLIENT = (1, 13)
_MAKE_FIFO = (4, 4)


@contextmanager
def job_tokens(path: Path, jobs: int) -> Iterator[str]:
    """Make a FIFO with tokens for ``jobs`` processes at once, and give the value for ``MAKEFLAGS``."""
    os.mkfifo(path, 0o600)
    pipe = os.open(path, os.O_RDWR)  # both ends: it neither blocks here nor reads as closed for clients
    try:
        os.write(pipe, b"+" * (jobs - 1))
        yield f" -j{jobs} --jobserver-auth=fifo:{path}"
    finally:
        os.close(pipe)
        path.unlink(missing_ok=True)


def takes_tokens(environ: Mapping[str, str]) -> bool:
    """Whether the build tools on PATH are clients of a FIFO job server: ninja from 1.13 and, if there, make from 4.4.

    GNU make before 4.4 stops with an internal error when it meets ``fifo:``, so one old make rules tokens out.
    """
    ninja = _version("ninja", environ)
    make = _version("make", environ)
    return ninja is not None and ninja >= _NINJA_CLIENT and (make is None or make >= _MAKE_FIFO)


def _version(program: str, environ: Mapping[str, str]) -> tuple[int, ...] | None:
    path = shutil.which(program, path=environ.get("PATH", os.defpath))
    if path is None:
        return None
    match = re.search(r"(\d+)\.(\d+)", output_of([path, "--version"], environ=environ, seconds=_SECONDS))
    return (int(match[1]), int(match[2])) if match else None
