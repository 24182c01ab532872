"""Programs of the host that stages use: where they are, and a fingerprint that changes when they do.

A fingerprint is what the program says of its version and, for compilers, the target and the C library it builds
against. Asking costs tens of milliseconds a tool, so answers are kept by path, size and time of the file. Not those of
scripts and of wrappers such as ccache: what they start changes while they do not.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, Problem
from axletree.host.files import read_json, replace_file
from axletree.host.run import finish, output_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where stages find programs that they did not declare."""
TOOLCHAIN = ("cc", "c++")
"""Programs that builds use without declaring them: setuptools, CMake and make look for them by these names."""
_WRAPPERS = frozenset({"ccache", "sccache", "distcc", "icecc"})
"""Programs that stand in for the compilers they are called by the names of."""
_COMPILERS = frozenset({"c++", "cc", "g++", "gcc", "clang", "clang++"})
PACKAGES = {
    **{
        name: name
        for name in ("bison", "clang", "cmake", "flex", "g++", "gcc", "gfortran", "git", "hipcc", "m4", "make")
    },
    **{
        name: name
        for name in ("autoconf", "automake", "meson", "nasm", "patch", "patchelf", "perl", "pkg-config", "swig")
    },
    **{name: name for name in ("cargo", "ccache", "curl", "rsync", "rustc", "unzip", "yasm", "zip")},
    "c++": "g++",
    "cc": "gcc",
    "clang++": "clang",
    "ld.lld": "lld",
    "ninja": "ninja-build",
    "protoc": "protobuf-compiler",
}
"""Tool -> the package of Debian and Ubuntu that has it."""
_TIMEOUT = 20


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was found."""

    name: str
    path: str
    """As found on PATH; a link is not followed, since programs look at the name they are called by."""
    fingerprint: dict[str, str]
    """What enters keys: version and target, or the digest of the file where it tells no version; no path."""


def find_tools(
    names: Iterable[str], *, environ: Mapping[str, str], cache: Path, only_plan: bool = False
) -> dict[str, Tool]:
    """Find programs on PATH and fingerprint them.

    Args:
        names: Program names.
        environ: Whose PATH is searched.
        cache: File that keeps fingerprints between runs.
        only_plan: Whether a missing one gets a tool without a path: a plan runs nothing.

    Raises:
        HostError: some are missing; all of them are named.
    """
    paths = {name: shutil.which(name, path=environ.get("PATH", os.defpath)) for name in dict.fromkeys(names)}
    paths |= _behind_rustup(paths, environ)
    missing = [name for name, path in paths.items() if path is None]
    if missing and not only_plan:
        raise HostError(
            *(
                Problem(
                    message=f"a stage in the recipe needs {name}, which is not on PATH",
                    hint=how_to_install(name),
                )
                for name in missing
            )
        )
    found = _tools({name: path for name, path in paths.items() if path is not None}, environ=environ, cache=cache)
    return found | {name: Tool(name=name, path="", fingerprint={}) for name in missing}


def _behind_rustup(paths: Mapping[str, str | None], environ: Mapping[str, str]) -> dict[str, str]:
    """The programs of a toolchain that rustup's links stand for.

    Which one a link starts depends on the user's home, which stages do not have, and changes while the link does not.
    """
    found: dict[str, str] = {}
    for name, path in paths.items():
        rustup = Path(path).resolve() if path is not None else None
        if rustup is None or rustup.name != "rustup" or name == "rustup":
            continue
        here = {**environ, "PATH": os.defpath}
        # Not in the user's folder: a file there may ask for another toolchain, and rustup would install that.
        said = output_of([rustup, "which", name], environ=here, seconds=_TIMEOUT, cwd=Path("/")).strip()
        if os.access(said, os.X_OK):
            found[name] = said
    return found


def how_to_install(name: str) -> str:
    """What brings a program, for people."""
    if name == "nvcc":
        return "install the CUDA toolkit, and put its bin folder on PATH"
    package = PACKAGES.get(name)
    return f"install it (Debian and Ubuntu: apt-get install {package})" if package else "install it"


def find_toolchain(
    names: Iterable[str] = TOOLCHAIN, *, cache: Path, folders: Iterable[str] = SYSTEM_PATH
) -> dict[str, Tool]:
    """The compilers that stages find without declaring them; those that are there.

    Args:
        names: Their names.
        cache: File that keeps fingerprints between runs.
        folders: Where stages look.
    """
    path = os.pathsep.join(folders)
    return _tools(find_programs(names, path), environ={"PATH": path}, cache=cache)


def find_programs(names: Iterable[str], path: str, *, but_for: frozenset[str] = frozenset()) -> dict[str, str]:
    """Which of some programs are on a PATH, and where: name -> path, links not followed.

    Args:
        names: Program names.
        path: Folders, as in the variable.
        but_for: Names of programs that do not count when a link leads to them.
    """
    found: dict[str, str] = {}
    for name in names:
        hits = (shutil.which(name, path=folder) for folder in path.split(os.pathsep) if folder)
        real = (hit for hit in hits if hit is not None and Path(hit).resolve().name not in but_for)
        first = next(real, None)
        if first is not None:
            found[name] = first
    return found


def _tools(paths: Mapping[str, str], *, environ: Mapping[str, str], cache: Path) -> dict[str, Tool]:
    known = read_json(cache, dict[str, dict[str, str]]) or {}
    tools: dict[str, Tool] = {}
    fresh = False
    for name, path in paths.items():
        if _stands_for_another(path):
            tools[name] = Tool(name=name, path=path, fingerprint=_fingerprint(name, path, environ))
            continue
        stamp = _stamp(name, path, environ)
        if stamp not in known:
            known[stamp] = _fingerprint(name, path, environ)
            fresh = True
        tools[name] = Tool(name=name, path=path, fingerprint=known[stamp])
    if fresh:
        replace_file(cache, msgspec.json.encode(known))
    return tools


def _stands_for_another(path: str) -> bool:
    """Whether a program may change while its file does not: a script, or a compiler's wrapper."""
    file = Path(path).resolve()
    try:
        with file.open("rb") as stream:
            return file.name in _WRAPPERS or stream.read(2) == b"#!"
    except OSError:  # it may be run but not read
        return True


