"""Faults at a chosen file operation: a process that is killed right before its n-th one, or gets an error from it.

Python tells its audit hooks of each operation on files before it does it; what one of them raises, the operation does.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KILLED = 137
SITE = f"""\
import os
import sys

_at = int(os.environ.get("FAULT_AT", "0"))
_below = os.environ.get("FAULT_BELOW", "")
_error = int(os.environ.get("FAULT_ERROR", "0"))
_changes = {{"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.link", "os.symlink", "os.truncate"}}
_seen = 0


def _hook(event, args):
    global _seen
    writes = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if not (writes or event in _changes) or (_error and event == "os.mkdir" and os.path.isdir(args[0])):
        return
    if not any(_below in os.fsdecode(arg) for arg in args if isinstance(arg, (str, bytes, os.PathLike))):
        return
    _seen += 1
    if _seen == _at and _error:
        raise OSError(_error, os.strerror(_error), os.fsdecode(args[0]))
    if _seen == _at:
        os._exit({KILLED})


if _at and ("run-stage" in sys.orig_argv or os.environ.get("FAULT_FORK")):
    sys.addaudithook(_hook)
"""
"""A ``sitecustomize`` module: a stage's process ends right before its operation number ``FAULT_AT`` below a folder.

With ``os._exit``: the first process of a namespace can't send itself a signal. What it started ends with it.
"""


def faults_in_stages(folder: Path, below: str, at: int, error: int = 0) -> dict[str, str]:
    """Variables for a command, whose stages are then killed, or get an error.

    ``below`` is a part of the paths: stages see their store at another path than we do.
    """
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(SITE)
    return {"PYTHONPATH": str(folder), "FAULT_AT": str(at), "FAULT_BELOW": below, "FAULT_ERROR": str(error)}


def ends_at(below: Path, at: int, what: Callable[[], Any], error: int = 0) -> int:
    """Do something in a process of its own that is killed before its n-th operation below a folder: its exit code.

    With ``error`` the operation fails with that instead; the code is then 1 if ``what`` raises something.
    """
    child = os.fork()
    if child == 0:
        code = 2
        try:
            variables = {"FAULT_AT": str(at), "FAULT_BELOW": str(below), "FAULT_ERROR": str(error), "FAULT_FORK": "1"}
            os.environ.update(variables)
            exec(SITE, {})
            what()
            code = 0
        except Exception as raised:  # noqa: BLE001 (a child must not go on as a second test run)
            code = 1 if error else 2
            sys.stderr.write(f"{type(raised).__name__}: {raised}\n")
            sys.stderr.flush()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
