"""Takes what this process was started with out of the sight of others.

Any program of the same user can read the environment and the command line that a process was started with, under
``/proc``, whatever it is given itself: so could a build script that we run. The kernel reads them from this process's
own memory, where they can be wiped.
"""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

_LOGIN = re.compile(rb"(?<=://)[^/\s@\0]+(?=@)")
_ARGUMENTS, _ENVIRONMENT = 45, 47
"""Where ``/proc/self/stat`` has the first of two addresses, counted behind the program's name (see proc(5))."""


def hide_start() -> None:
    """Wipe the environment of the start, and credentials in addresses of the command line; ``os.environ`` stays.

    Does nothing where the system does not tell the addresses.
    """
    fields = _fields()
    if not fields:
        return
    start, end = int(fields[_ENVIRONMENT]), int(fields[_ENVIRONMENT + 1])
    if 0 < start < end:
        for name, value in os.environ.items():
            os.environ[name] = value  # the C library's own copy, for whatever asks it instead of us
        ctypes.memset(start, 0, end - start)
    start, end = int(fields[_ARGUMENTS]), int(fields[_ARGUMENTS + 1])
    if 0 < start < end:
        for match in _LOGIN.finditer(ctypes.string_at(start, end - start)):
            ctypes.memset(start + match.start(), ord("*"), len(match[0]))


def _fields() -> list[str]:
    try:
        return Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
