"""nvcc and hipcc: compilers that drive others."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.check.host.toolchain import Compiler
from axletree.host.facts.access import Seen, existing, read_version
from axletree.host.facts.compilers import WRAPPERS, read_includes, real_folders, shlex_words
from axletree.host.facts.names import host_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.host.facts.access import Access, Answer

_SECONDS = 60.0
_CUDA = "__global__ void nothing() {}\n"
_HIP = "#include <hip/hip_runtime.h>\n__global__ void nothing() {}\n"
_STANDARDS = ("c++17", "c++20", "c++23")


def find_gpu_compilers(access: Access) -> tuple[Compiler, ...]:
    """Every nvcc and hipcc, in the order in which builds look: variables, PATH, where vendors install."""
    with tempfile.TemporaryDirectory(prefix="axletree-probe-", dir=existing(access.path(access.tmp))) as name:
        folder = Path(name)
        found: list[Compiler] = []
        behind: set[str] = set()
        for path, origin in _places(access, "nvcc"):
            if access.real(path) in behind:
                continue  # a wrapper that came before starts it
            found.append(_ask_nvcc(access, path, origin, folder))
            root = nvcc_root(access, path)
            behind |= {access.real(f"{root}/bin/nvcc")} if root else set()
        found += [_ask_hipcc(access, path, origin, folder) for path, origin in _places(access, "hipcc")]
    return tuple(found)


def nvcc_root(access: Access, path: str) -> str | None:
    """Folder of the toolkit that an nvcc takes its parts from: ``TOP`` of its dry run, which sees through wrappers."""
    top = re.search(r"^#\$ TOP=(.*)$", access.ask(path, "--dryrun", "-x", "cu", "-E", "/dev/null").err, re.MULTILINE)
    return access.real(top[1].strip()) if top else None


def _places(access: Access, name: str) -> Iterator[tuple[str, str]]:
    """Programs and what leads to each; one that two lead to comes once."""
    seen: set[str] = set()
    for origin, rest in host_names().compiler_places[name].items():
        if origin == "PATH":
            path = access.which(name)
        elif origin.startswith("/"):
            path = access.which(origin + rest)
        else:
            words = shlex_words(access.environ.get(origin, ""))
            words = words[1:] if len(words) > 1 and words[0].rpartition("/")[2] in WRAPPERS else words
            path = access.which(words[0].rstrip("/") + rest if rest else words[0]) if words else None
        if path is not None and path.rpartition("/")[2] in {name, f"{name}.bin"} and access.real(path) not in seen:
            seen.add(access.real(path))
            yield path, origin


def _ask_nvcc(access: Access, path: str, origin: str, folder: Path) -> Compiler:
    seen = Seen()
    _begin(access, seen, path, origin, access.ask(path, "--version"))
    if "version" not in seen.values:
        return _compiler(seen, name="nvcc", kind="nvcc", language="cuda", path=path)
    exact = re.search(r"V(\d+(?:\.\d+)+)", access.ask(path, "--version").out)
    if exact:
        seen.put("version", "--version", exact[1])
    source = folder / "nothing.cu"
    source.write_text(_CUDA)
    dry = access.ask(path, "--dryrun", "-c", str(source), "-o", str(folder / "nothing.o"), cwd=folder)
    _host_compiler(access, seen, dry)
    libraries = re.search(r"^#\$ LIBRARIES=(.*)$", dry.err, re.MULTILINE)
    folders = re.findall(r'-L([^"\s]+)', libraries[1]) if libraries else []
    seen.put(
        "libraries",
        "--dryrun: its own folders, searched before those of the host compiler",
        real_folders(access, folders) or None,
    )
    listed = access.ask(path, "-E", "-Xcompiler", "-v", str(source), "-o", str(folder / "nothing.ii"), cwd=folder)
    includes = read_includes(access, listed.err)
    seen.put("includes", "-E -Xcompiler -v" + ("" if includes else f": {listed.trouble}"), includes)
    accepted = [
        each
        for each in _STANDARDS
        if access.ask(path, "--dryrun", f"-std={each}", "-c", str(source), cwd=folder).code == 0
    ]
    seen.put("standards", "--dryrun -std=...", tuple(accepted))
    built = access.ask(path, "-c", str(source), "-o", str(folder / "nothing.o"), seconds=_SECONDS, cwd=folder)
    trouble = "" if built.code == 0 else f": {_error_line(built)}"
    seen.put("works", f"compiling an empty kernel{trouble}", None if built.code is None else built.code == 0)
    return _compiler(seen, name="nvcc", kind="nvcc", language="cuda", path=path)


def _host_compiler(access: Access, seen: Seen, dry: Answer) -> None:
    """Which compiler nvcc runs, and as which it takes it: its dry run names both."""
    command = re.search(r'^#\$ "?([^"\s]+)"? [^\n]*-D__CUDACC__', dry.err, re.MULTILINE)
    name = command[1] if command else None
    found = access.which(name) if name else None
    trouble = "" if name else f": {_error_line(dry)}"
    seen.put("host_compiler", f"--dryrun{trouble}", found or name)
    stated = re.search(r"--(gnu|clang)_version=(\d+)", dry.err)
    if stated is None:
        seen.put("host_kind", f"--dryrun{trouble}", None)
        seen.put("host_version", f"--dryrun{trouble}", None)
        return
    number = int(stated[2])
    seen.put("host_kind", "--dryrun", "gcc" if stated[1] == "gnu" else "clang")
    version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    seen.put("host_version", f"--dryrun: {stated[0]}", version)


def _error_line(answer: Answer) -> str:
    """The first line with an error in it; the last where none has."""
    lines = [line.strip() for line in f"{answer.err}\n{answer.out}".splitlines() if "error" in line.lower()]
    return lines[0][:300] if lines else answer.trouble


def _ask_hipcc(access: Access, path: str, origin: str, folder: Path) -> Compiler:
    seen = Seen()
    said = access.ask(path, "--version")
    _begin(access, seen, path, origin, said)
    exact = re.search(r"HIP version:\s*(\d+(?:\.\d+)+)", said.out)
    if exact:
        seen.put("version", "the HIP version in --version", exact[1])
    source = folder / "nothing.hip"
    source.write_text(_HIP)
    if "version" in seen.values:
        target = re.search(r"^Target:\s*(\S+)", said.out, re.MULTILINE)
        seen.put("target", "--version", target[1] if target else None)
        options = ("--cuda-host-only", "-x", "hip", "-E", "-v")
        listed = access.ask(path, *options, str(source), "-o", str(folder / "nothing.i"), seconds=_SECONDS, cwd=folder)
        includes = read_includes(access, listed.err)
        seen.put("includes", " ".join(options) + ("" if includes else f": {_error_line(listed)}"), includes)
        clang = re.search(r'^\s*"?([^"\s]+)"? -cc1 ', listed.err, re.MULTILINE)
        seen.put("host_compiler", " ".join(options), clang[1] if clang else None)
        seen.put("host_kind", "hipcc always runs clang", "clang")
        version = re.search(r"clang version (\d+(?:\.\d+)+)", said.out)
        seen.put("host_version", "--version", version[1] if version else None)
        arch = "--offload-arch=gfx90a"
        built = access.ask(
            path, arch, "-x", "hip", "-c", str(source), "-o", str(folder / "nothing.o"), seconds=_SECONDS, cwd=folder
        )
        trouble = "" if built.code == 0 else f": {_error_line(built)}"
        works = None if built.code is None else built.code == 0
        seen.put("works", f"compiling an empty kernel with {arch}{trouble}", works)
    return _compiler(seen, name="hipcc", kind="hipcc", language="hip", path=path)


def _begin(access: Access, seen: Seen, path: str, origin: str, said: Answer) -> None:
    line, version = read_version(f"{said.out}\n{said.err}") if said.code == 0 else (None, None)
    seen.put("version", "--version" if version else f"--version: {said.trouble}", version)
    seen.put("release", "--version", line)
    seen.put("real", "by resolving symbolic links", access.real(path))
    seen.put("origin", "the place where it was found", origin)


def _compiler(seen: Seen, *, name: str, kind: str, language: str, path: str) -> Compiler:
    for field in ("name", "path", "kind", "language"):
        seen.sources[field] = "the compiler searched for"
    seen.rest(Compiler, "determined by its host compiler, or it cannot be run")
    return Compiler(**seen.values, name=name, kind=kind, language=language, path=path, sources=seen.sources)
