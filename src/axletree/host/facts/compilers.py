"""Compilers of a host: which there are, and what they do when nothing is said, asked of each."""

from __future__ import annotations

import re
import shlex
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from axletree.check.host.toolchain import Compiler
from axletree.environment.gcc import library_folders, search_lists
from axletree.host.facts.access import Seen, existing, read_version
from axletree.host.facts.elf import cxx_runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.host.facts.access import Access

WRAPPERS = frozenset({"ccache", "sccache", "distcc", "icecc"})
_VARIABLES = (("CC", "c"), ("CXX", "c++"), ("CUDAHOSTCXX", "c++"))
_NAMES = (("cc", "c"), ("gcc", "c"), ("clang", "c"), ("c++", "c++"), ("g++", "c++"), ("clang++", "c++"))
_NUMBERED = re.compile(r"(?:g\+\+|clang\+\+)-\d+|[\w.-]+-conda-linux-gnu-(?:g|clang)\+\+")
_MOST = 16
"""Compilers that are asked; more are on no machine that was seen."""
_C = '#include <stdio.h>\nint main(void) { return puts("42") < 0; }\n'
_CXX = '#include <iostream>\n#include <string>\nint main() { std::cout << std::string("4") + "2\\n"; }\n'
_OPENMP = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n"
_STANDARDS = ("c++17", "c++20", "c++23")
_SECONDS = 30.0


class CompilerCandidate(NamedTuple):
    """A compiler that may be asked."""

    name: str
    language: str
    command: tuple[str, ...]
    """The compiler itself, with the arguments that a variable gives it."""
    wrapper: str | None
    origin: str


def find_compilers(access: Access) -> tuple[Compiler, ...]:
    """GCC and Clang: those of ``CC``, ``CXX`` and ``CUDAHOSTCXX``, then those on PATH, each program once."""
    candidates = list(_unique(access, _candidates(access)))[:_MOST]
    with ThreadPoolExecutor(max_workers=4) as pool:
        return tuple(pool.map(lambda each: _ask(access, each), candidates))


def _candidates(access: Access) -> Iterator[CompilerCandidate]:
    for variable, language in _VARIABLES:
        words = shlex_words(access.environ.get(variable, ""))
        if words:
            yield _candidate(access, words, language, variable)
    for name, language in _NAMES:
        path = access.which(name)
        if path is not None:
            yield _candidate(access, [path], language, "PATH")
    numbered = {name for folder in access.search for name in access.names(folder) if _NUMBERED.fullmatch(name)}
    for name in sorted(numbered, key=_by_number):
        path = access.which(name)
        if path is not None:
            yield _candidate(access, [path], "c++", "PATH")


def _by_number(name: str) -> tuple[str, int]:
    stem, _, number = name.rpartition("-")
    return (stem, -int(number)) if number.isdigit() else (name, 0)


