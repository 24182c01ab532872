"""Point a configured tree at another Python, so that only what depends on Python is compiled again.

Entries that CMake's FindPython and pybind11 computed are removed, and computed again by the next configure; those that
name the interpreter, its headers, its library and NumPy's headers get the new ones; folders of the old environment in
search paths and flags become those of the new. Whatever names the old interpreter after that is refused: a module that
is half of one Python and half of another loads, and then crashes. Paths are compared part by part: another library's
3.12 is not a Python.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.buildsystem.cmake.cache import Cache, CacheEntry, EntryType

_ANY = r"(?:Python[23]?|PYTHON)"
_FOUND_ANEW = re.compile(
    r"_Python[23]?(?:_.*)?|FIND_PACKAGE_MESSAGE_DETAILS_(?:Python|PYTHON|NumPy|pybind11).*"
    r"|PYBIND11_PYTHON_EXECUTABLE_LAST"
    r"|PYTHON_(?:IS_DEBUG|MODULE_.*|LIBRARIES|VERSION.*|PREFIX|SITE_PACKAGES)"
    r"|Python[23]?_(?:VERSION.*|SOABI|SITE\w+|STD\w+|INTERPRETER_ID)"
)
"""Internal entries that the next configure computes."""
_EXECUTABLE = re.compile(rf"{_ANY}_EXECUTABLE")
_INCLUDE = re.compile(rf"{_ANY}_INCLUDE_DIRS?")
_LIBRARY = re.compile(rf"{_ANY}_LIBRARY(?:_RELEASE|_DEBUG)?")
_NUMPY = re.compile(rf"(?:{_ANY}_)?(?:NumPy|NUMPY)_INCLUDE_DIRS?")
_SOABI = re.compile(rf"{_ANY}_SOABI")
_VERSION = re.compile(rf"PYBIND11_PYTHON_VERSION|{_ANY}_VERSION(?:_STRING)?")
_TOOLS = re.compile(
    r"CMAKE_(?:COMMAND|CPACK_COMMAND|CTEST_COMMAND|EDIT_COMMAND|ROOT|MAKE_PROGRAM)|.*_ADVANCED|.*-ADVANCED"
)
"""Programs and not Python, though they may lie in its environment."""
_ABOUT_PYTHON = re.compile(r"python|numpy|pybind|nanobind|cython", re.IGNORECASE)
"""Names of entries in which a bare version is a Python's."""
_MAPPED = re.compile(r"(-f\w+-prefix-map=\S+)")
"""Names that paths get in debug information: nothing is looked for there, and another flag would compile everything."""
_LISTED = re.compile(r"[^;]+")
_IN_TEXT = re.compile(r"(?:(?<=-[IL])|(?<![\w.~+-]))/[^;:,=\s\"'\[\]<>]*")
_EVERYBODYS = frozenset({"/", "/usr", "/usr/local", "/opt", "/opt/local"})
"""Prefixes in which an interpreter lies beside what is not Python's."""
_INTERPRETERS = ("Python", "Python3", "Python2")

Changes = dict[str, "str | tuple[EntryType, str] | None"]


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
    names = [f"{name}_EXECUTABLE" for name in (*_INTERPRETERS, "PYTHON")]
    names += [f"_{name}_EXECUTABLE" for name in _INTERPRETERS]
    return next((value for name in names if (value := cache.get(name)) and value.startswith("/")), None)


def configured_python(cache: Cache) -> PythonFacts | None:
    """What CMake's FindPython found out about the interpreter, which need not be there any more.

    Returns ``None`` where the tree was configured by something else, such as the old FindPythonInterp.
    """
    for name in _INTERPRETERS:
        fields = (cache.get(f"_{name}_INTERPRETER_PROPERTIES") or "").split(";")
        executable = cache.get(f"_{name}_EXECUTABLE")
        # ID;major;minor;patch;bits;ABI flags;SOABI;ABI3;stdlib;the same for platforms;purelib;platlib, with gaps
        if len(fields) < 11 or not executable:
            continue
        stdlib = PurePosixPath(fields[-4])
        return PythonFacts(
            executable=executable,
            version=".".join(fields[1:4]),
            soabi=next((field for field in fields[4:-4] if field.startswith(("cpython-", "pypy"))), ""),
            include=cache.get(f"_{name}_INCLUDE_DIR") or f"{stdlib.parents[1]}/include/{stdlib.name}",
            library=cache.get(f"_{name}_LIBRARY_RELEASE"),
            numpy_include=cache.get(f"_{name}_NumPy_INCLUDE_DIR"),
            purelib=fields[-2],
            prefix=str(PurePosixPath(executable).parents[1]),
            base_prefix=str(stdlib.parents[1]),
        )
    return None


def switch_python(cache: Cache, old: PythonFacts, new: PythonFacts, *, file: str) -> Changes:
    """The changes that point a tree at another interpreter, for :func:`~axletree.buildsystem.cmake.cache.edit_cache`.

    Raises:
        IntegrityError: entries that name the old interpreter and that no rule knows, or that need something the new one
            does not have; all of them.
    """
    if (old.executable, old.version, old.soabi, old.purelib) == (
        new.executable,
        new.version,
        new.soabi,
        new.purelib,
    ):
        return {}
    changes: Changes = {}
    problems: list[Problem] = []
    for entry in cache.entries.values():
        if _TOOLS.fullmatch(entry.name):
            continue
        if entry.type == "INTERNAL" and _FOUND_ANEW.fullmatch(entry.name):
            changes[entry.name] = None
            continue
        rule = _rule(entry)
        value = _moved(entry, old, new) if rule is None else rule(new)
        if value is None:
            message = f"the value is {entry.value}, which has no counterpart for Python {new.version}"
            problems.append(
                _problem(message, entry, file, hint="install the headers, library or NumPy for that Python")
            )
            continue
        left = sorted(set(_traces(entry, value, old, new))) if rule is None else []
        if left:
            message = f"the entry still refers to Python {old.version}: {', '.join(left)}"
            problems.append(
                _problem(message, entry, file, hint="remove the entry, or configure the build folder again")
            )
        elif value != entry.value:
            changes[entry.name] = value
    if problems:
        raise IntegrityError(*problems)
    return {**changes, **_asked_for(cache, new)}


