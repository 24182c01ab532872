"""Rules about search paths: where the loader looks for what a wheel's files need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import CORE, library, plain_library, sample
from axletree.core.units import some_of
from axletree.package.libraries.linkage import installed_path, search_path
from axletree.package.libraries.providers import find_providers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.check.dist import DistFacts
    from axletree.package.libraries.linkage import SearchEntry

_SHOWN = 4
_LIB = "demo/lib/libdemo.so"
_TOOL = "demo/bin/tool"
_PUBLIC = re.compile(r"/(tmp|var/tmp|dev/shm)(/|$)")
_COMMON = re.compile(r"/(usr|lib|lib32|lib64|opt/(rocm|cuda|intel)|home|root|Users|mnt|media|srv|var)([-/].*)?$")
"""Places that other machines have too, with other content."""


def _cut_off(facts: DistFacts, *, programs: bool) -> Iterator[Found]:
    elfs = facts.elfs
    lost: dict[tuple[str, str], list[str]] = {}
    for miss in facts.misses:
        if (elfs[miss.root].interpreter is not None) == programs:
            lost.setdefault((miss.user, miss.root), []).append(miss.soname)
    groups: dict[tuple[tuple[str, ...], tuple[str, ...], str], list[str]] = {}
    for (user, root), sonames in lost.items():
        entries = tuple(f"searched: {entry.text}" for entry in search_path(user, elfs[user]))
        way = "" if user == root else f", when loaded by {root}"
        groups.setdefault((tuple(sorted(sonames)), entries or ("no search path",), way), []).append(user)
    for (libraries, entries, way), users in groups.items():
        who = subject(users, "cannot find", "cannot find")
        message = f"{who} {', '.join(libraries)}, which the wheel contains{way}"
        evidence = (*entries, *(f"found at: {path}" for path in _places(facts, libraries)), *listing(users))
        yield Found(users[0], message, evidence=evidence)


def _places(facts: DistFacts, sonames: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({miss.path for miss in facts.misses if miss.soname in sonames}))


def _program_cut_off(facts: DistFacts) -> Iterator[Found]:
    return _cut_off(facts, programs=True)


def _library_cut_off(facts: DistFacts) -> Iterator[Found]:
    return _cut_off(facts, programs=False)


def _entries(facts: DistFacts, kind: str) -> dict[str, list[str]]:
    """Entry of a kind -> files that have it."""
    files: dict[str, list[str]] = {}
    for path, elf in facts.elfs.items():
        for text in dict.fromkeys(entry.text for entry in search_path(path, elf) if entry.kind == kind):
            if facts.linux:
                files.setdefault(text, []).append(path)
    return files


def _one_for_all(files: dict[str, list[str]], more: str = "") -> Iterator[Found]:
    """One finding for entries of the same kind, each with its files as evidence."""
    paths = list(dict.fromkeys(path for users in files.values() for path in users))
    if paths:
        names = [text or "the current folder (an empty entry)" for text in files]
        message = f"{subject(paths, 'searches', 'search')} {some_of(names, _SHOWN)}{more}"
        same = len({tuple(users) for users in files.values()}) == 1
        evidence = paths if same else [f"{path} searches {text!r}" for text, users in files.items() for path in users]
        yield Found(paths[0], message, evidence=listing(evidence))


def _absolute(facts: DistFacts) -> Iterator[Found]:
    files = _entries(facts, "absolute")
    yield from _one_for_all(
        {text: users for text, users in files.items() if _PUBLIC.match(text)}, ", where anyone can put files"
    )
    yield from _one_for_all({text: users for text, users in files.items() if _COMMON.match(text)})


def _leftover(facts: DistFacts) -> Iterator[Found]:
    files = _entries(facts, "absolute")
    yield from _one_for_all(
        {text: users for text, users in files.items() if not (_COMMON.match(text) or _PUBLIC.match(text))}
    )


def _relative(facts: DistFacts) -> Iterator[Found]:
    yield from _one_for_all(_entries(facts, "relative"))


def _dead(facts: DistFacts) -> Iterator[Found]:
    searched: dict[str, list[str]] = {}
    for path, elf in facts.elfs.items():
        for entry in search_path(path, elf):
            if entry.folder is not None:
                searched.setdefault(entry.folder, []).append(path)
    installed = {place for member in facts.wheel.members if (place := installed_path(member.path)) is not None}
    filled = {place.rpartition("/")[0] for place in installed}
    folders = {parent for folder in filled for parent in _with_parents(folder)}
    files = {folder: users for folder, users in searched.items() if _is_dead(folder, folders, installed, facts)}
    inside = {folder: users for folder, users in files.items() if not folder.startswith("..")}
    yield from _one_for_all(inside, ", which the wheel does not contain")
    outside = {folder: users for folder, users in files.items() if folder.startswith("..")}
    yield from _one_for_all(outside, " outside site-packages")


def _is_dead(folder: str, folders: set[str], installed: set[str], facts: DistFacts) -> bool:
    """Outside of what the wheel alone owns nothing can be said: another distribution may fill the folder."""
    if any(provider.lies_in(folder) for provider in facts.providers):
        return False
    if folder.startswith(".."):
        return True
    top = folder.partition("/")[0]
    owned = f"{top}/__init__.py" in installed or top.endswith(".libs")
    return owned and folder not in folders


def _with_parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _ignored(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        lost = [entry for entry in elf.rpath if entry not in elf.runpath]
        if elf.runpath and lost:
            message = f"the DT_RPATH entries {', '.join(lost)} are ignored because the file also has DT_RUNPATH"
            yield Found(path, message, evidence=tuple(f"DT_RUNPATH: {entry}" for entry in elf.runpath))


def _out_of_reach(facts: DistFacts) -> Iterator[Found]:
    """Files that have a way into the folders of other distributions, but not into this one's."""
    elfs, inherited = facts.elfs, _inherited(facts)
    for need in facts.needs:
        if need.owner != "distribution" or need.via or need.by in facts.provided_by:
            continue
        providers = [p for p in find_providers(facts.providers, need.soname) if p.name == need.by and not p.loads]
        folders = [folder for provider in providers for folder in provider.folders]
        for path in need.files if folders else ():
            elf = elfs[path]
            names = () if elf.runpath else (path.rpartition("/")[2], elf.soname or "")
            entries = dict.fromkeys((*search_path(path, elf), *(e for name in names for e in inherited.get(name, ()))))
            abroad = any(provider.lies_in(entry.folder or "") for entry in entries for provider in facts.providers)
            if abroad and not any(p.lies_in(entry.folder or "") for p in providers for entry in entries):
                message = (
                    f"this file searches other distributions' folders, but not the one that contains {need.soname} "
                    f"({need.by})"
                )
                evidence = (*(f"searched: {entry.text}" for entry in entries), *(f"found in: {f}" for f in folders))
                yield Found(path, message, evidence=evidence)


