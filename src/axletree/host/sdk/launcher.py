"""Launchers: small programs that stand where an SDK has symbolic links to programs."""

from __future__ import annotations

import os
import shlex
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.host.run import finish

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK = b"@axletree-launcher@"
_ROOM = 4096
_FLAGS = (
    *("-Os", "-static", "-nostdlib", "-nostartfiles", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-no-pie"),
    *("-fno-asynchronous-unwind-tables", "-fcf-protection=none", "-s", "-Wl,--build-id=none", "-Wl,-z,noexecstack"),
)
_PORTABLE = tuple(flag for flag in _FLAGS if flag != "-fcf-protection=none")


def compile_launcher(environ: Mapping[str, str]) -> bytes:
    """A launcher without a target, for this machine's architecture, compiled with ``CC``, else ``cc``.

    Raises:
        HostError: there is no C compiler, or it can't.
    """
    compiler = shlex.split(environ.get("CC", "")) or ["cc"]
    source = files("axletree.host.sdk").joinpath("launcher.c").read_bytes()
    hint = "install a C compiler or set CC: one is needed to compile the small launchers that replace links to programs"
    problem = ""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "launcher")
        for flags in (_FLAGS, _PORTABLE):  # not every compiler knows all of them
            command = [*compiler, "-x", "c", *flags, "-o", str(target), "-"]
            done = finish(command, text=source, hint=hint)
            if done.code == 0:
                return target.read_bytes()
            problem = done.ending()[-400:]
    raise HostError(Problem(message=f"{compiler[0]} cannot compile a launcher: {problem}"), hint=hint)


def aim(launcher: bytes, target: str) -> bytes:
    """A launcher that starts a program.

    Args:
        launcher: as :func:`compile_launcher` returns it.
        target: path of the program, relative to the launcher's folder.

    Raises:
        IntegrityError: the path is too long.
    """
    path = os.fsencode(target)
    if len(path) >= _ROOM:
        raise IntegrityError(
            Problem(key=target[:80], message=f"the path is longer than the {_ROOM} bytes that a launcher can store")
        )
    at = launcher.index(_MARK)
    return launcher[:at] + path + bytes(_ROOM - len(path)) + launcher[at + _ROOM :]
