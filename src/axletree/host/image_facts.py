"""Reads from the root of an image where its wheels will run: nothing in it is started, and no link leads out of it."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from axletree.binary.elf.facts import ElfFacts, is_elf, read_elf
from axletree.check.image import ImageFacts, Macros, read_macros
from axletree.core.errors import AxletreeError
from axletree.host.archive import map_file
from axletree.host.facts.elf import newest
from axletree.host.image.inside import read_inside, resolve_inside
from axletree.package.image.system import glibc_version, parse_os_release
from axletree.package.libraries.platforms import libc_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
_PROGRAMS = ("/bin/sh", "/usr/bin/env", "/bin/bash", "/usr/bin/perl", "/bin/busybox")
"""Programs that tell by their loader for which machine and C library an image is."""
_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_LARGEST = 1 << 20
_LARGEST_LIBRARY = 64 << 20


def read_image_facts(root: Path, *, name: str, variables: Mapping[str, str] | None = None) -> ImageFacts:
    """What is known of an image, from its files.

    Args:
        root: its unpacked root file system.
        name: as the recipe has it.
        variables: those that its configuration sets; ``PATH`` says which compiler its stages get.
    """
    sources: dict[str, str] = {}
    like = next((facts for path in _PROGRAMS if (facts := _elf(root, path)) is not None), None)
    libc = None if like is None else libc_of(like)
    path, library = _library(root, "libc.so.6", like)
    glibc = None
    if libc == "musl":
        sources["glibc"] = "the programs of the image need musl"
    elif library is None:
        sources["glibc"] = f"no libc.so.6 in {', '.join(_FOLDERS)} or a folder of a machine in there"
    else:
        glibc = glibc_version(read_inside(root, path, most=_LARGEST_LIBRARY) or b"")
        sources["glibc"] = path if glibc else f"{path} does not state its version"
    path, runtime = _library(root, "libstdc++.so.6", like)
    versions = () if runtime is None else runtime.versions_defined
    sources["glibcxx"] = path if versions else "no libstdc++.so.6 in the folders of libraries"
    gcc, macros = _compiler(root, (variables or {}).get("PATH") or _PATH, sources)
    return ImageFacts(
        name=name,
        title=_title(root),
        libc="musl" if libc == "musl" else "glibc" if glibc else None,
        glibc=glibc,
        glibcxx=newest(versions, "GLIBCXX_"),
        cxxabi=newest(versions, "CXXABI_"),
        gcc=gcc,
        cxx11=macros.cxx11,
        dual=macros.dual,
        sources=sources,
    )


def _title(root: Path) -> str:
    for path in _OS_RELEASE:
        data = read_inside(root, path, most=_LARGEST)
        if data is not None:
            release = parse_os_release(data.decode(errors="replace"))
            return release.pretty_name or release.id
    return ""


def _elf(root: Path, path: str) -> ElfFacts | None:
    """The facts of an ELF file in a root; ``None`` where there is none, or it is damaged."""
    found = resolve_inside(root, path)
    if found is None or not found.is_file():
        return None
    try:
        view = map_file(found)
        return read_elf(view, name=path) if is_elf(bytes(view[:4])) else None
    except AxletreeError:
        return None


def _library(root: Path, soname: str, like: ElfFacts | None) -> tuple[str, ElfFacts | None]:
    """A library of a root for the machine that its programs are for, and its path in there."""
    for folder in _library_folders(root):
        facts = _elf(root, f"{folder}/{soname}")
        if facts is None or facts.kind != "shared":
            continue
        if like is None or (facts.machine, facts.bits, facts.order) == (like.machine, like.bits, like.order):
            return f"{folder}/{soname}", facts
    return "", None


def _library_folders(root: Path) -> Iterator[str]:
    """Folders of libraries: those of machines (``x86_64-linux-gnu``) first, as Debian's loader has it."""
    for folder in ("/lib", "/usr/lib"):
        yield from (f"{folder}/{name}" for name in _names(root, folder) if re.fullmatch(r"\w+-linux-\w+", name))
    yield from _FOLDERS


def _names(root: Path, folder: str) -> list[str]:
    found = resolve_inside(root, folder)
    try:
        return sorted(entry.name for entry in found.iterdir()) if found is not None else []
    except OSError:
        return []


def _compiler(root: Path, search: str, sources: dict[str, str]) -> tuple[int | None, Macros]:
    """Major version of the GCC that ``c++`` is, and what its ``c++config.h`` defines."""
    nothing = Macros(None, None, None)
    program = next(_programs(root, search), None)
    if program is None:
        sources["gcc"] = sources["cxx11"] = f"no c++ or g++ in {search}"
        return None, nothing
    real = resolve_inside(root, program)
    if real is None or "clang" in real.name:
        sources["gcc"] = f"{program} is not GCC"
        sources["cxx11"] = f"{program} was not asked"
        return None, nothing
    prefix = str(PurePosixPath(program).parent.parent)
    named = re.search(r"-(\d+)$", real.name)
    gcc = int(named[1]) if named else _newest_gcc(root, prefix)
    if gcc is None:
        sources["gcc"] = sources["cxx11"] = f"{prefix}/lib/gcc has no version of {program}"
        return None, nothing
    sources["gcc"] = program
    for path in _configs(root, prefix, gcc):
        text = read_inside(root, path, most=_LARGEST)
        if text is not None:
            sources["cxx11"] = path
            return gcc, read_macros(text.decode(errors="replace"))
    sources["cxx11"] = f"no c++config.h of GCC {gcc} in {prefix}/include"
    return gcc, nothing


def _programs(root: Path, search: str) -> Iterator[str]:
    for folder in (part for part in search.split(":") if part.startswith("/")):
        for name in ("c++", "g++"):
            found = resolve_inside(root, f"{folder}/{name}")
            if found is not None and found.is_file():
                yield f"{folder.rstrip('/')}/{name}"


def _versions(root: Path, folder: str) -> dict[int, str]:
    """GCC's folders of versions, ``10`` or ``10.2.1``: major version -> name."""
    return {int(name.partition(".")[0]): name for name in _names(root, folder) if re.fullmatch(r"\d+(\.\d+)*", name)}


def _newest_gcc(root: Path, prefix: str) -> int | None:
    """The newest GCC below a prefix that can compile C++."""
    found = [
        major
        for machine in _names(root, f"{prefix}/lib/gcc")
        for major, name in _versions(root, f"{prefix}/lib/gcc/{machine}").items()
        for base in ("lib", "libexec")
        if resolve_inside(root, f"{prefix}/{base}/gcc/{machine}/{name}/cc1plus") is not None
    ]
    return max(found, default=None)


def _configs(root: Path, prefix: str, gcc: int) -> Iterator[str]:
    """Where a GCC may have its ``c++config.h``: Debian's place, and that of GCC itself."""
    for machine in _names(root, f"{prefix}/lib/gcc"):
        names = {_versions(root, f"{prefix}/include/c++").get(gcc, str(gcc)), str(gcc)}
        for name in sorted(names):
            yield f"{prefix}/include/{machine}/c++/{name}/bits/c++config.h"
            yield f"{prefix}/include/c++/{name}/{machine}/bits/c++config.h"
