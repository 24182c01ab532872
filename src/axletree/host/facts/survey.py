"""Shared libraries of a host by name, wherever builds and programs would find them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec

from axletree.check.host.part import HostLibrary
from axletree.environment.loader import DEFAULT_FOLDERS
from axletree.host.facts.access import Access
from axletree.host.facts.elf import read_soname
from axletree.host.facts.loader import Loader
from axletree.host.facts.names import host_names

if TYPE_CHECKING:
    from collections.abc import Iterable

L = TypeVar("L", bound=HostLibrary)
_FILE = re.compile(r"lib(?P<stem>.+?)\.so(?:\.(?P<version>\d[\w.]*))?")
_HASHED = re.compile(r"-[0-9a-f]{8}(?:\.[\d.]+)?$")
"""What auditwheel adds to names of libraries that it takes into a wheel."""


class LibraryFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that libraries lie in."""

    folder: str
    origin: str


class Survey(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Every library of a host: in the loader's search path, then in the folders of compilers, toolkits and packages."""

    access: Access
    loader: Loader
    places: tuple[LibraryFolder, ...]

    @cached_property
    def files(self) -> tuple[tuple[str, str, str], ...]:
        """(stem, path, origin) of every file, in the loader's order, then in that of the places."""
        found: dict[str, tuple[str, str, str]] = {}
        everywhere = [(path, origin) for path, origin in self.loader.names().values()]
        folders = [LibraryFolder(folder=folder, origin="default folder") for folder in DEFAULT_FOLDERS]
        for place in dict.fromkeys((*folders, *self.places)):
            if place.folder.rstrip("/").endswith("/stubs"):
                continue  # for links without a driver: no program is to load them
            names = self.access.names(place.folder)
            everywhere += [(f"{place.folder.rstrip('/')}/{name}", place.origin) for name in names if ".so" in name]
        for path, origin in everywhere:
            match = _FILE.fullmatch(path.rpartition("/")[2])
            if match and path not in found:
                found[path] = (_HASHED.sub("", match["stem"]), path, origin)
        return tuple(found.values())

    def find(self, stems: re.Pattern[str], kind: type[L]) -> tuple[L, ...]:
        """Libraries whose stem (``cudnn`` of ``libcudnn.so.9``) a pattern fits; each file once, called by its SONAME.

        Args:
            stems: fits the whole stem.
            kind: what to make of each.
        """
        found: dict[str, L] = {}
        for stem, path, origin in self.files:
            if stems.fullmatch(stem) and self.access.is_file(path):
                real = self.access.real(path)
                first = found.get(real)
                if first is None:
                    found[real] = self._library(stem, path, real, origin, kind)
                elif first.path.rpartition("/")[2] != first.soname == path.rpartition("/")[2]:
                    found[real] = msgspec.structs.replace(first, path=path)
        return tuple(found.values())

    def _library(self, stem: str, path: str, real: str, origin: str, kind: type[L]) -> L:
        match = _FILE.fullmatch(real.rpartition("/")[2]) or _FILE.fullmatch(path.rpartition("/")[2])
        version, source = (match["version"] if match else None), "the file name"
        if (version is None or "." not in version) and "/site-packages/" in path:
            stated = self._wheel_version(stem, path)
            version, source = (stated, "its wheel's metadata") if stated else (version, source)
        sources = {
            "name": "the file name",
            "path": origin,
            "origin": "the place where it was found",
            "real": "by resolving symbolic links",
            "soname": "the file",
            "version": source,
        }
        soname = read_soname(self.access.path(real))
        return kind(name=stem, path=path, real=real, soname=soname, version=version, origin=origin, sources=sources)

    def _wheel_version(self, stem: str, path: str) -> str | None:
        """Version of the wheel that brought a library of NVIDIA's, whose files are named by the major version alone."""
        site, _, rest = path.partition("/site-packages/")
        if not rest.startswith("nvidia/"):
            return None
        name = host_names().nvidia_wheels.get(stem, stem.lower().partition("_")[0])
        pattern = re.compile(rf"nvidia_{re.escape(name)}(?:_cu\d+)?-([^-]+)\.dist-info")
        matches = (pattern.fullmatch(entry) for entry in self.access.names(f"{site}/site-packages"))
        return next((match[1] for match in matches if match), None)


def wheel_places(access: Access, site_folders: Iterable[str]) -> tuple[LibraryFolder, ...]:
    """Folders of libraries below folders of installed packages: NVIDIA's, ROCm's, torch's, and ``NAME.libs``."""
    found: list[LibraryFolder] = []
    for site in site_folders:
        folders = [
            folder for pattern in ("nvidia/*/lib", "_rocm_sdk_*/lib", "*.libs") for folder in access.glob(site, pattern)
        ]
        folders += [f"{site}/torch/lib"]
        found += [LibraryFolder(folder=folder, origin="wheel") for folder in folders if access.exists(folder)]
        prefix = site.partition("/lib/python")[0]
        if access.exists(f"{prefix}/lib/libmkl_rt.so.2") or access.glob(f"{prefix}/lib", "libiomp5.so"):
            found.append(LibraryFolder(folder=f"{prefix}/lib", origin="wheel"))
    return tuple(found)
