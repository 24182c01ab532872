"""What CMake must know of an interpreter, asked of the interpreter itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.python_switch import PythonFacts
from axletree.core.errors import HostError, Problem
from axletree.host.run import finish

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
    done = finish([executable, "-I", "-c", _QUESTION], seconds=_SECONDS)
    try:
        return msgspec.json.decode(done.out, type=PythonFacts)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = f"the file is not a working Python: {done.ending(1)[:_SHOWN]}"
        raise HostError(Problem(message=message, file=str(executable))) from error
