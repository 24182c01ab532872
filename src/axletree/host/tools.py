"""Programs of the host that stages use: where they are, and a fingerprint that changes when they do.

A fingerprint is what the program says of its version and, for compilers, the target and the C library it builds
against. Asking costs tens of milliseconds a tool, so answers are kept by path, size and time of the file.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, Problem
from axletree.host.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_COMPILERS = frozenset({"c++", "cc", "g++", "gcc", "clang", "clang++"})
_PACKAGES = {"c++": "g++", "cc": "gcc", "nvcc": "the CUDA toolkit", "hipcc": "hipcc"}
_TIMEOUT = 20


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was found."""

    name: str
    path: str
    """As found on PATH; a link is not followed, since programs look at the name they are called by."""
    fingerprint: dict[str, str]
    """What enters keys: version and target, no path."""


def find_tools(names: Iterable[str], *, environ: Mapping[str, str], cache: Path) -> dict[str, Tool]:
    """Find programs on PATH and fingerprint them.

    Args:
        names: Program names.
        environ: Whose PATH is searched.
        cache: File that keeps fingerprints between runs.

    Raises:
        HostError: some are missing; all of them are named.
    """
    paths = {name: shutil.which(name, path=environ.get("PATH", os.defpath)) for name in dict.fromkeys(names)}
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        raise HostError(
            *(
                Problem(
                    message=f"{name} is not on PATH, and a stage of the recipe needs it",
                    hint=f"install it (Debian and Ubuntu: apt-get install {_PACKAGES.get(name, name)})",
                )
                for name in missing
            )
        )
    known = _read_cache(cache)
    tools: dict[str, Tool] = {}
    fresh = False
    for name, path in paths.items():
        assert path is not None  # noqa: S101 (checked above)
        stamp = _stamp(name, path, environ)
        if stamp not in known:
            known[stamp] = _fingerprint(name, path)
            fresh = True
        tools[name] = Tool(name=name, path=path, fingerprint=known[stamp])
    if fresh:
        replace_file(cache, msgspec.json.encode(known))
    return tools


def _stamp(name: str, path: str, environ: Mapping[str, str]) -> str:
    """What changes when a program does, and for a compiler when the linker does."""
    files = [Path(path).resolve()]
    linker = shutil.which("ld", path=environ.get("PATH", os.defpath)) if name in _COMPILERS else None
    if linker is not None:
        files.append(Path(linker).resolve())
    parts = [f"{file} {facts.st_size} {facts.st_mtime_ns}" for file in files for facts in [file.stat()]]
    return " ".join([name, path, *parts])


def _read_cache(cache: Path) -> dict[str, dict[str, str]]:
    try:
        return msgspec.json.decode(cache.read_bytes(), type=dict[str, dict[str, str]])
    except (OSError, msgspec.MsgspecError):
        return {}


def _fingerprint(name: str, path: str) -> dict[str, str]:
    facts = {"version": _ask(path, "--version")}
    if name in _COMPILERS:
        facts["target"] = _ask(path, "-dumpmachine")
        facts["libc"] = "-".join(platform.libc_ver())
        linker = _ask(path, "-print-prog-name=ld")
        found = shutil.which(linker)
        if found is not None:
            facts["linker"] = _ask(found, "--version")
    return facts


def _ask(path: str, option: str) -> str:
    """First line with a digit of what a program answers; some print a banner first."""
    try:
        answer = subprocess.run(
            [path, option],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{path} {option} could not be run: {error}", hint="repair or remove that program") from error
    lines = [line.strip() for line in answer.stdout.splitlines() if line.strip()]
    if option != "--version":
        return lines[0] if lines else ""
    versions = [line for line in lines if any(character.isdigit() for character in line)]
    release = [line for line in versions if "release" in line.lower()]  # nvcc: the banner has the copyright's years
    return (release or versions or [""])[0]
