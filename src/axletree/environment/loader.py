"""Which libraries a loader takes: glibc's ``LD_DEBUG=libs`` and the kernel's ``/proc/self/maps``; where it looks.

The first is there also where a program does not get as far as its own first line; the second is what is true.
"""

from __future__ import annotations

import posixpath
import re

import msgspec

DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
"""Where glibc's loader looks last (ld.so(8))."""
_CACHED = re.compile(r"^[ \t]*+(\S+) \(.*\) => (/\S.*)$", re.MULTILINE)
_LINE = re.compile(r"\s*\d+:\t(.*)")
_FIND = re.compile(r"find library=(\S+) \[\d+\]; searching")
_TRY = re.compile(r"\s*trying file=(.+)")
_PATH = re.compile(r"\s*search (?:path=.*?|cache=\S+)\t*\s*(?:\((.*)\))?$")
_INIT = re.compile(r"calling init: (/.+)")
_MAP = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ [0-9a-f]+ \S+ \d+\s+(/.+)")
_LIBRARY = re.compile(r".+\.so(\.[\w.]+)?")
_MISSING = re.compile(
    r"(?<!\S)(?P<file>\S+): version `(?P<version>[^'`\n]+)' not found \(required by (?P<by>[^)]+)\)|"
    r"error while loading shared libraries: (?P<name>[^:\s]+): (?P<why>.+)"
)


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A library that the loader took."""

    name: str
    """As it was asked for: its SONAME."""
    path: str
    by: str
    """``LD_LIBRARY_PATH``, ``RUNPATH from file ...``, ``cache`` (``/etc/ld.so.cache``), ``LD_PRELOAD``, ``default``."""


def libraries_loaded(debug: str) -> tuple[Loaded, ...]:
    """What ``LD_DEBUG=libs`` tells: for each name the last file that was tried, since that one was taken."""
    found: dict[str, Loaded] = {}
    wanted = by = tried = ""
    initialised: list[str] = []
    for line in debug.splitlines():
        match = _LINE.match(line)
        text = match[1] if match else line
        if each := _FIND.match(text):
            _note(found, wanted, tried, by)
            wanted, tried, by = each[1], "", ""
        elif each := _TRY.match(text):
            tried = each[1].strip()
        elif text.strip().startswith("search cache="):
            by = "cache"
        elif each := _PATH.match(text):
            by = (each[1] or "default").replace("system search path", "default")
        elif each := _INIT.match(text):
            _note(found, wanted, tried, by)
            wanted = ""
            initialised.append(each[1])
    _note(found, wanted, tried, by)
    known = {loaded.path for loaded in found.values()}
    for path in initialised:
        name = posixpath.basename(path)
        if path not in known and name not in found and not name.startswith("ld-"):
            found[name] = Loaded(name=name, path=path, by="LD_PRELOAD")
    return tuple(found.values())


def _note(found: dict[str, Loaded], name: str, path: str, by: str) -> None:
    if name and path and name not in found:
        found[name] = Loaded(name=name, path=path, by=by.removeprefix("cache ") or "default")


def libraries_cached(listing: str) -> tuple[tuple[str, str], ...]:
    """(SONAME, path) of each library in the loader's cache, by ``ldconfig -p``, in its order: the first one wins."""
    return tuple((match[1], match[2]) for match in _CACHED.finditer(listing))


def libraries_mapped(maps: str) -> tuple[str, ...]:
    """Paths of libraries in a process's map of memory, each once."""
    paths = (match[1] for line in maps.splitlines() if (match := _MAP.match(line)))
    return tuple(dict.fromkeys(path for path in paths if _LIBRARY.fullmatch(posixpath.basename(path))))


def why_not_started(errors: str) -> str | None:
    """The loader's own words where it refused a program; ``None`` where it did not."""
    found = (line.strip() for line in errors.splitlines() if _MISSING.search(line))
    return next(found, None)


def refused_file(errors: str) -> str | None:
    """The library that was found, and lacks a version that is needed; ``None`` where that is not the reason."""
    found = _MISSING.search(errors)
    return found["file"] if found else None
