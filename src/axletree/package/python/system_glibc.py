"""The module ``sitecustomize`` of a portable Python: whoever asks it for the glibc gets that of the system.

pip and uv ask which wheels fit (``os.confstr``). They would take the newer copy that the process runs with. Extension
modules for that one load, but programs that a wheel brings run with the system's own.
"""

from __future__ import annotations

NAME = "sitecustomize.py"
_MODULE = '''\
"""Tells pip and uv the glibc of the system: this Python runs with a newer copy of its own."""

import os
import sys

_own = os.confstr
_known = []


def _system():
    """Release of the system's glibc, as its C library says; None where there is none."""
    import re

    name = getattr(sys.implementation, "_multiarch", "")
    for folder in (f"/lib/{name}", f"/usr/lib/{name}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"):
        try:
            with open(f"{folder}/libc.so.6", "rb") as stream:
                found = re.search(rb"GNU C Library [^\\n]*release version (\\d+\\.\\d+)", stream.read())
        except OSError:
            continue
        if found:
            return "glibc " + found[1].decode()
    return None


def confstr(name, /):
    """As the system has it."""
    if name not in ("CS_GNU_LIBC_VERSION", os.confstr_names["CS_GNU_LIBC_VERSION"]):
        return _own(name)
    if not _known:
        _known.append(_system() or _own(name))
    return _known[0]


os.confstr = confstr
'''


def system_glibc_module() -> str:
    """The source of the module."""
    return _MODULE
