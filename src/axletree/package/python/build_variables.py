"""What a Python says of its own build (``sysconfig``), as it is once the Python lies elsewhere.

The folders become the new ones. Compilers are called by their plain names, because those of the image have no others,
and search paths of the old place go: an extension module that has one would look for libraries there.
"""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

_SYSTEM = frozenset({"", "/", "/usr"})
"""Prefixes under which other things lie as well, which the image has too."""
_TOOL = re.compile(
    r"^\s*(?:\S*/)?(?:[a-z0-9_]+-(?:[a-z]+-)?linux-gnu\w*-)?"
    r"(?P<tool>gcc|g\+\+|cc|c\+\+|clang|clang\+\+|cpp|ar|ranlib|nm|readelf|gcc-ar|gcc-ranlib|gcc-nm)(?:-\d+)?(?=\s|$)"
)
_TOOLS = frozenset(
    ["AR", "BLDSHARED", "CC", "CPP", "CXX", "LDCXXSHARED", "LDSHARED", "LINKCC", "MAINCC", "NM", "RANLIB", "READELF"]
)
_DIGESTED = re.compile(r"^build_time_vars\s*=\s*", re.MULTILINE)
_ASSIGNED = re.compile(r"^([A-Za-z_]\w*)(\s*=[ \t]*)(.*)$", re.MULTILINE)


def moved_folders(home: str, *, library: str, include: str, config: str) -> dict[str, str]:
    """The variables that name folders of a Python, for one in ``home``.

    Args:
        home: the folder of the Python.
        library: the standard library in there, such as ``lib/python3.11``.
        include: the headers in there.
        config: the folder with the Makefile in there; empty where there is none.
    """
    above = library.rpartition("/")[0]
    found = {
        **dict.fromkeys(("prefix", "exec_prefix"), home),
        "BINDIR": f"{home}/bin",
        **dict.fromkeys(("LIBDIR", "SCRIPTDIR"), f"{home}/{above}"),
        **dict.fromkeys(("INCLUDEDIR", "CONFINCLUDEDIR"), f"{home}/include"),
        **dict.fromkeys(("INCLUDEPY", "CONFINCLUDEPY"), f"{home}/{include}"),
        **dict.fromkeys(("LIBDEST", "DESTLIB", "BINLIBDEST", "MACHDESTLIB"), f"{home}/{library}"),
        "DESTSHARED": f"{home}/{library}/lib-dynload",
        "LIBPC": f"{home}/{above}/pkgconfig",
        "MANDIR": f"{home}/share/man",
        "datarootdir": f"{home}/share",
        "WHEEL_PKG_DIR": f"{home}/share/python-wheels",
    }
    return {**found, "LIBPL": f"{home}/{config}"} if config else found


def moved_variables(variables: Mapping[str, Any], folders: Mapping[str, str], *, prefix: str) -> dict[str, Any]:
    """Build-time variables for the new place.

    Args:
        variables: name -> value, as the Python has them.
        folders: those that name a folder, see :func:`moved_folders`. An empty one stays empty.
        prefix: where the Python was.
    """
    home = folders["prefix"]
    moved: dict[str, Any] = {}
    for name, value in variables.items():
        if name in folders:
            moved[name] = folders[name] if value else value
        elif isinstance(value, str):
            moved[name] = _moved(name, value, prefix, home)
        else:
            moved[name] = value
    return moved


def moved_module(text: str, folders: Mapping[str, str], *, prefix: str, name: str) -> str:
    """The module ``_sysconfigdata*`` for the new place; the same values give the same text.

    Raises:
        IntegrityError: it is not the module that a build of CPython writes.
    """
    start = _DIGESTED.search(text)
    try:
        values = ast.literal_eval(text[start.end() :]) if start else None
    except (ValueError, SyntaxError):
        values = None
    if not isinstance(values, dict):
        raise IntegrityError(Problem(file=name, message="the file does not define the build variables of Python"))
    moved = moved_variables(values, folders, prefix=prefix)
    lines = "".join(f" {key!r}: {value!r},\n" for key, value in sorted(moved.items()))
    return f"# system configuration generated and used by the sysconfig module\nbuild_time_vars = {{\n{lines}}}\n"


def moved_json(text: str, folders: Mapping[str, str], *, prefix: str, name: str) -> str:
    """The file ``_sysconfig_vars*.json`` (Python 3.14) for the new place.

    Raises:
        IntegrityError: it is not a JSON object.
    """
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise IntegrityError(Problem(file=name, message="the file does not define the build variables of Python"))
    return json.dumps(moved_variables(values, folders, prefix=prefix), indent=2, sort_keys=True) + "\n"


def moved_makefile(text: str, folders: Mapping[str, str], *, prefix: str) -> str:
    """The Makefile of a Python for the new place: its variables; rules stay as they are."""

    def moved(line: re.Match[str]) -> str:
        name, equals, value = line.groups()
        if name in folders:
            return f"{name}{equals}{folders[name] if value.strip() else value}"
        return f"{name}{equals}{_moved(name, value, prefix, folders['prefix'])}"

    return _ASSIGNED.sub(moved, text)


def _moved(name: str, value: str, prefix: str, home: str) -> str:
    if name in _TOOLS:
        value = _TOOL.sub(lambda found: found["tool"], value)
    if prefix in _SYSTEM:
        return value
    old = re.escape(prefix)
    # What GNU ld takes as search path, and where it looks first for libraries: not for who uses this Python elsewhere.
    option = r"(?:-Wl,(?:-rpath|--rpath|-R)[,=]?|-L)"
    value = re.sub(rf"(?:(?<=[\s'=])|^){option}{old}(?:/[^\s'\"]*)?(?=[\s']|$)[ \t]?", "", value)
    return re.sub(rf"{old}(?=$|[/\s:'\",;)])", home.replace("\\", r"\\"), value)
