"""Runs compilers, linkers and probes and gives what they print; what it means is :mod:`axletree.environment`'s."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import HostError
from axletree.environment import gcc
from axletree.environment.gcc import SearchList, headers_entered, headers_read, search_lists
from axletree.environment.linker import libraries_linked
from axletree.environment.loader import Loaded, libraries_loaded, libraries_mapped
from axletree.host.run import finish

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.environment.linker import Linked

Kind = Literal["gcc", "clang", "nvcc", "hipcc"]
SEARCHES = (
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_RUN_PATH",
    "GCC_EXEC_PREFIX", "COMPILER_PATH", "CCC_OVERRIDE_OPTIONS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
    "HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND", "CPPFLAGS", "CXXFLAGS", "LDFLAGS",
)  # fmt: skip
"""Variables that change where compilers, linkers and the loader look."""
_NAMES = ("c++", "g++", "clang++", "nvcc", "hipcc")
_LOOK: dict[Kind, list[str]] = {
    "gcc": ["-x", "c++", "-v", "-H"],
    "clang": ["-x", "c++", "-v", "-H"],
    "nvcc": ["-x", "cu", "-Xcompiler", "-v,-H"],
    "hipcc": ["-x", "hip", "--cuda-host-only", "-v", "-H"],
}
"""Options to compile as C++ and say which folders are searched and which headers are read."""
_SECONDS = 120
_PROBE = """#include <fstream>
#include <iostream>
#include <string>
int main() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) std::cout << line << '\\n';
}
"""


class FoundCompiler(msgspec.Struct, frozen=True, kw_only=True):
    """A compiler on PATH."""

    name: str
    path: str
    kind: Kind
    version: str


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What a program gave."""

    code: int
    out: str
    err: str

    @property
    def trouble(self) -> str:
        """Its last words, where it failed."""
        lines = [line.strip() for line in (self.err + self.out).splitlines() if line.strip()]
        sure = [line for line in lines if re.search(r"\berror\b|cannot find", line) and "Configured with" not in line]
        return (sure or lines[-1:] or [f"exit code {self.code}, without a message"])[0][:300]


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A probe that was started."""

    ran: Ran
    loaded: tuple[Loaded, ...]
    mapped: tuple[str, ...]


def find_compilers(environ: Mapping[str, str], *, only: Sequence[str] = ()) -> tuple[FoundCompiler, ...]:
    """The compilers that a build would find: ``$CXX``, then the usual names on PATH, each program once.

    ``only`` are names or paths of those that are wanted instead.
    """
    names = only or [*shlex.split(environ.get("CXX", ""))[:1], *_NAMES]
    found: dict[tuple[str, Kind], FoundCompiler] = {}
    for name in names:
        path = shutil.which(name, path=environ.get("PATH", os.defpath))
        if path is None:
            continue
        compiler = _compiler(Path(name).name, path, environ)
        if compiler is not None:
            found.setdefault((os.path.realpath(path), compiler.kind), compiler)
    return tuple(found.values())


def _compiler(name: str, path: str, environ: Mapping[str, str]) -> FoundCompiler | None:
    ran = call([path, "--version"], environ)
    text = ran.out
    if "nvcc" in name:
        kind: Kind = "nvcc"
    elif "hipcc" in name:
        kind = "hipcc"
    else:
        kind = "clang" if "clang" in text else "gcc"
    pattern = {"nvcc": r"\bV(\d[\d.]*)", "hipcc": r"HIP version: ([\d.]+)"}.get(kind, r"(\d+\.\d+\.\d+)")
    version = re.search(pattern, text) or re.search(r"(\d+\.\d+[\d.]*)", text)
    if ran.code and version is None:
        return None
    return FoundCompiler(name=name, path=path, kind=kind, version=version[1] if version else "")


def call(command: Sequence[str], environ: Mapping[str, str]) -> Ran:
    """Run a program with exactly these variables, messages in English."""
    env = {name: value for name, value in environ.items() if not name.startswith("LC_")} | {"LC_ALL": "C"}
    try:
        done = finish(command, environ=env, seconds=_SECONDS)
    except HostError as error:
        return Ran(code=127, out="", err=str(error))
    return Ran(code=done.code, out=done.out.decode(errors="replace"), err=done.err.decode(errors="replace"))


def look(
    compiler: FoundCompiler,
    headers: Iterable[str],
    environ: Mapping[str, str],
    scratch: Path,
) -> tuple[SearchList | None, tuple[str, ...], Ran]:
    """Preprocess a source that includes these headers: where the compiler looks, and what it reads."""
    source, output = scratch / "look.cpp", scratch / "look.out"
    output.unlink(missing_ok=True)
    source.write_text("".join(f"#include <{name}>\n" for name in headers))
    asked = _flags(environ, ("CPPFLAGS", "CXXFLAGS"), ("-I", "-isystem"))
    ran = call([compiler.path, *asked, *_LOOK[compiler.kind], "-E", str(source), "-o", str(output)], environ)
    text = ran.err + ran.out
    entered = headers_entered(output.read_text(errors="replace")) if output.exists() else ()
    lists = search_lists(text)
    # Where it failed on the way there is no output, but what -H said until then.
    headers = entered or tuple(header.path for header in headers_read(text))
    return (lists[-1] if lists else None), headers, ran


def compile_probe(compiler: FoundCompiler, environ: Mapping[str, str], scratch: Path) -> tuple[Path, Ran]:
    """Compile a program that shows its map of memory: the object file."""
    source, thing = scratch / "probe.cpp", scratch / "probe.o"
    source.write_text(_PROBE)
    return thing, call(
        [
            compiler.path,
            *(["-x", "c++"] if compiler.kind in {"nvcc", "hipcc"} else []),
            "-c",
            str(source),
            "-o",
            str(thing),
        ],
        environ,
    )


def link_probe(
    compiler: FoundCompiler, thing: Path, program: Path, environ: Mapping[str, str], *, libraries: Sequence[str] = ()
) -> tuple[tuple[Linked, ...], Ran]:
    """Link an object file, and perhaps more libraries: what the linker took."""
    program.unlink(missing_ok=True)
    names = [f"-l{name}" for name in libraries]
    trace, keep, shared = ["-Wl,--trace"], ["-Wl,--no-as-needed"], list[str]()
    if compiler.kind == "nvcc":
        trace, keep, shared = ["-Xlinker", "--trace"], ["-Xlinker", "--no-as-needed"], ["-cudart", "shared"]
    # What the probe itself does not use is linked all the same: it is what programs will link.
    folders = _flags(environ, ("LDFLAGS",), ("-L",))
    ran = call([compiler.path, *shared, *keep, *folders, str(thing), "-o", str(program), *names, *trace], environ)
    return libraries_linked(ran.out + "\n" + ran.err), ran


def _flags(environ: Mapping[str, str], variables: Sequence[str], options: Sequence[str]) -> list[str]:
    """Where the variables of build systems tell compilers to look: CMake, Autoconf and setuptools pass them on."""
    found: list[str] = []
    for variable in variables:
        try:
            words = shlex.split(environ.get(variable, ""))
        except ValueError:  # a quote that is not closed
            continue
        for number, word in enumerate(words):
            if word in options:
                found += words[number : number + 2]
            elif word.startswith(tuple(options)):
                found.append(word)
    return found


def library_folders(compiler: FoundCompiler, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where the driver looks for libraries."""
    path = compiler.path if compiler.kind in {"gcc", "clang"} else shutil.which("c++", path=environ.get("PATH"))
    if path is None:
        return ()
    folders = gcc.library_folders(call([path, "-print-search-dirs"], environ).out) or ()
    return tuple(dict.fromkeys(map(os.path.realpath, folders)))


def run_probe(program: Path, environ: Mapping[str, str]) -> ProbeRun:
    """Start a probe and see what the loader takes."""
    beside = program.with_name("loader")
    for old in beside.parent.glob("loader.*"):
        old.unlink()
    ran = call([str(program)], {**environ, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(beside)})
    debug = "".join(path.read_text(errors="replace") for path in sorted(beside.parent.glob("loader.*")))
    return ProbeRun(ran=ran, loaded=libraries_loaded(debug), mapped=libraries_mapped(ran.out))


def names_below(folder: str, *, most: int = 30_000) -> Iterator[str]:
    """Names of files as an ``#include`` has them, those of the folder itself first; not endless."""
    waiting = [""]
    count = 0
    while waiting:
        deeper: list[str] = []
        for below in waiting:
            try:
                entries = sorted(os.scandir(os.path.join(folder, below)), key=lambda entry: entry.name)  # noqa: PTH118
            except OSError:
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and entry.is_dir() and not below):
                    deeper.append(f"{below}{entry.name}/")
                else:
                    yield f"{below}{entry.name}"
                count += 1
                if count > most:
                    return
        waiting = deeper