def _problem(message: str, entry: CacheEntry, file: str, *, hint: str) -> Problem:
    return Problem(message=message, file=file, line=entry.line, key=entry.name, hint=hint)


def _asked_for(cache: Cache, new: PythonFacts) -> Changes:
    """The new interpreter by name, where the old one was found by searching: a search would find that again."""
    found = [name for name in _INTERPRETERS if f"_{name}_EXECUTABLE" in cache.entries]
    return {
        f"{name}_EXECUTABLE": ("FILEPATH", new.executable)
        for name in found
        if not cache.get(f"{name}_EXECUTABLE") and not cache.get("PYTHON_EXECUTABLE")
    }


def _rule(entry: CacheEntry) -> Callable[[PythonFacts], str | None] | None:
    """What an entry of Python's own becomes; the result is ``None`` if the new interpreter has nothing for it."""
    if entry.value == "" or entry.value.endswith("NOTFOUND"):
        return None
    depth = entry.value.count(".") + 1
    rules: tuple[tuple[re.Pattern[str], Callable[[PythonFacts], str | None]], ...] = (
        (_EXECUTABLE, lambda new: new.executable),
        (_INCLUDE, lambda new: new.include),
        (_LIBRARY, lambda new: new.library),
        (_NUMPY, lambda new: new.numpy_include),
        (_SOABI, lambda new: new.soabi),
        (_VERSION, lambda new: ".".join(new.version.split(".")[:depth])),
    )
    return next((rule for pattern, rule in rules if pattern.fullmatch(entry.name)), None)


def _short(python: PythonFacts) -> str:
    return ".".join(python.version.split(".")[:2])


def _library_name(python: PythonFacts) -> str:
    """Name of the standard library's folder: ``python3.13``, ``python3.13t`` where there is no GIL."""
    threaded = re.match(r"cpython-[0-9]+t", python.soabi) is not None
    return f"python{_short(python)}{'t' if threaded else ''}"


def _folders(python: PythonFacts) -> tuple[str, ...]:
    """Folders that are the interpreter's alone."""
    folders = (python.purelib, python.include, python.prefix, python.base_prefix)
    return tuple(folder for folder in dict.fromkeys(folders) if folder not in _EVERYBODYS)


def _moved(entry: CacheEntry, old: PythonFacts, new: PythonFacts) -> str:
    """The value with folders of the old environment exchanged for those of the new, path by path."""
    pairs = {
        old.base_prefix: new.base_prefix,
        old.prefix: new.prefix,
        old.include: new.include,
        old.purelib: new.purelib,
    }
    usable = sorted(((was, pairs[was]) for was in pairs if was not in _EVERYBODYS), key=lambda each: -len(each[0]))
    library = re.compile(rf"(?<=/){re.escape(_library_name(old))}(?=/|$)")

    def replace(match: re.Match[str]) -> str:
        path = match.group()
        for was, now in usable:
            if _is_under(path, was):
                return now + library.sub(_library_name(new), path[len(was) :])
        return path

    pattern = _LISTED if entry.type in {"PATH", "FILEPATH"} else _IN_TEXT
    texts = _MAPPED.split(entry.value)
    return "".join(text if _MAPPED.fullmatch(text) else pattern.sub(replace, text) for text in texts)


def _traces(entry: CacheEntry, value: str, old: PythonFacts, new: PythonFacts) -> Iterator[str]:
    """What in a value names the old interpreter."""
    text = _MAPPED.sub(" ", value)
    for path in (_LISTED if entry.type in {"PATH", "FILEPATH"} else _IN_TEXT).findall(text):
        lies = any(_is_under(path, folder) for folder in _folders(old))
        if lies and not any(_is_under(path, folder) for folder in _folders(new)):
            yield path
    for folder in sorted(_folders(new), key=len, reverse=True):  # the new one may have the old version in its path
        text = text.replace(folder, "")
    for names in _names(entry, old, new):
        yield from _words_with(names, text)


def _words_with(names: str, text: str) -> list[str]:
    """Words that hold one of some names; each is looked at from its beginning only."""
    return re.findall(rf"(?<![^\s;])[^\s;]*(?:{names})[^\s;]*", text, re.IGNORECASE)


def _names(entry: CacheEntry, old: PythonFacts, new: PythonFacts) -> Iterator[str]:
    """Regular expressions of what only the old interpreter is called."""
    if _short(old) != _short(new):
        dotted, plain = re.escape(_short(old)), _short(old).replace(".", "")
        yield rf"python-?(?:{dotted}|{plain})(?![0-9])|\bcp{plain}(?![0-9])"
        if _ABOUT_PYTHON.search(entry.name):
            yield rf"(?<![\d.]){dotted}(?![0-9])|(?<!\d){_short(old).replace('.', ';')}(?![0-9])"
    elif old.version != new.version and _ABOUT_PYTHON.search(entry.name):
        yield rf"(?<![\d.]){re.escape(old.version)}(?![0-9])"
    if old.soabi and old.soabi != new.soabi:
        yield re.escape(old.soabi)


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
