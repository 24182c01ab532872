"""An interpreter of a machine as the conda packages ``python`` and ``python_abi``, for environments of that machine.

What is installed is as small as a virtual environment (PEP 405): programs that start the interpreter, and a
``pyvenv.cfg`` that says where its library is. So an environment of such packages has a site-packages of its own, and
any interpreter will do, whether it could be moved or not.
"""

from __future__ import annotations

import posixpath

from axletree.package.conda.model import CondaFile, CondaPackage

_START = """\
#!/bin/bash
# Python looks for pyvenv.cfg beside the name that it is called by.
exec -a "$0" {program} "$@"
"""


def interpreter_packages(
    *, program: str, version: str, free_threaded: bool, subdir: str
) -> tuple[tuple[CondaPackage, tuple[CondaFile, ...]], ...]:
    """The two packages and their files.

    Args:
        program: path of the interpreter.
        version: ``3.11.7``.
        free_threaded: whether it is built without the global lock (PEP 703).
        subdir: ``linux-64`` ...
    """
    major, minor = version.split(".")[:2]
    short, flags = f"{major}.{minor}", "t" if free_threaded else ""
    tag = f"cp{major}{minor}{flags}"
    start = _START.format(program=_quoted(program)).encode()
    home = posixpath.dirname(program)
    settings = f"home = {home}\ninclude-system-site-packages = false\nversion = {version}\n".encode()
    names = dict.fromkeys(["python", f"python{major}", f"python{short}", f"python{short}{flags}"])
    python = CondaPackage(
        name="python",
        version=version,
        build=f"0_{tag}",
        subdir=subdir,
        depends=(f"python_abi {short}.* *_{tag}",),
        site_packages=f"lib/python{short}t/site-packages" if free_threaded else None,
    )
    files = [CondaFile(path=f"bin/{name}", data=start, executable=True) for name in names]
    abi = CondaPackage(name="python_abi", version=short, build=f"0_{tag}", subdir="noarch", noarch="generic")
    return (python, (*files, CondaFile(path="pyvenv.cfg", data=settings))), (abi, ())


def _quoted(path: str) -> str:
    """A path as one word of a shell."""
    return "'" + path.replace("'", "'\\''") + "'"
