"""Where the dynamic loader looks: ``LD_LIBRARY_PATH``, its cache, the default folders; and what lies there."""

from __future__ import annotations

import re
from functools import cached_property

import msgspec

from axletree.environment.loader import DEFAULT_FOLDERS, libraries_cached
from axletree.host.facts.access import Access
from axletree.host.facts.elf import elf_class

_NATIVE = "/proc/self/exe"


class LoaderLibrary(msgspec.Struct, frozen=True, kw_only=True):
    """A library in the loader's search path."""

    path: str
    origin: str
    """``LD_LIBRARY_PATH``, ``loader cache`` or ``default folder``."""


class Loader(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The loader's search path of a host, for a program without one of its own."""

    access: Access

    source: str = "LD_LIBRARY_PATH, ldconfig -p, default folders"

    @cached_property
    def variable(self) -> tuple[str, ...]:
        """Folders of ``LD_LIBRARY_PATH``; an empty entry is the working folder."""
        text = self.access.environ.get("LD_LIBRARY_PATH", "")
        return tuple(dict.fromkeys(part or "." for part in re.split("[:;]", text))) if text else ()

    @cached_property
    def cache(self) -> dict[str, tuple[str, ...]]:
        """Soname -> paths that the cache holds for this machine, the first wins."""
        program = self.access.which("ldconfig") or next(
            (path for path in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if self.access.is_file(path)), None
        )
        if program is None:
            return {}
        native = elf_class(self.access.path(_NATIVE)) or elf_class(self.access.path("/bin/sh"))
        found: dict[str, list[str]] = {}
        for name, path in libraries_cached(self.access.ask(program, "-p").out):
            kind = elf_class(self.access.path(path))
            if kind is None or native is None or kind == native:
                found.setdefault(name, []).append(path)
        return {name: tuple(dict.fromkeys(paths)) for name, paths in found.items()}

    def find(self, soname: str) -> str | None:
        """What the loader takes for a name; ``None`` where it finds none."""
        return next((each.path for each in self.find_all(soname)), None)

    def find_all(self, soname: str) -> tuple[LoaderLibrary, ...]:
        """All files of that name in the search path, in its order; one file under two names comes once."""
        places = [(f"{folder.rstrip('/')}/{soname}", "LD_LIBRARY_PATH") for folder in self.variable]
        places += [(path, "loader cache") for path in self.cache.get(soname, ())]
        places += [(f"{folder}/{soname}", "default folder") for folder in DEFAULT_FOLDERS]
        found: dict[str, LoaderLibrary] = {}
        for path, origin in places:
            if self.access.is_file(path):
                found.setdefault(self.access.real(path), LoaderLibrary(path=path, origin=origin))
        return tuple(found.values())

    def names(self) -> dict[str, tuple[str, str]]:
        """Every file name of a library in the search path -> the folder that comes first, and what it is from."""
        found: dict[str, tuple[str, str]] = {}
        for folder in self.variable:
            for name in self.access.names(folder):
                if ".so" in name:
                    found.setdefault(name, (f"{folder.rstrip('/')}/{name}", "LD_LIBRARY_PATH"))
        for name, paths in self.cache.items():
            found.setdefault(name, (paths[0], "loader cache"))
        return found