def shlex_words(text: str) -> list[str]:
    """Words of a command as a shell takes them; as blanks part them where quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _candidate(access: Access, words: Sequence[str], language: str, origin: str) -> CompilerCandidate:
    """What a command starts: a wrapper's name before the compiler's, or a wrapper that has its name."""
    wrapper = words[0].rpartition("/")[2] if words[0].rpartition("/")[2] in WRAPPERS and len(words) > 1 else None
    words = words[1:] if wrapper else words
    path = access.which(words[0]) or words[0]
    behind = access.real(path).rpartition("/")[2]
    if behind in WRAPPERS:
        wrapper = behind
    return CompilerCandidate(words[0].rpartition("/")[2], language, (path, *words[1:]), wrapper, origin)


def _unique(access: Access, candidates: Iterable[CompilerCandidate]) -> Iterator[CompilerCandidate]:
    seen: set[tuple[object, ...]] = set()
    for each in candidates:
        program = each.command[0] if each.wrapper else access.real(each.command[0])
        key = (program, each.command[1:], each.language)
        if key not in seen:
            seen.add(key)
            yield each


def _ask(access: Access, candidate: CompilerCandidate) -> Compiler:
    seen = Seen()
    command = candidate.command
    said = access.ask(*command, "--version")
    text = f"{said.out}\n{said.err}"
    kind = "clang" if re.search(r"\bclang\b", text, re.IGNORECASE) else "gcc"
    line, version = read_version(text) if said.code == 0 else (None, None)
    full = access.ask(*command, "-dumpfullversion", "-dumpversion") if kind == "gcc" and version else None
    if full is not None and full.code == 0 and re.fullmatch(r"\d+(\.\d+)+", full.out.strip()):
        version = full.out.strip()
    seen.put("version", "--version" if version else f"--version: {said.trouble}", version)
    seen.put("release", "the first line of --version", line)
    seen.put("kind", "--version", kind)
    seen.put("real", "by resolving symbolic links", access.real(command[0]))
    seen.put("origin", "the place where it was found", candidate.origin)
    seen.put("wrapper", "its name, or the program that the link leads to", candidate.wrapper)
    if version is not None:
        ask_driver(access, seen, command, candidate.language)
        _try(access, seen, command, candidate.language)
    for field in ("name", "path", "language"):
        seen.sources[field] = f"found through {candidate.origin}"
    unasked = (
        "only C++ compilers are queried, and nvcc for its host compiler" if version is not None else "it cannot be run"
    )
    seen.rest(Compiler, unasked)
    values = {**seen.values, "name": candidate.name, "language": candidate.language, "path": command[0]}
    return Compiler(**values, sources=seen.sources)


def ask_driver(access: Access, seen: Seen, command: Sequence[str], language: str) -> None:
    """What a driver of GCC's kind tells of its target, folders and helpers."""
    asked = access.ask(*command, "-dumpmachine")
    target = asked.out.strip() if asked.code == 0 else ""
    seen.put("target", "-dumpmachine", target or None)
    asked = access.ask(*command, "-print-sysroot")
    if asked.code == 0:
        seen.put("sysroot", "-print-sysroot", asked.out.strip() or "/")
    else:
        seen.put("sysroot", f"-print-sysroot: {asked.trouble}", None)
    asked = access.ask(*command, "-E", "-v", "-x", language, "-")
    includes = read_includes(access, asked.err)
    seen.put("includes", f"-E -v -x {language} -" + ("" if includes else f": {asked.trouble}"), includes)
    if seen.values.get("sysroot") is None:
        named = re.search(r"--sysroot[= ](\S+)", asked.err) or re.search(r'"-isysroot" "([^"]+)"', asked.err)
        seen.put("sysroot", "-E -v", named[1] if named else "/" if includes else None)
    asked = access.ask(*command, "-print-search-dirs")
    listed = library_folders(asked.out)
    folders = None if listed is None else real_folders(access, listed)
    seen.put("libraries", "existing folders from -print-search-dirs", folders)
    for field, name in (("linker", "ld"), ("assembler", "as")):
        path = access.ask(*command, f"-print-prog-name={name}").out.strip()
        found = access.which(path) if path else None
        seen.put(field, f"-print-prog-name={name}", access.real(found) if found else None)
    if language == "c++":
        path = access.ask(*command, "-print-file-name=libstdc++.so.6").out.strip()
        if "/" in path:
            runtime = cxx_runtime(access, _tidy(access, path), found_by="-print-file-name=libstdc++.so.6")
            seen.put("runtime", "-print-file-name=libstdc++.so.6", runtime)
        else:
            seen.put("runtime", "-print-file-name=libstdc++.so.6: not found", None)


def read_includes(access: Access, text: str) -> tuple[str, ...] | None:
    """The folders that a preprocessor lists with ``-v``; ``None`` where it lists none."""
    lists = search_lists(text)
    return tuple(dict.fromkeys(_tidy(access, folder) for folder in lists[0].angle)) if lists else None


def real_folders(access: Access, folders: Iterable[str]) -> tuple[str, ...]:
    """Folders that are there, each once, without ``..``."""
    tidy = (_tidy(access, folder) for folder in folders if folder and access.exists(folder))
    return tuple(dict.fromkeys(tidy))


def _tidy(access: Access, path: str) -> str:
    """A path without ``..``; links stay, but where a ``..`` is taken from one."""
    if "/../" not in f"{path}/":
        return path.rstrip("/") or "/"
    return access.real(path)


def _try(access: Access, seen: Seen, command: Sequence[str], language: str) -> None:
    """Compile, link and run: what an installation lacks shows only then."""
    suffix, text = (".c", _C) if language == "c" else (".cpp", _CXX)
    try:
        with tempfile.TemporaryDirectory(prefix="axletree-probe-", dir=existing(access.path(access.tmp))) as name:
            folder = Path(name)
            program = folder / f"small{suffix}"
            program.write_text(text)
            built = access.ask(*command, str(program), "-o", str(folder / "small"), seconds=_SECONDS, cwd=folder)
            if built.code == 0:
                ran = access.ask(str(folder / "small"), cwd=folder)
                fine = ran.code == 0 and ran.out.strip() == "42"
                source = "compiling, linking and running a small program" + ("" if fine else f": {ran.trouble}")
                seen.put("works", source, fine)
            else:
                source = f"compiling a small program: {built.trouble}"
                seen.put("works", source, None if built.code is None else False)
            parallel = folder / f"parallel{suffix}"
            parallel.write_text(_OPENMP)
            built = access.ask(
                *command, "-fopenmp", str(parallel), "-o", str(folder / "parallel"), seconds=_SECONDS, cwd=folder
            )
            source = "compiling and linking with -fopenmp" + ("" if built.code == 0 else f": {built.trouble}")
            seen.put("openmp", source, None if built.code is None else built.code == 0)
    except OSError as error:
        for field in ("works", "openmp"):
            seen.put(field, f"cannot create a folder for the test: {error.strerror}", None)
    if language == "c++":
        taken = [each for each in _STANDARDS if _takes(access, command, each)]
        seen.put("standards", "-fsyntax-only -std=...", tuple(taken))


def _takes(access: Access, command: Sequence[str], standard: str) -> bool:
    options = [f"-std={standard}", "-fsyntax-only", "-x", "c++", "-"]
    return access.ask(*command, *options, text="int main() { return 0; }\n").code == 0
