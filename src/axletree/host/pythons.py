"""What CMake must know of an interpreter, asked of the interpreter itself."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.python_switch import PythonFacts
from axletree.core.errors import HostError, Problem

if TYPE_CHECKING:
    from pathlib import Path

_QUESTION = """
import json, os, sys, sysconfig
get = sysconfig.get_config_var
folder, name = get("LIBDIR"), get("LDLIBRARY")
library = os.path.join(folder, name) if folder and name else None
try:
    import numpy
    numpy_include = numpy.get_include()
except ImportError:
    numpy_include = None
print(json.dumps({
    "executable": sys.executable,
    "version": ".".join(map(str, sys.version_info[:3])),
    "soabi": get("SOABI") or "",
    "include": sysconfig.get_path("include"),
    "library": library if library and os.path.exists(library) else None,
    "numpy_include": numpy_include,
    "purelib": sysconfig.get_path("purelib"),
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
}))
"""
_SECONDS = 60
_SHOWN = 200


def python_facts(executable: Path) -> PythonFacts:
    """Ask an interpreter where it and its headers lie.

    Raises:
        HostError: it can't be run, or is none.
    """
    try:
        done = subprocess.run([executable, "-I", "-c", _QUESTION], capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = f"no answer in {_SECONDS} s" if isinstance(error, subprocess.TimeoutExpired) else error.strerror
        raise _silent(executable, why) from error
    try:
        return msgspec.json.decode(done.stdout, type=PythonFacts)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _silent(executable, said[-1] if said else f"exit code {done.returncode}") from error


def _silent(executable: Path, why: str | None) -> HostError:
    return HostError(Problem(message=f"not a working Python: {(why or '')[:_SHOWN]}", file=str(executable)))
