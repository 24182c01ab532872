"""Point a configured tree at another Python, so that only what depends on Python is compiled again.

Entries that CMake's FindPython and pybind11 computed are removed, and computed again by the next configure; those that
name the interpreter, its headers, its library and NumPy's headers get the new ones; folders of the old environment in
search paths and flags become those of the new. Whatever names the old interpreter after that is refused: a module that
is half of one Python and half of another loads, and then crashes. Paths are compared part by part: another library's
3.12 is not a Python.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.buildsystem.cmake.cache import Cache, Entry

_FOUND_ANEW = re.compile(
    r"_Python[23]?(?:_.*)?|FIND_PACKAGE_MESSAGE_DETAILS_(?:Python|PYTHON|NumPy|pybind11).*"
    r"|PYBIND11_PYTHON_EXECUTABLE_LAST"
    r"|PYTHON_(?:IS_DEBUG|MODULE_.*|LIBRARIES|VERSION.*|PREFIX|SITE_PACKAGES)"
    r"|Python[23]?_(?:VERSION.*|SOABI|SITE\w+|STD\w+|INTERPRETER_ID)"
)
_EXECUTABLE = re.compile(r"(?:Python[23]?|PYTHON)_EXECUTABLE")
_INCLUDE = re.compile(r"(?:Python[23]?|PYTHON)_INCLUDE_DIRS?")
_LIBRARY = re.compile(r"(?:Python[23]?|PYTHON)_LIBRARY(?:_RELEASE|_DEBUG)?")
_NUMPY = re.compile(r"(?:(?:Python[23]?|PYTHON)_)?(?:NumPy|NUMPY)_INCLUDE_DIRS?")
_TOOLS = re.compile(
    r"CMAKE_(?:COMMAND|CPACK_COMMAND|CTEST_COMMAND|EDIT_COMMAND|ROOT|MAKE_PROGRAM)|.*_ADVANCED|.*-ADVANCED"
)
"""Programs and not Python, though they may lie in its environment."""
_PART = re.compile(r"[^;:,=\s\"'\[\]]+")


class PythonFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter as CMake sees it. Paths are absolute."""

    executable: str
    version: str
    """``3.12.1``."""
    soabi: str
    """``cpython-312-x86_64-linux-gnu``: in the names of extension modules."""
    include: str
    library: str | None = None
    numpy_include: str | None = None
    purelib: str
    """Where its environment's modules are installed."""
    prefix: str
    """Folder of the environment."""
    base_prefix: str
    """Folder of the installation that the environment was made from; the same where it is none."""


def find_executable(cache: Cache) -> str | None:
    """The interpreter that a tree is configured for, or ``None``."""
    names = (
        "Python_EXECUTABLE",
        "Python3_EXECUTABLE",
        "PYTHON_EXECUTABLE",
        "_Python_EXECUTABLE",
        "_Python3_EXECUTABLE",
    )
    return next((value for name in names if (value := cache.get(name)) and value.startswith("/")), None)


def switch_python(cache: Cache, old: PythonFacts, new: PythonFacts, *, file: str) -> dict[str, str | None]:
    """The changes that point a tree at another interpreter, for :func:`~axletree.buildsystem.cmake.cache.edit_cache`.

    Raises:
        IntegrityError: entries that name the old interpreter and that no rule knows, or that need something the new one
            does not have; all of them.
    """
    changes: dict[str, str | None] = {}
    problems: list[Problem] = []
    for entry in cache.entries.values():
        if _TOOLS.fullmatch(entry.name):
            continue
        if _FOUND_ANEW.fullmatch(entry.name):
            changes[entry.name] = None
            continue
        known, value = _of_python(entry, old, new)
        if known and value is None:
            message = f"is {entry.value}, and the new Python {new.version} has no such thing"
            problems.append(_problem(message, entry, file, hint="install its headers, its library or NumPy"))
            continue
        value = _moved(entry.value, old, new) if value is None else value
        left = sorted(set(_traces(value, old, new)))
        if left:
            message = f"still names Python {old.version}: {', '.join(left)}"
            problems.append(_problem(message, entry, file, hint="remove the entry, or configure the tree anew"))
        elif value != entry.value:
            changes[entry.name] = value
    if problems:
        raise IntegrityError(*problems)
    return changes


def _problem(message: str, entry: Entry, file: str, *, hint: str) -> Problem:
    return Problem(message=message, file=file, line=entry.line, key=entry.name, hint=hint)


def _of_python(entry: Entry, old: PythonFacts, new: PythonFacts) -> tuple[bool, str | None]:
    """Whether an entry is one of Python's own, and what it becomes; ``None`` if the new one has nothing for it."""
    if entry.value == "" or entry.value.endswith("NOTFOUND"):
        return False, entry.value
    for pattern, value in (
        (_EXECUTABLE, new.executable),
        (_INCLUDE, new.include),
        (_LIBRARY, new.library),
        (_NUMPY, new.numpy_include),
    ):
        if pattern.fullmatch(entry.name) and (old.version != new.version or old.prefix != new.prefix):
            return True, value
    return False, None


def _folders(python: PythonFacts) -> tuple[str, ...]:
    """Folders that are the interpreter's alone, the innermost first. ``/usr`` is everybody's."""
    folders = (python.purelib, python.include, python.prefix, python.base_prefix)
    return tuple(folder for folder in dict.fromkeys(folders) if folder.count("/") > 1)


def _moved(value: str, old: PythonFacts, new: PythonFacts) -> str:
    """The value with folders of the old environment exchanged for those of the new, path by path."""
    pairs = [(old.purelib, new.purelib), (old.include, new.include), (old.prefix, new.prefix)]
    pairs.append((old.base_prefix, new.base_prefix))
    usable = [(before, after) for before, after in pairs if before.count("/") > 1]

    def replace(match: re.Match[str]) -> str:
        path = match.group()
        for before, after in usable:
            if _is_under(path, before):
                return after + path[len(before) :]
        return path

    return _PART.sub(replace, value)


def _traces(value: str, old: PythonFacts, new: PythonFacts) -> Iterator[str]:
    """What in a value names the old interpreter."""
    shared = _folders(new)
    for part in _PART.findall(value):
        inside = any(_is_under(part, folder) for folder in _folders(old))
        ours = any(_is_under(part, folder) for folder in shared)
        if (inside and not ours) or (old.soabi != new.soabi and old.soabi in part):
            yield part


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