def _stamp(name: str, path: str, environ: Mapping[str, str]) -> str:
    """What changes when a program does, and for a compiler when the linker does."""
    files = [Path(path).resolve()]
    linker = shutil.which("ld", path=environ.get("PATH", os.defpath)) if name in _COMPILERS else None
    if linker is not None:
        files.append(Path(linker).resolve())
    parts = [f"{file} {facts.st_size} {facts.st_mtime_ns}" for file in files for facts in [file.stat()]]
    return " ".join([name, path, *parts])


def _fingerprint(name: str, path: str, environ: Mapping[str, str]) -> dict[str, str]:
    facts = {"version": _ask(path, "--version", environ)}
    if not facts["version"]:
        with Path(path).open("rb") as stream:
            facts["sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
    if name in _COMPILERS:
        facts["target"] = _ask(path, "-dumpmachine", environ)
        facts["libc"] = "-".join(platform.libc_ver())
        linker = _ask(path, "-print-prog-name=ld", environ)
        found = shutil.which(linker, path=environ.get("PATH", os.defpath))
        if found is not None:
            facts["linker"] = _ask(found, "--version", environ)
    return facts


def _ask(path: str, option: str, environ: Mapping[str, str]) -> str:
    """First line with a digit of what a program answers; some print a banner first."""
    variables = {"PATH": os.pathsep.join([environ.get("PATH", ""), *SYSTEM_PATH]).lstrip(os.pathsep), "LC_ALL": "C"}
    done = finish(
        [path, option], environ=variables, seconds=_TIMEOUT, hint="reinstall this program, or remove it from PATH"
    )
    lines = [line.strip() for line in done.out.decode(errors="replace").splitlines() if line.strip()]
    if option != "--version":
        return lines[0] if lines else ""
    versions = [line for line in lines if any(character.isdigit() for character in line)]
    release = [line for line in versions if "release" in line.lower()]  # nvcc: the banner has the copyright's years
    return (release or versions or [""])[0]
