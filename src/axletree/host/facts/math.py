"""BLAS, MAGMA and OpenMP libraries, and libraries of which several lie in the search path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.check.host.libraries import Copies, Libraries, MathLibrary
from axletree.check.host.part import HostLibrary
from axletree.host.facts.access import Seen
from axletree.host.facts.elf import cxx_runtime
from axletree.host.facts.names import host_names, library_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.host.facts.access import Access
    from axletree.host.facts.loader import Loader
    from axletree.host.facts.survey import Survey

_PLAIN = re.compile(r"lib.+\.so(?:\.\d+)?")


def library_facts(access: Access, loader: Loader, survey: Survey, includes: Iterable[str]) -> Libraries:
    """Libraries that decide how fast a build's result is, or whether it works.

    Args:
        access: the host.
        loader: its loader.
        survey: its libraries.
        includes: folders to look for headers in.
    """
    seen = Seen()
    folders = tuple(dict.fromkeys(includes))
    where = "the loader's search path, compilers' folders, conda, wheels, /opt/intel"
    found = survey.find(library_names("math"), MathLibrary)
    seen.put("math", where, tuple(_with_headers(access, library, folders) for library in found))
    seen.put("openmp", where, survey.find(library_names("openmp"), HostLibrary))
    seen.put("copies", where, _copies(access, survey))
    preload = access.environ.get("LD_PRELOAD", "")
    seen.put("preload", "LD_PRELOAD", tuple(re.split(r"[:\s]+", preload.strip())) if preload.strip() else ())
    seen.put("search_path", "LD_LIBRARY_PATH", loader.variable)
    missing = tuple(folder for folder in loader.variable if not access.exists(folder))
    seen.put("search_path_missing", "the folders in LD_LIBRARY_PATH", missing)
    return Libraries(**seen.values, sources=seen.sources)


def _with_headers(access: Access, library: MathLibrary, folders: tuple[str, ...]) -> MathLibrary:
    """Where its headers are: beside it first, then on the compiler's path."""
    names = next((names for stem, names in host_names().math_headers.items() if library.name.startswith(stem)), ())
    folder = library.path.rpartition("/")[0]
    near = tuple(f"{folder}{up}/include" for up in ("/..", "/../..", "/../../.."))
    where = near if library.origin == "wheel" else (*near, *folders)  # nothing is built with what a wheel took in
    found = next((each for each in where for name in names if access.is_file(f"{each}/{name}")), None)
    static = access.is_file(f"{folder}/lib{library.name}.a")
    sources = {
        **library.sources,
        "headers": "its folder and the compiler's folders",
        "static": "an archive in the same folder",
    }
    place = access.real(found) if found else "none"
    return msgspec.structs.replace(library, headers=place if names else None, static=static, sources=sources)


def _copies(access: Access, survey: Survey) -> tuple[Copies, ...]:
    """Libraries by SONAME of which there are several files.

    The loader looks for a file of that name, so one that is called otherwise, as a stub is, can't be taken for another.
    """
    by_name: dict[str, list[HostLibrary]] = {}
    for library in survey.find(library_names("copies"), HostLibrary):
        named = library.soname == library.path.rpartition("/")[2]
        if library.soname and named and _PLAIN.fullmatch(library.soname):
            by_name.setdefault(library.soname, []).append(library)
    found: list[Copies] = []
    for soname, libraries in sorted(by_name.items()):
        if len(libraries) < 2:
            continue
        if soname == "libstdc++.so.6":
            libraries = [_cxx(access, library) for library in libraries]  # noqa: PLW2901 (the same, with versions)
        versions = {library.version for library in libraries}
        differ = len(versions) > 1 or len({_size(access, library) for library in libraries}) > 1
        sources = {
            "libraries": "SONAMEs of files in the search path and in packages",
            "differ": "the versions and sizes of the files",
        }
        found.append(Copies(soname=soname, libraries=tuple(libraries), differ=differ, sources=sources))
    return tuple(found)


def _cxx(access: Access, library: HostLibrary) -> HostLibrary:
    runtime = cxx_runtime(access, library.path, found_by="")
    if runtime.glibcxx is None:
        return library
    sources = {**library.sources, "version": "the library's newest GLIBCXX symbol version"}
    return msgspec.structs.replace(library, version=f"GLIBCXX_{runtime.glibcxx}", sources=sources)


def _size(access: Access, library: HostLibrary) -> int | None:
    try:
        return access.path(library.path).stat().st_size
    except OSError:
        return None
