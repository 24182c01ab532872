"""Needed libraries that a relocation removes: those that are listed, from the files that use nothing of them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem
from axletree.core.findings import Finding
from axletree.core.globs import glob_matcher
from axletree.core.units import some_of
from axletree.package.libraries.unused import symbols_taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.binary.elf.symbols import Symbols

_SHOWN = 4
_HINT = "narrow the file pattern in `drop-needed`, or drop the file"


def plan_drops(
    elfs: Mapping[str, ElfFacts],
    wanted: Mapping[str, Sequence[str]],
    *,
    before: Mapping[str, str],
    read: Callable[[str], Symbols],
    exports: Callable[[str, str], Callable[[bytes], object] | None],
) -> dict[str, tuple[str, ...]]:
    """Which libraries files of a tree need no longer.

    Args:
        elfs: path now -> facts of the tree.
        wanted: pattern of files as they were before -> patterns of SONAMEs.
        before: path now -> path before.
        read: the symbols of a file of the tree.
        exports: of a file and a SONAME that it needs: whether that library exports a name; ``None`` where nobody knows.

    Returns:
        Path now -> SONAMEs.

    Raises:
        IntegrityError: a file uses a symbol of a library that is to go, or that is not known. Names all such files.
    """
    rules = [(glob_matcher([files]), patterns) for files, patterns in wanted.items()]
    listed = {path: [each for fits, patterns in rules if fits(before[path]) for each in patterns] for path in elfs}
    dropped = {
        path: names
        for path, facts in sorted(elfs.items())
        if (names := tuple(soname for soname in dict.fromkeys(facts.needed) if _fits(soname, listed[path])))
    }
    problems = [
        problem
        for path, names in dropped.items()
        for soname in names
        if (problem := _used(path, soname, elfs[path], read, exports(path, soname))) is not None
    ]
    problems += _relied_on(elfs, dropped, read, exports)
    if problems:
        raise IntegrityError(*problems)
    return dropped


def idle_drops(
    dropped: Mapping[str, tuple[str, ...]], wanted: Mapping[str, Sequence[str]], before: Mapping[str, str]
) -> Iterator[Finding]:
    """Patterns that removed nothing; the arguments are those of :func:`plan_drops` and its result."""
    for files, patterns in wanted.items():
        fits = glob_matcher([files])
        gone = {soname for path, names in dropped.items() if fits(before[path]) for soname in names}
        for pattern in patterns:
            if not any(fnmatchcase(soname, pattern) for soname in gone):
                yield Finding(
                    rule="relocate/drop-idle",
                    severity="info",
                    where=pattern,
                    message=f"the drop-needed pattern removed nothing: no file that matches {files} needs the library",
                    fix="remove the pattern from drop-needed, unless other variants need it",
                )


def _fits(soname: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(soname, pattern) for pattern in patterns)


def _used(
    path: str,
    soname: str,
    facts: ElfFacts,
    read: Callable[[str], Symbols],
    exports: Callable[[bytes], object] | None,
) -> Problem | None:
    versions = [version for need in facts.versions_needed if need.file == soname for version in need.versions]
    if versions:
        what = f"symbol versions of this library: {some_of(versions, _SHOWN)}"
        return Problem(file=path, key=soname, message=f"the file needs {what}; it cannot be dropped", hint=_HINT)
    if exports is None:
        hint = "add the library's folder to `graft-from`, or remove the pattern from `drop-needed`"
        message = "this library was not found, so it is not known whether the file uses its symbols"
        return Problem(file=path, key=soname, message=message, hint=hint)
    taken = symbols_taken(facts, read(path), exports)
    if not taken:
        return None
    message = f"the file uses symbols of this library, so it cannot be dropped: {some_of(taken, _SHOWN)}"
    return Problem(file=path, key=soname, message=message, hint=_HINT)


def _relied_on(
    elfs: Mapping[str, ElfFacts],
    dropped: Mapping[str, tuple[str, ...]],
    read: Callable[[str], Symbols],
    exports: Callable[[str, str], Callable[[bytes], object] | None],
) -> Iterator[Problem]:
    """Files that use a library without needing it: they rely on others to load it."""
    users = {soname: path for path, names in reversed([*dropped.items()]) for soname in names}
    for soname, user in users.items():
        exported = exports(user, soname)
        for path, facts in sorted(elfs.items()):
            if exported is None or soname in facts.needed or facts.soname == soname:
                continue
            taken = symbols_taken(facts, read(path), exported)
            if taken:
                message = f"the file uses symbols of this library ({some_of(taken, _SHOWN)}), which {user} loads for it"
                hint = f"remove the pattern from `drop-needed`, or link {path} to the library"
                yield Problem(file=path, key=soname, message=message, hint=hint)