def _inherited(facts: DistFacts) -> dict[str, dict[SearchEntry, None]]:
    """Needed name -> entries of DT_RPATH that the library gets from the files that need it."""
    found: dict[str, dict[SearchEntry, None]] = {}
    for path, elf in facts.elfs.items():
        if elf.rpath and not elf.runpath:
            entries = dict.fromkeys(search_path(path, elf))
            for soname in elf.needed:
                found.setdefault(soname, {}).update(entries)
    return found


SEARCH_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/library-cut-off",
        severity="error",
        title="A file cannot find a library in its own wheel",
        why="The loader uses the file's own search path and the DT_RPATH, but not the DT_RUNPATH, of libraries that "
        "load the file. No other file in the wheel loads the library first.",
        fix="link the file with an RPATH from its folder to the library's folder, such as `$ORIGIN/../lib`",
        check=_library_cut_off,
        cases=lambda: (
            fires(
                "a library in a different folder, with no search path",
                sample(elfs={CORE: library(needed=("libdemo.so",)), _LIB: plain_library()}),
            ),
            fires(
                "a DT_RUNPATH that the library in between does not inherit",
                sample(
                    elfs={
                        CORE: library(needed=("libmid.so",), runpath=("$ORIGIN/lib",)),
                        "demo/lib/libmid.so": plain_library(needed=("libdemo.so",)),
                        _LIB: plain_library(),
                    }
                ),
            ),
            silent(
                "a DT_RPATH that the library in between inherits",
                sample(
                    elfs={
                        CORE: library(needed=("libmid.so",), rpath=("$ORIGIN/lib",)),
                        "demo/lib/libmid.so": plain_library(needed=("libdemo.so",)),
                        _LIB: plain_library(),
                    }
                ),
            ),
            silent(
                "a library that another module in the package loads first",
                sample(
                    elfs={
                        CORE: library(needed=("libdemo.so",), runpath=("$ORIGIN/lib",)),
                        "demo/sub/_more.abi3.so": library(needed=("libdemo.so",)),
                        _LIB: plain_library(),
                    }
                ),
            ),
        ),
    ),
    Rule(
        id="dist/program-cut-off",
        severity="warning",
        title="A program cannot find a library in its own wheel",
        why="The loader resolves a program's libraries before its code runs, using only the program's search path.",
        fix="link the program with an RPATH from its folder to the library's, such as `$ORIGIN/../lib`, or leave the "
        "program out",
        check=_program_cut_off,
        cases=lambda: (
            fires(
                "a program in bin with its library in lib and no search path",
                sample(
                    elfs={
                        _TOOL: plain_library(interpreter="/lib64/ld.so", needed=("libdemo.so",)),
                        _LIB: plain_library(),
                    }
                ),
            ),
            silent(
                "a program that searches $ORIGIN/../lib",
                sample(
                    elfs={
                        _TOOL: plain_library(
                            interpreter="/lib64/ld.so", needed=("libdemo.so",), runpath=("$ORIGIN/../lib",)
                        ),
                        _LIB: plain_library(),
                    }
                ),
            ),
        ),
    ),
    Rule(
        id="dist/provider-out-of-reach",
        severity="warning",
        title="A search path includes folders in other distributions, but lacks a required one",
        why="The loader finds the library only if something else has already loaded it.",
        fix="add the folder after `found in` to the RPATH, relative to $ORIGIN",
        check=_out_of_reach,
        cases=lambda: (
            fires(
                "a path to torch/lib, but none to nvidia/cu13/lib",
                sample(
                    library(needed=("libcublas.so.13",), rpath=("$ORIGIN/../torch/lib",)), requires=("nvidia-cublas",)
                ),
            ),
            silent(
                "a path to nvidia/cu14/lib, the folder of a later release",
                sample(
                    library(needed=("libcublas.so.14",), rpath=("$ORIGIN/../nvidia/cu14/lib",)),
                    requires=("nvidia-cublas",),
                ),
            ),
            silent(
                "torch's libraries, which importing torch loads",
                sample(library(needed=("libc10.so",), rpath=("$ORIGIN/../nvidia/cu13/lib",)), requires=("torch",)),
            ),
        ),
    ),
    Rule(
        id="dist/rpath-absolute",
        severity="warning",
        title="A search path includes a folder that other machines may have too",
        why="On other machines, this folder may contain a different release or another user's files, which the "
        "loader uses instead of the libraries that the wheel was built with.",
        fix="set the RPATH at link time to `$ORIGIN` and folders below it, or remove the entry",
        check=_absolute,
        cases=lambda: (
            fires("a system-wide toolkit", sample(library(runpath=("/usr/local/cuda/lib64",)))),
            fires("a folder that anyone can create", sample(library(runpath=("/tmp/build/lib",)))),  # noqa: S108
            silent("a build folder", sample(library(runpath=("/build/lib",)))),
            silent("$ORIGIN", sample(library(rpath=("$ORIGIN",)))),
        ),
    ),
    Rule(
        id="dist/rpath-relative",
        severity="warning",
        title="A search path includes the current folder",
        why="The loader resolves an empty entry, or one that starts with neither `/` nor `$ORIGIN`, against the "
        "current folder: anyone who can put a file there can run code in the program.",
        fix="remove the entry; an empty entry comes from an extra colon",
        check=_relative,
        cases=lambda: (
            fires("an empty entry", sample(library(runpath=("$ORIGIN", "")))),
            fires("lib", sample(library(runpath=("lib",)))),
            silent("$ORIGIN/lib", sample(library(rpath=("${ORIGIN}/lib",)))),
        ),
    ),
    Rule(
        id="dist/rpath-ignored",
        severity="warning",
        title="A file has both DT_RPATH and DT_RUNPATH, so DT_RPATH is ignored",
        why="A loader that supports DT_RUNPATH ignores DT_RPATH in the same file (gABI).",
        fix="link with either DT_RUNPATH or DT_RPATH, and put all entries into that one",
        check=_ignored,
        cases=lambda: (
            fires("an entry only in DT_RPATH", sample(library(rpath=("$ORIGIN/lib",), runpath=("$ORIGIN",)))),
            silent("the same entries in both", sample(library(rpath=("$ORIGIN",), runpath=("$ORIGIN",)))),
        ),
    ),
    Rule(
        id="dist/rpath-leftover",
        severity="info",
        title="A search path includes a folder from the build machine",
        why="The folder does not exist on other machines; the entry reveals how the build machine is organized and "
        "costs the loader a few system calls for each library.",
        fix="set the RPATH at link time to `$ORIGIN` and folders below it, or remove the entry",
        check=_leftover,
        cases=lambda: (
            fires("a build folder", sample(library(runpath=("/build/lib",)))),
            silent("$ORIGIN", sample(library(rpath=("$ORIGIN",)))),
        ),
    ),
    Rule(
        id="dist/rpath-dead",
        severity="info",
        title="A search path includes a folder that does not exist",
        why="The loader finds nothing there, and each entry costs it a few system calls for each library.",
        fix="remove the entry, or correct it so that it names the folder of the libraries",
        check=_dead,
        cases=lambda: (
            fires("a folder that is not in the package", sample(library(runpath=("$ORIGIN/lib",)))),
            fires("a path that leaves site-packages", sample(library(runpath=("$ORIGIN/../../lib",)))),
            silent("a folder in another distribution", sample(library(runpath=("$ORIGIN/../casadi",)))),
            silent(
                "the folder where Intel's wheels put their libraries", sample(library(runpath=("$ORIGIN/../../..",)))
            ),
            silent(
                "a folder with libraries", sample(elfs={CORE: library(runpath=("$ORIGIN/lib",)), _LIB: plain_library()})
            ),
        ),
    ),
)
